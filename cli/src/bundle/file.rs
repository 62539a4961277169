//! Writes and reads bundle files. Where each file lies in one follows from its index, so nothing that an archive says of itself is believed.

use super::archive::{BLOCK, END, header, pack, padding};
use super::content::{Content, Piece};
use anyhow::{Context, bail, ensure};
use node::digest::sha256_hex;
use sha2::{Digest, Sha256};
use spec::bundle::{Bundle, read_bundle};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tar::Header;

/// Path of the index.
pub const INDEX: &str = "bundle.json";

/// Path of the list of hashes, as `sha256sum` writes and checks it.
const SUMS: &str = "SHA256SUMS";

/// Limit of index and list, bytes.
const LARGEST: u64 = 16 << 20;

/// A file of a bundle could not be written to where it was wanted. The bundle is not at fault.
#[derive(Debug, thiserror::Error)]
#[error("could not write it")]
pub struct NotWritten(#[source] io::Error);

/// A file in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    path: String,
    sha256: String,
    size: u64,
    /// Where its header begins.
    begins: u64,
}

/// A bundle file whose index was read and is whole.
#[derive(Debug)]
pub struct BundleFile {
    path: PathBuf,
    /// What is in it.
    pub bundle: Bundle,
    /// The index as text.
    pub text: String,
    members: Vec<Member>,
    /// Where its end begins.
    end: u64,
}

/// The list of hashes: the index first.
fn sums(text: &str, bundle: &Bundle) -> String {
    let members = bundle.members();
    let members = members
        .iter()
        .map(|(path, (sha256, _))| (*sha256, path.as_str()));
    let index = sha256_hex(text);
    std::iter::once((index.as_str(), INDEX))
        .chain(members)
        .map(|(sha256, path)| format!("{sha256}  {path}\n"))
        .collect()
}

/// Writes a bundle. `contents`: by path, those that the index names. Returns the index as text.
pub fn write_bundle(
    path: &Path,
    bundle: &Bundle,
    mut contents: BTreeMap<String, Content>,
) -> anyhow::Result<String> {
    let text = bundle.to_text()?;
    let of_text = |text: String| Content(vec![Piece::Bytes(text.into_bytes())]);
    let mut files = vec![
        (SUMS.to_owned(), of_text(sums(&text, bundle))),
        (INDEX.to_owned(), of_text(text.clone())),
    ];
    for path in bundle.members().into_keys() {
        let content = contents.remove(&path);
        let content = content.with_context(|| format!("there is no content of {path}"))?;
        files.push((path, content));
    }
    let written = || {
        let mut file = BufWriter::new(File::create(path)?);
        pack(files)?.write_to(&mut file)?;
        file.flush()?;
        file.get_ref().sync_all()
    };
    written().with_context(|| format!("could not write {}", path.display()))?;
    Ok(text)
}

