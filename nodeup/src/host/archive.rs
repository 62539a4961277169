//! Installs files from compressed tar archives. An archive is read to its end before any file is installed, and refused if any
//! member lies or points outside.

use anyhow::{Context, bail};
use flate2::read::GzDecoder;
use host::{Host, StagedFile};
use node::host::InstallTarget;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use tar::{Entry, EntryType};

/// Mode of installed programs.
const PROGRAM: u32 = 0o755;

/// Installs the members that `place` names. Returns the written paths.
pub(super) fn unpack_archive(
    host: &Host,
    archive: impl Read,
    place: &InstallTarget,
) -> anyhow::Result<Vec<String>> {
    let mut staged = BTreeMap::new();
    match stage_members(host, archive, place, &mut staged) {
        Ok(()) => {
            let paths = staged.keys().cloned().collect();
            for file in staged.into_values() {
                file.commit(host)?;
            }
            Ok(paths)
        }
        Err(error) => {
            for (path, file) in staged {
                file.discard().with_context(|| {
                    format!("could not remove the unfinished {path} after {error:#}")
                })?;
            }
            Err(error)
        }
    }
}

/// Writes each selected member to a temporary file.
fn stage_members(
    host: &Host,
    archive: impl Read,
    place: &InstallTarget,
    staged: &mut BTreeMap<String, StagedFile>,
) -> anyhow::Result<()> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let mut found = BTreeSet::new();
    for entry in archive.entries().context("could not read the archive")? {
        let mut entry = entry.context("could not read the archive")?;
        let name = check_member(&entry)?;
        let Some(path) = member_target(place, &name, &entry)? else {
            continue;
        };
        if !found.insert(path.clone()) {
            bail!("the archive has {} more than once", name.display());
        }
        let kind = entry.header().entry_type();
        if !matches!(kind, EntryType::Regular | EntryType::Continuous) {
            bail!("{} in the archive is not a plain file", name.display());
        }
        let file = host.stage_file(&path, PROGRAM, Some("root:root"))?;
        let file = staged.entry(path.clone()).or_insert(file);
        std::io::copy(&mut entry, file).with_context(|| format!("could not write {path}"))?;
    }
    // Read to the last byte, where gzip stores its checksum.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink())
        .context("could not read the archive")?;
    match place {
        InstallTarget::Members(members) => {
            let missing = members.iter().filter(|(_, path)| !found.contains(*path));
            let missing: Vec<&str> = missing.map(|(name, _)| name.as_str()).collect();
            if !missing.is_empty() {
                bail!("the archive lacks {}", missing.join(", "));
            }
        }
        _ if found.is_empty() => bail!("the archive contains no program"),
        _ => {}
    }
    Ok(())
}

/// The target path of a member; `None` if it is not installed.
fn member_target<R: Read>(
    place: &InstallTarget,
    name: &Path,
    entry: &Entry<'_, R>,
) -> anyhow::Result<Option<String>> {
    Ok(match place {
        InstallTarget::Members(members) => members.get(&name.display().to_string()).cloned(),
        InstallTarget::Programs(folder) => {
            let top = name.components().count() == 1;
            let program = entry
                .header()
                .mode()
                .context("could not read the archive")?
                & 0o111
                != 0;
            let plain = entry.header().entry_type() == EntryType::Regular;
            (top && program && plain).then(|| format!("{folder}/{}", name.display()))
        }
        InstallTarget::Program(_) => None,
    })
}

/// The name of a member without `./`. Fails if the member or its link target lies outside the archive's folder.
fn check_member<R: Read>(entry: &Entry<'_, R>) -> anyhow::Result<PathBuf> {
    let raw = entry
        .path()
        .context("could not read a name in the archive")?;
    let Some(name) = resolve_inside(Path::new(""), &raw) else {
        bail!("{} in the archive lies outside of it", raw.display());
    };
    let kind = entry.header().entry_type();
    let folder = match kind {
        EntryType::Symlink => name.parent().unwrap_or(Path::new("")),
        // Targets of hard links are relative to the top of the archive.
        EntryType::Link => Path::new(""),
        // The last two describe other members; the tar reader has applied them.
        EntryType::Regular
        | EntryType::Continuous
        | EntryType::Directory
        | EntryType::XGlobalHeader
        | EntryType::XHeader => return Ok(name),
        other => bail!(
            "{} in the archive has the unsupported type {other:?}",
            raw.display()
        ),
    };
    let target = entry
        .link_name()
        .context("could not read a link in the archive")?;
    let target = target.unwrap_or_default();
    if resolve_inside(folder, &target).is_none() {
        bail!(
            "{} in the archive points outside of it, to {}",
            raw.display(),
            target.display()
        );
    }
    Ok(name)
}

/// Resolves a path relative to `folder`, from the top of the archive. `None` if it is absolute or leaves the top, even if it comes
/// back. `..` is allowed in links only, within the archive.
fn resolve_inside(folder: &Path, path: &Path) -> Option<PathBuf> {
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
