//! File trees as tar archives, the same bytes each time: sorted names, no owners, one time, no compression.

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// 2020-01-01, of every file.
const TIME: u64 = 1_577_836_800;

/// What `setcap cap_net_bind_service=+ep` writes: version 2 with the effective bit, permitted bit 10, nothing inheritable.
const MAY_BIND_LOW_PORTS: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Something at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Folder {
        mode: u32,
    },
    File {
        mode: u32,
        content: Content,
        low_ports: bool,
    },
    Symlink(PathBuf),
    /// Path of the file it is another name of.
    Link(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Bytes(Vec<u8>),
    Of(PathBuf),
}

/// Files by path, without a leading slash. Folders above a file come by themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, Node>);

impl Tree {
    /// A program: the file at `source`, executable.
    #[must_use]
    pub fn add_program(self, path: &str, source: PathBuf) -> Self {
        self.add_file(path, 0o755, Content::Of(source), false)
    }

    /// A program that runs as root, whoever starts it.
    #[must_use]
    pub fn setuid_program(self, path: &str, source: PathBuf) -> Self {
        self.add_file(path, 0o4755, Content::Of(source), false)
    }

    /// A shell script, executable.
    #[must_use]
    pub fn add_script(self, path: &str, text: &str) -> Self {
        self.add_file(path, 0o755, Content::Bytes(text.into()), false)
    }

    /// A program that may listen below port 1024 without being root.
    #[must_use]
    pub fn low_port_program(self, path: &str, source: PathBuf) -> Self {
        self.add_file(path, 0o755, Content::Of(source), true)
    }

    #[must_use]
    pub fn add_text(self, path: &str, text: &str) -> Self {
        self.add_file(path, 0o644, Content::Bytes(text.into()), false)
    }

    fn add_file(self, path: &str, mode: u32, content: Content, low_ports: bool) -> Self {
        let file = Node::File {
            mode,
            content,
            low_ports,
        };
        self.with_node(path, file)
    }

    #[must_use]
    pub fn add_folder(self, path: &str, mode: u32) -> Self {
        self.with_node(path, Node::Folder { mode })
    }

    #[must_use]
    pub fn add_symlink(self, path: &str, target: impl Into<PathBuf>) -> Self {
        self.with_node(path, Node::Symlink(target.into()))
    }

    /// Another name of a file of this tree.
    #[must_use]
    pub fn add_hard_link(self, path: &str, target: &str) -> Self {
        self.with_node(path, Node::Link(target.to_owned()))
    }

    /// Everything below a folder of this machine whose path `wanted` says yes to.
    pub fn import_folder(mut self, root: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self> {
        for source in super::key::list_files(root)? {
            let path = source
                .strip_prefix(root)
                .unwrap_or(&source)
                .to_string_lossy()
                .into_owned();
            if !wanted(&path) {
                continue;
            }
            let about = source
                .symlink_metadata()
                .with_context(|| format!("reading {}", source.display()))?;
            let node = if about.is_symlink() {
                Node::Symlink(fs::read_link(&source)?)
            } else {
                let mode = about.permissions().mode() & 0o7777;
                Node::File {
                    mode,
                    content: Content::Of(source),
                    low_ports: false,
                }
            };
            self = self.with_node(&path, node);
        }
        Ok(self)
    }

    /// All of it below a folder.
    #[must_use]
    pub fn below(self, folder: &str) -> Self {
        let nodes = self.0.into_iter();
        nodes.fold(Self::default(), |tree, (path, node)| {
            tree.with_node(&format!("{folder}/{path}"), node)
        })
    }

    fn with_node(mut self, path: &str, node: Node) -> Self {
        for (at, _) in path.match_indices('/') {
            let above = path.get(..at).unwrap_or_default().to_owned();
            self.0.entry(above).or_insert(Node::Folder { mode: 0o755 });
        }
        self.0.insert(path.to_owned(), node);
        self
    }

    /// As a tar archive.
    pub fn write_tar(&self, out: impl Write) -> Result<()> {
        let mut archive = Builder::new(out);
        let is_link = |node: &Node| matches!(node, Node::Link(_));
        // Other names after all files: what they name has to be there first.
        let first = self.0.iter().filter(|(_, node)| !is_link(node));
        let nodes = first.chain(self.0.iter().filter(|(_, node)| is_link(node)));
        for (path, node) in nodes {
            append_node(&mut archive, path, node).with_context(|| format!("archiving {path}"))?;
        }
        archive
            .into_inner()
            .context("ending the archive")?
            .flush()?;
        Ok(())
    }

    /// As a tar archive in gzip's form, but stored: every host unpacks it, and CPU is what a lab is short of.
    pub fn write_tgz(&self, out: impl Write) -> Result<()> {
        let mut gzip = GzBuilder::new().write(out, Compression::none());
        self.write_tar(&mut gzip)?;
        gzip.finish().context("ending the gzip file")?.flush()?;
        Ok(())
    }
}

fn append_node(archive: &mut Builder<impl Write>, path: &str, node: &Node) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header.set_mode(0o777);
    match node {
        Node::Folder { mode } => {
            header.set_mode(*mode);
            header.set_entry_type(EntryType::Directory);
            archive.append_data(&mut header, format!("{path}/"), io::empty())?;
        }
        Node::Symlink(target) => {
            header.set_entry_type(EntryType::Symlink);
            archive.append_link(&mut header, path, target)?;
        }
        Node::Link(target) => {
            header.set_entry_type(EntryType::Link);
            archive.append_link(&mut header, path, target)?;
        }
        Node::File {
            mode,
            content,
            low_ports,
        } => {
            header.set_mode(*mode);
            if *low_ports {
                let capability = [(
                    "SCHILY.xattr.security.capability",
                    MAY_BIND_LOW_PORTS.as_slice(),
                )];
                archive.append_pax_extensions(capability)?;
            }
            match content {
                Content::Bytes(bytes) => {
                    header.set_size(bytes.len() as u64);
                    append_file(archive, &mut header, path, bytes.as_slice())?;
                }
                Content::Of(source) => {
                    let file = fs::File::open(source)
                        .with_context(|| format!("opening {}", source.display()))?;
                    header.set_size(file.metadata()?.len());
                    append_file(archive, &mut header, path, file)?;
                }
            }
        }
    }
    Ok(())
}

/// As [`Builder::append_data`], which would drop a `./` before the name.
fn append_file(
    archive: &mut Builder<impl Write>,
    header: &mut Header,
    path: &str,
    content: impl io::Read,
) -> io::Result<()> {
    if !path.starts_with("./") {
        return archive.append_data(header, path, content);
    }
    let name = header.as_old_mut().name.get_mut(..path.len());
    let name = name.ok_or_else(|| io::Error::other("the name is too long"))?;
    name.copy_from_slice(path.as_bytes());
    header.set_cksum();
    archive.append(header, content)
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn names_are_as_in_the_tree() {
        let tree = Tree::default().add_script("./bridge", "a");
        let tree = tree.add_script("bin/ctr", "b").add_script("crictl", "c");
        let mut out = Vec::new();
        tree.write_tar(&mut out).unwrap();
        let mut archive = tar::Archive::new(out.as_slice());
        let entries = archive.entries().unwrap().map(Result::unwrap);
        let names =
            entries.map(|entry| String::from_utf8(entry.path_bytes().into_owned()).unwrap());
        let names: Vec<String> = names.collect();
        assert_eq!(names, ["./", "./bridge", "bin/", "bin/ctr", "crictl"]);
    }
}
