//! The list of files that nodes of a cluster with `spec.profile: cis` write every ten minutes, and that kubelet serves.

use super::CisNode;
use super::components::{Want, look_at_each};
use super::seen::Seen;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Age at which a list says nothing any more.
const OLDEST: Duration = Duration::hours(1);

/// The files of a node that controls are about, and settings in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFiles {
    files: Vec<NodeFile>,
    /// Name and value of each setting.
    values: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeFile {
    /// What it is to the node: `kubelet-unit`, `pki`.
    what: String,
    path: String,
    /// Mode and `user:group`; `None` if it is absent.
    found: Option<(u32, String)>,
}

/// How files have to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum FileWant {
    /// No bits of the mode but these.
    Mode(u32),
    Owner(&'static str),
}

impl NodeFiles {
    /// Reads the list of a node. Fails if it is not whole, or too old at this time.
    pub fn read(text: &str, now: OffsetDateTime) -> Result<Self, String> {
        let mut lines = text.lines();
        let time = lines.next().and_then(|line| line.strip_prefix("time "));
        let time = time.and_then(|time| OffsetDateTime::parse(time, &Rfc3339).ok());
        let (Some(time), Some("end")) = (time, text.lines().next_back()) else {
            return Err("its list of files is not whole".to_owned());
        };
        if (now - time).abs() > OLDEST {
            return Err(format!(
                "its list of files is of {}: see journalctl --unit kctl-node-files",
                time.format(&Rfc3339).unwrap_or_default()
            ));
        }
        let mut read = Self::default();
        for line in lines.filter(|line| *line != "end") {
            read.read_line(line)
                .ok_or_else(|| format!("its list of files has a line that is none: {line:?}"))?;
        }
        Ok(read)
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let (what, rest) = rest.split_once(' ')?;
        let (path, found) = match kind {
            "value" => {
                self.values.push((what.to_owned(), rest.to_owned()));
                return Some(());
            }
            "absent" => (rest, None),
            "file" => {
                let (mode, rest) = rest.split_once(' ')?;
                let (owner, path) = rest.split_once(' ')?;
                let mode = u32::from_str_radix(mode, 8).ok()?;
                (path, Some((mode, owner.to_owned())))
            }
            _ => return None,
        };
        self.files.push(NodeFile {
            what: what.to_owned(),
            path: path.to_owned(),
            found,
        });
        Some(())
    }
}

/// What the files of these nodes are like. Where they are `optional`, it is right that there are none.
pub(super) fn look_at_files<'a>(
    nodes: impl Iterator<Item = &'a CisNode>,
    what: &str,
    want: FileWant,
    optional: bool,
) -> Vec<Seen> {
    look_at_each(nodes, |node| {
        let list = node.files.as_ref().map_err(Clone::clone)?;
        let own = list.files.iter().filter(|file| file.what == what);
        let seen = own.map(|file| look_at_file(&node.name, file, want, optional));
        some_of(seen.collect(), what)
    })
}

fn look_at_file(node: &str, file: &NodeFile, want: FileWant, optional: bool) -> Seen {
    let path = &file.path;
    match (&file.found, want) {
        (None, _) if optional => Seen::judged(node, format!("no {path}"), true),
        (None, _) => Seen::unseen(node, format!("{path} is absent")),
        (Some((mode, _)), FileWant::Mode(most)) => {
            Seen::judged(node, format!("{path} is {mode:o}"), mode & !most == 0)
        }
        (Some((_, owner)), FileWant::Owner(wanted)) => {
            Seen::judged(node, format!("{path} is of {owner}"), owner == wanted)
        }
    }
}

/// What a setting in files of these nodes is.
pub(super) fn look_at_values<'a>(
    nodes: impl Iterator<Item = &'a CisNode>,
    name: &str,
    want: Want,
) -> Vec<Seen> {
    look_at_each(nodes, |node| {
        let list = node.files.as_ref().map_err(Clone::clone)?;
        let own = list.values.iter().filter(|(other, _)| other == name);
        let seen = own.map(|(_, value)| {
            let right = want.holds(Some(value.as_str()));
            Seen::judged(&node.name, format!("{name} is {value:?}"), right)
        });
        some_of(seen.collect(), name)
    })
}

/// That a list says nothing counts as not seen.
fn some_of(seen: Vec<Seen>, what: &str) -> Result<Vec<Seen>, String> {
    if seen.is_empty() {
        return Err(format!("its list of files has no {what}"));
    }
    Ok(seen)
}
