//! Compressed tar archives. Each is looked through to its end before anything of it is in its place, and refused as a
//! whole if anything in it would lie or point outside.

use anyhow::{Context, bail};
use flate2::read::GzDecoder;
use host::{Host, Staged};
use node::host::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use tar::{Entry, EntryType};

/// Mode of programs.
const PROGRAM: u32 = 0o755;

/// Unpacks what `place` asks for; the paths that were written.
pub(super) fn unpack(
    host: &Host,
    archive: impl Read,
    place: &Place,
) -> anyhow::Result<Vec<String>> {
    let mut staged = BTreeMap::new();
    match stage(host, archive, place, &mut staged) {
        Ok(()) => {
            let paths = staged.keys().cloned().collect();
            for file in staged.into_values() {
                file.commit(host)?;
            }
            Ok(paths)
        }
        Err(error) => {
            for (path, file) in staged {
                file.discard()
                    .with_context(|| format!("taking {path} away again after {error:#}"))?;
            }
            Err(error)
        }
    }
}

/// Writes each wanted member beside its place.
fn stage(
    host: &Host,
    archive: impl Read,
    place: &Place,
    staged: &mut BTreeMap<String, Staged>,
) -> anyhow::Result<()> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let mut found = BTreeSet::new();
    for entry in archive.entries().context("reading the archive")? {
        let mut entry = entry.context("reading the archive")?;
        let name = checked(&entry)?;
        let Some(path) = wanted(place, &name, &entry)? else {
            continue;
        };
        if !found.insert(path.clone()) {
            bail!("the archive has {} more than once", name.display());
        }
        let kind = entry.header().entry_type();
        if !matches!(kind, EntryType::Regular | EntryType::Continuous) {
            bail!("{} in the archive is no plain file", name.display());
        }
        let file = host.stage(&path, PROGRAM, Some("root:root"))?;
        let file = staged.entry(path.clone()).or_insert(file);
        std::io::copy(&mut entry, file).with_context(|| format!("writing {path}"))?;
    }
    // To the last byte, where the compressed form keeps its own sum.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink())
        .context("reading the archive")?;
    match place {
        Place::Members(members) => {
            let missing = members.iter().filter(|(_, path)| !found.contains(*path));
            let missing: Vec<&str> = missing.map(|(name, _)| name.as_str()).collect();
            if !missing.is_empty() {
                bail!("the archive lacks {}", missing.join(", "));
            }
        }
        _ if found.is_empty() => bail!("the archive has no program in it"),
        _ => {}
    }
    Ok(())
}

/// Where a member goes; `None`: it stays out.
fn wanted<R: Read>(
    place: &Place,
    name: &Path,
    entry: &Entry<'_, R>,
) -> anyhow::Result<Option<String>> {
    Ok(match place {
        Place::Members(members) => members.get(&name.display().to_string()).cloned(),
        Place::Programs(folder) => {
            let top = name.components().count() == 1;
            let program = entry.header().mode().context("reading the archive")? & 0o111 != 0;
            let plain = entry.header().entry_type() == EntryType::Regular;
            (top && program && plain).then(|| format!("{folder}/{}", name.display()))
        }
        Place::Program(_) => None,
    })
}

/// The member's name without `./`, if neither it nor what it links to lies outside of the archive's own folder.
fn checked<R: Read>(entry: &Entry<'_, R>) -> anyhow::Result<PathBuf> {
    let raw = entry.path().context("reading a name in the archive")?;
    let Some(name) = inside(Path::new(""), &raw) else {
        bail!("{} in the archive lies outside of it", raw.display());
    };
    let kind = entry.header().entry_type();
    let folder = match kind {
        EntryType::Symlink => name.parent().unwrap_or(Path::new("")),
        // Hard links name their target from the archive's top.
        EntryType::Link => Path::new(""),
        // The last two describe other members, which the reader has taken in already.
        EntryType::Regular
        | EntryType::Continuous
        | EntryType::Directory
        | EntryType::XGlobalHeader
        | EntryType::XHeader => return Ok(name),
        other => bail!("{} in the archive is of kind {other:?}", raw.display()),
    };
    let target = entry.link_name().context("reading a link in the archive")?;
    let target = target.unwrap_or_default();
    if inside(folder, &target).is_none() {
        bail!(
            "{} in the archive points outside of it, to {}",
            raw.display(),
            target.display()
        );
    }
    Ok(name)
}

/// A path below `folder`, from the top; `None` if it is absolute or leaves the top, even to come back. A name that steps
/// back is refused whereever it leads; a link may step back within the archive.
fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut reached = folder.to_owned();
    for component in path.components() {
        match component {
            Component::Normal(name) => reached.push(name),
            Component::CurDir => {}
            Component::ParentDir if !folder.as_os_str().is_empty() => {
                if !reached.pop() {
                    return None;
                }
            }
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(reached)
}
