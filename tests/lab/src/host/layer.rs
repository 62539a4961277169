//! The layer between image and host: what makes a distribution a machine image of EC2, and what depends on the machine the
//! lab runs on and on the lab.

use super::image::{Image, write};
use super::recipe;
use crate::ledger::{Ledger, Made};
use crate::place::Place;
use anyhow::{Context, Result};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All that a host's root file system lies on, uppermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lower(pub Vec<PathBuf>);

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
    pub fn with_layer(
        &self,
        place: &Place,
        ledger: &Ledger,
        authority: Option<&str>,
    ) -> Result<Lower> {
        let layer = place.data().join("layer");
        ledger.record(&Made::Directory {
            path: layer.clone(),
        })?;
        system(&layer)?;
        modules(&layer)?;
        if let Some(authority) = authority {
            self.trust(&layer, authority)?;
        }
        Ok(Lower(vec![layer, self.root.clone()]))
    }

    fn trust(&self, layer: &Path, authority: &str) -> Result<()> {
        let bundle = Path::new("etc/ssl/certs/ca-certificates.crt");
        let theirs = self.root.join(bundle);
        let theirs =
            fs::read_to_string(&theirs).with_context(|| format!("reading {}", theirs.display()))?;
        write(&layer.join(bundle), 0o644, &format!("{theirs}{authority}"))?;
        write(
            &layer.join("usr/local/share/ca-certificates/kctl-lab.crt"),
            0o644,
            authority,
        )
    }
}

fn system(layer: &Path) -> Result<()> {
    for file in &recipe::FILES {
        write(&layer.join(file.path), file.mode, file.content)?;
    }
    let units = layer.join("etc/systemd/system");
    fs::create_dir_all(&units).with_context(|| format!("making {}", units.display()))?;
    for unit in recipe::masked() {
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
fn modules(layer: &Path) -> Result<()> {
    let release =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("reading the kernel's release")?;
    let options = Command::new("zcat").arg("/proc/config.gz").output();
    let options = options.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let options = options.context("starting zcat")?;
    let present = MODULES.iter().filter(|(path, option)| {
        let built_in = options
            .lines()
            .any(|line| line == format!("CONFIG_{option}=y"));
        built_in || loaded(path)
    });
    let paths: Vec<&str> = present.map(|(path, _)| *path).collect();
    // /lib is a link to usr/lib in the image.
    let folder = layer.join("usr/lib/modules").join(release.trim());
    write(
        &folder.join("modules.builtin"),
        0o644,
        &(paths.join("\n") + "\n"),
    )?;
    write(&folder.join("modules.builtin.modinfo"), 0o644, "")?;
    write(&folder.join("modules.order"), 0o644, "")
}

/// Whether the machine's kernel has a module, loading it if it is a file.
fn loaded(path: &str) -> bool {
    let name = Path::new(path).file_stem().unwrap_or_default();
    let modprobe = || {
        Command::new("modprobe")
            .arg(name)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    Path::new("/sys/module").join(name).exists() || modprobe()
}
