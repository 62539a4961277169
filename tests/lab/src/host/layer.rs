//! The layer between image and host: what makes a distribution a machine image of EC2, and what depends on the machine the
//! lab runs on and on the lab.

use super::image::{Image, write_file};
use super::recipe::{self, Release};
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All that a host's root file system lies on, by release: the lab's files over the distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerLayers(BTreeMap<Release, [PathBuf; 2]>);

impl LowerLayers {
    /// Prepares the images of all releases, with the lab's files in layers over them.
    pub fn prepare_layers(
        cache: &Path,
        place: &LabPaths,
        ledger: &Ledger,
        authority: &str,
    ) -> Result<Self> {
        let layers = Release::ALL.into_iter().map(|release| {
            let image = Image::prepare_image(cache, release)?;
            Ok((release, image.add_layer(place, ledger, authority)?))
        });
        layers.collect::<Result<_>>().map(Self)
    }

    /// The layers of a machine image, uppermost first: of one that the lab does not have, those of another, whose first process says so.
    pub(super) fn find_layers(&self, image: &str) -> Result<&[PathBuf; 2]> {
        let release = Release::find_release(image).unwrap_or(Release::Bookworm);
        self.0.get(&release).context("no image was prepared")
    }
}

/// A module of the kernel that Kubernetes, its companions or the lab load: where it lies in a tree of modules, and the
/// option of the kernel that builds it in.
const MODULES: [(&str, &str); 16] = [
    ("kernel/fs/overlayfs/overlay.ko", "OVERLAY_FS"),
    ("kernel/net/bridge/bridge.ko", "BRIDGE"),
    ("kernel/net/bridge/br_netfilter.ko", "BRIDGE_NETFILTER"),
    ("kernel/net/netfilter/nf_conntrack.ko", "NF_CONNTRACK"),
    ("kernel/net/netfilter/nf_tables.ko", "NF_TABLES"),
    ("kernel/net/netfilter/ipset/ip_set.ko", "IP_SET"),
    ("kernel/net/ipv4/netfilter/ip_tables.ko", "IP_NF_IPTABLES"),
    ("kernel/net/ipv4/netfilter/iptable_nat.ko", "IP_NF_NAT"),
    ("kernel/net/ipv6/netfilter/ip6_tables.ko", "IP6_NF_IPTABLES"),
    ("kernel/net/netfilter/ipvs/ip_vs.ko", "IP_VS"),
    ("kernel/drivers/block/loop.ko", "BLK_DEV_LOOP"),
    ("kernel/drivers/net/vxlan/vxlan.ko", "VXLAN"),
    ("kernel/drivers/net/wireguard/wireguard.ko", "WIREGUARD"),
    ("kernel/drivers/net/veth.ko", "VETH"),
    ("kernel/drivers/net/tun.ko", "TUN"),
    ("kernel/fs/fuse/fuse.ko", "FUSE_FS"),
];

impl Image {
    /// The image with the lab's files, this machine's kernel and the lab's certificate authority (PEM) in it. To be called
    /// before the first host boots: a layer in use may not change.
    fn add_layer(
        &self,
        place: &LabPaths,
        ledger: &Ledger,
        authority: &str,
    ) -> Result<[PathBuf; 2]> {
        let name = format!("layer-{}", self.release.suite());
        let layer = place.data_folder().join(name);
        ledger.record(&LedgerEntry::Directory {
            path: layer.clone(),
        })?;
        write_system_files(&layer)?;
        write_builtin_modules(&layer)?;
        trust_authority(&self.root, &layer, authority)?;
        Ok([layer, self.root.clone()])
    }
}

/// Adds an authority (PEM) to those that a distribution trusts. The files go to `layer`, which may be the distribution itself.
pub(super) fn trust_authority(root: &Path, layer: &Path, authority: &str) -> Result<()> {
    let bundle = Path::new("etc/ssl/certs/ca-certificates.crt");
    let theirs = root.join(bundle);
    let theirs =
        fs::read_to_string(&theirs).with_context(|| format!("reading {}", theirs.display()))?;
    write_file(&layer.join(bundle), 0o644, &format!("{theirs}{authority}"))?;
    write_file(
        &layer.join("usr/local/share/ca-certificates/kctl-lab.crt"),
        0o644,
        authority,
    )
}

fn write_system_files(layer: &Path) -> Result<()> {
    for file in recipe::FILES.iter().chain(&recipe::HOST_FILES) {
        write_file(&layer.join(file.path), file.mode, file.content)?;
    }
    let units = layer.join("etc/systemd/system");
    fs::create_dir_all(&units).with_context(|| format!("making {}", units.display()))?;
    for unit in recipe::masked_units() {
        match symlink("/dev/null", units.join(unit)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("masking {unit}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Names what the running kernel has as built in, so that modprobe succeeds for that and nothing else: hosts may not
/// load modules into the machine's kernel.
fn write_builtin_modules(layer: &Path) -> Result<()> {
    let release =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("reading the kernel's release")?;
    let options = Command::new("zcat").arg("/proc/config.gz").output();
    let options = options.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let options = options.context("starting zcat")?;
    let present = MODULES.iter().filter(|(path, option)| {
        let built_in = options
            .lines()
            .any(|line| line == format!("CONFIG_{option}=y"));
        built_in || has_kernel_module(path)
    });
    let paths: Vec<&str> = present.map(|(path, _)| *path).collect();
    // /lib is a link to usr/lib in the image.
    let folder = layer.join("usr/lib/modules").join(release.trim());
    write_file(
        &folder.join("modules.builtin"),
        0o644,
        &(paths.join("\n") + "\n"),
    )?;
    write_file(&folder.join("modules.builtin.modinfo"), 0o644, "")?;
    write_file(&folder.join("modules.order"), 0o644, "")
}

/// Whether the machine's kernel has a module, loading it if it is a file.
fn has_kernel_module(path: &str) -> bool {
    let name = Path::new(path).file_stem().unwrap_or_default();
    let modprobe = || {
        Command::new("modprobe")
            .arg(name)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    Path::new("/sys/module").join(name).exists() || modprobe()
}
