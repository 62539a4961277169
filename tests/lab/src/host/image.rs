//! The machine image: the distribution, made once by mmdebstrap and kept in the cache under its recipe's hash. It is only
//! ever read: what the lab and each host add lies in layers above it.

use super::{
    recipe::{self, Release},
    requirements,
};
use crate::{mounts, tool};
use anyhow::{Context, Result};
use rustix::mount::{UnmountFlags, unmount};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root file system of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub release: Release,
    pub root: PathBuf,
}

/// Where images are kept: `KCTL_CACHE`, else `XDG_CACHE_HOME/kctl`, else `~/.cache/kctl`; below it `lab`.
pub fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = set("KCTL_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("kctl")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/kctl")))
        .context("no place for the machine image: set KCTL_CACHE, XDG_CACHE_HOME or HOME")?;
    Ok(cache.join("lab"))
}

impl Image {
    /// The image of this program's recipe, made first if the cache does not have it: about a minute on two quiet cores, and
    /// 300 MB. Of several callers one makes it, the others wait.
    pub fn prepare_image(cache: &Path, release: Release) -> Result<Self> {
        requirements::ready()?;
        let name = format!("image-{}", recipe::recipe_key(release));
        let root = prepare_folder(cache, &name, |part, lock| {
            install_release(part, release, &recipe::requested_packages(), lock)
        })?;
        Ok(Self { release, root })
    }
}

/// A folder of the cache, made by `build` if it is not there, beside its place first. Of several callers one makes it, the others
/// wait.
pub(super) fn prepare_folder(
    cache: &Path,
    name: &str,
    build: impl FnOnce(&Path, &File) -> Result<()>,
) -> Result<PathBuf> {
    let folder = cache.join(name);
    if folder.exists() {
        return Ok(folder);
    }
    fs::create_dir_all(cache)
        .with_context(|| format!("making the cache directory {}", cache.display()))?;
    let lock = cache.join(format!("{name}.lock"));
    let lock = File::create(&lock).with_context(|| format!("opening {}", lock.display()))?;
    lock.lock()
        .context("waiting for whoever makes the machine image")?;
    if !folder.exists() {
        let part = cache.join(format!("{name}.part"));
        remove_part(&part)?;
        build(&part, &lock).context("making the machine image")?;
        fs::rename(&part, &folder).with_context(|| format!("naming {}", folder.display()))?;
    }
    Ok(folder)
}

/// Removes what a build that was cut off has left.
fn remove_part(part: &Path) -> Result<()> {
    for point in mounts::mount_points_below(part)? {
        unmount(&point, UnmountFlags::DETACH)
            .with_context(|| format!("unmounting {}", point.display()))?;
    }
    mounts::remove_tree(part)
}

/// Installs a release with these packages, and what they depend on, into a folder.
pub(super) fn install_release(
    root: &Path,
    release: Release,
    packages: &[&str],
    lock: &File,
) -> Result<()> {
    let mut command = Command::new("mmdebstrap");
    command
        .args(["--variant=minbase", "--components=main"])
        .arg("--aptopt=APT::Install-Recommends \"false\"")
        .args(recipe::LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}")))
        .arg(format!("--include={}", packages.join(",")))
        .arg(format!(
            "--customize-hook=chroot \"$1\" systemctl enable {}",
            recipe::ENABLED.join(" ")
        ))
        .args([release.suite().as_ref(), root.as_os_str()])
        // Shares the lock for the case that this program is killed and leaves it running.
        .stdin(Stdio::from(lock.try_clone()?));
    tool::run(&mut command).map(drop)
}

/// Writes a file of a root file system, with the folders it needs; one that is there as it should be is not touched.
pub(super) fn write_file(path: &Path, mode: u32, content: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    if fs::read(path).is_ok_and(|there| there == content.as_bytes()) {
        return Ok(());
    }
    fs::write(path, content).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", path.display()))
}