impl BundleFile {
    /// Reads the index of a bundle, which the list in front of it vouches for.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("{} is not a whole bundle", path.display());
        let file =
            File::open(path).with_context(|| format!("could not open {}", path.display()))?;
        let opened = Self::read(path, &mut BufReader::new(file));
        opened.with_context(failed)
    }

    fn read(path: &Path, file: &mut impl Read) -> anyhow::Result<Self> {
        let list = read_text(file, SUMS)?;
        let text = read_text(file, INDEX)?;
        let named = list.lines().next().unwrap_or_default();
        ensure!(
            named == format!("{}  {INDEX}", sha256_hex(&text)),
            "{INDEX} does not have the sha256 that {SUMS} says"
        );
        let bundle = read_bundle(&text).context(INDEX)?;
        ensure!(
            list == sums(&text, &bundle),
            "{SUMS} does not say what {INDEX} says"
        );
        let mut begins = member_size(list.len() as u64) + member_size(text.len() as u64);
        let mut members = Vec::new();
        for (path, (sha256, size)) in bundle.members() {
            members.push(Member {
                path,
                sha256: sha256.to_owned(),
                size,
                begins,
            });
            begins = begins.saturating_add(member_size(size));
        }
        Ok(Self {
            path: path.to_owned(),
            bundle,
            text,
            members,
            end: begins,
        })
    }

    /// sha256 (hex) of the index: the name of the bundle.
    pub fn sha256(&self) -> String {
        sha256_hex(&self.text)
    }

    /// Bytes of all files in it.
    pub fn size(&self) -> u64 {
        self.members.iter().map(|member| member.size).sum()
    }

    /// Paths and sizes of the files in it.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        let members = self.members.iter();
        members.map(|member| (member.path.as_str(), member.size))
    }

    /// Reads every byte. Fails with the name of the first file that is not as it was written.
    pub fn check(&self) -> anyhow::Result<()> {
        let mut file = self.reopen()?;
        for member in &self.members {
            read_member(&mut file, member, &mut io::sink())
                .with_context(|| format!("{}: {}", self.path.display(), member.path))?;
        }
        file.seek(SeekFrom::Start(self.end))?;
        let mut rest = Vec::new();
        file.take(END.len() as u64 + 1).read_to_end(&mut rest)?;
        ensure!(
            rest == END,
            "{}: its end is not that of a bundle",
            self.path.display()
        );
        Ok(())
    }

    /// Writes one of its files to a path of its own, and returns its sha256. Fails if it is not as it was written, or with [`NotWritten`].
    pub fn extract(&self, path: &str, to: &Path) -> anyhow::Result<String> {
        let mut members = self.members.iter();
        let member = members.find(|member| member.path == path);
        let member = member.with_context(|| format!("the bundle has no {path}"))?;
        let mut file = self.reopen()?;
        let out = File::create(to).map_err(NotWritten);
        let mut out = out.with_context(|| format!("could not make {}", to.display()))?;
        read_member(&mut file, member, &mut out)
            .with_context(|| format!("{}: {path}", self.path.display()))?;
        Ok(member.sha256.clone())
    }

    fn reopen(&self) -> anyhow::Result<BufReader<File>> {
        let file = File::open(&self.path);
        let file = file.with_context(|| format!("could not open {}", self.path.display()))?;
        Ok(BufReader::with_capacity(1 << 17, file))
    }
}

/// Bytes that a file takes in an archive.
fn member_size(size: u64) -> u64 {
    size.saturating_add((BLOCK + padding(size)) as u64)
}

/// Reads a text at the beginning of an archive.
fn read_text(file: &mut impl Read, path: &str) -> anyhow::Result<String> {
    let mut found = [0; BLOCK];
    file.read_exact(&mut found).context(path.to_owned())?;
    let mut own = Header::new_ustar();
    own.as_mut_bytes().copy_from_slice(&found);
    let size = own.entry_size().unwrap_or(u64::MAX);
    ensure!(
        size <= LARGEST && found == header(path, size)?,
        "{path}: its header is damaged, or there is another file"
    );
    let mut text = String::new();
    let read = Read::by_ref(file).take(size).read_to_string(&mut text);
    read.context(path.to_owned())?;
    ensure!(text.len() as u64 == size, "{path} is cut off");
    check_padding(file, size).context(path.to_owned())?;
    Ok(text)
}

/// Copies the content of a member, and fails unless every byte of header, content and padding is as it was written.
fn read_member(
    file: &mut BufReader<File>,
    member: &Member,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    file.seek(SeekFrom::Start(member.begins))?;
    let mut found = [0; BLOCK];
    file.read_exact(&mut found)?;
    ensure!(
        found == header(&member.path, member.size)?,
        "its header is damaged"
    );
    let mut digest = Sha256::new();
    let mut left = member.size;
    let mut buffer = vec![0; 1 << 17];
    while left > 0 {
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let Some(piece) = buffer.get_mut(..most) else {
            bail!("it has no size");
        };
        file.read_exact(piece)?;
        digest.update(&piece);
        out.write_all(piece).map_err(NotWritten)?;
        left -= most as u64;
    }
    let found = format!("{:x}", digest.finalize());
    ensure!(
        found == member.sha256,
        "it has the sha256 {found}, not the one in the index: the file is damaged"
    );
    check_padding(file, member.size)
}

/// Zeros up to the next block.
fn check_padding(file: &mut impl Read, size: u64) -> anyhow::Result<()> {
    let mut behind = vec![1; padding(size)];
    file.read_exact(&mut behind)?;
    ensure!(
        behind.iter().all(|byte| *byte == 0),
        "what stands behind it is damaged"
    );
    Ok(())
}

#[cfg(test)]
#[path = "file_test.rs"]
mod tests;
