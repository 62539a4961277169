//! Images of virtual machines: kernel, initial RAM disk and root disk, made once and kept in the cache under their recipe's hash.

use super::super::image::{install_release, prepare_folder, write_file};
use super::super::layer::trust_authority;
use super::super::recipe::{self, Release};
use super::super::requirements;
use crate::{mounts, tool};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Of the root disk, sparse. As kOps' root volumes for control planes.
const DISK_BYTES: u64 = 64 << 30;

/// A file of the image, and how the name of what it is copied from begins in `/boot`.
const KERNEL: (&str, &str) = ("vmlinuz", "vmlinuz-");
const INITRD: (&str, &str) = ("initrd.img", "initrd.img-");

/// The image of one release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineImage {
    /// Holds the files.
    pub folder: PathBuf,
}

/// The images of all releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineImages(BTreeMap<Release, MachineImage>);

impl MachineImages {
    /// The images of this program's recipes, made first if the cache does not have them: some minutes and 1 GB for each. They trust the
    /// authority (PEM).
    pub fn prepare_images(cache: &Path, authority: &str) -> Result<Self> {
        requirements::machines_ready()?;
        let images = Release::ALL.into_iter().map(|release| {
            let name = folder_name(release, authority);
            let folder = prepare_folder(cache, &name, |part, lock| {
                build_image(part, release, authority, lock)
            })?;
            Ok((release, MachineImage { folder }))
        });
        images.collect::<Result<_>>().map(Self)
    }

    /// Whether the cache has them all.
    pub fn are_built(cache: &Path, authority: &str) -> bool {
        let mut names = Release::ALL
            .map(|release| folder_name(release, authority))
            .into_iter();
        names.all(|name| cache.join(name).exists())
    }

    /// Where they are.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.0.values().map(|image| image.folder.as_path())
    }

    /// What the machine image of EC2 with this id holds.
    pub(in super::super) fn find_image(&self, image: &str) -> Result<&MachineImage> {
        let release = Release::find_release(image);
        let found = release.and_then(|release| self.0.get(&release));
        found.with_context(|| {
            let names = Release::ALL.map(Release::spec_image).join(", ");
            format!(
                "the lab has no virtual machine for image {image}: name one of {names} in the spec"
            )
        })
    }
}

impl MachineImage {
    pub(super) fn kernel(&self) -> PathBuf {
        self.folder.join(KERNEL.0)
    }

    pub(super) fn initrd(&self) -> PathBuf {
        self.folder.join(INITRD.0)
    }

    pub(super) fn root_disk(&self) -> PathBuf {
        self.folder.join("disk.img")
    }
}

fn folder_name(release: Release, authority: &str) -> String {
    format!("machine-{}", recipe::machine_key(release, authority))
}

fn build_image(part: &Path, release: Release, authority: &str, lock: &File) -> Result<()> {
    let (image, root) = (
        MachineImage {
            folder: part.to_owned(),
        },
        part.join("root"),
    );
    fs::create_dir_all(part).with_context(|| format!("making {}", part.display()))?;
    install_release(&root, release, &recipe::machine_packages(), lock)?;
    for file in recipe::FILES.iter().chain(&recipe::MACHINE_FILES) {
        write_file(&root.join(file.path), file.mode, file.content)?;
    }
    trust_authority(&root, &root, authority)?;
    for (name, start) in [KERNEL, INITRD] {
        let from = find_file(&root.join("boot"), start)?;
        fs::copy(&from, part.join(name)).with_context(|| format!("copying {}", from.display()))?;
    }
    make_disk(&image.root_disk(), &root, lock)?;
    mounts::remove_tree(&root)
}

/// The file whose name begins so: the version follows.
fn find_file(folder: &Path, start: &str) -> Result<PathBuf> {
    let listing = || format!("listing {}", folder.display());
    for entry in fs::read_dir(folder).with_context(listing)? {
        let entry = entry.with_context(listing)?;
        if entry.file_name().to_string_lossy().starts_with(start) {
            return Ok(entry.path());
        }
    }
    let folder = folder.display();
    bail!("{folder} has no {start}*: did the kernel's package make its initial RAM disk?")
}

/// Makes the root disk, which has one file system and no partitions, with the content of a folder.
fn make_disk(disk: &Path, root: &Path, lock: &File) -> Result<()> {
    let made = File::create(disk).and_then(|file| file.set_len(DISK_BYTES));
    made.with_context(|| format!("making {}", disk.display()))?;
    let mut mkfs = Command::new("mkfs.ext4");
    mkfs.args(recipe::ROOT_OPTIONS)
        .arg("-d")
        .args([root, disk])
        // Shares the lock for the case that this program is killed and leaves it running.
        .stdin(Stdio::from(lock.try_clone()?));
    tool::run(&mut mkfs).map(drop)
}
