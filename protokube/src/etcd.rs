//! etcd on this machine: one member of each etcd cluster, on a volume that makes it what it is. What to do next is decided in
//! `node::etcd`; here it is carried out, and everything is looked at again.
//!
//! The manifest lies on the volume and the folder of manifests has a link to it, so kubelet cannot run etcd without its volume. A
//! member that founds its cluster has a manifest that says so. A manifest that kubelet runs is left as it is, because to change it is to
//! restart etcd under the API server; it says that the cluster exists from the next start of the machine on, before kubelet can read it.

mod disk;
mod formation;
mod manifest;
mod member;
mod running;
mod settings;
mod volumes;
mod work;

pub use disk::Disk;
pub use formation::Formation;
pub use member::{Member, Outcome};
pub use running::{Http, Members, Peer, Running};
pub use settings::Settings;

use anyhow::Context;
use std::collections::BTreeMap;
use tokio::sync::watch;

/// Which etcd clusters have their member here formed, healthy, and running as a member of what exists.
pub type Settled = watch::Sender<BTreeMap<String, bool>>;

/// A token that never was: 128 random bits, hex.
pub fn token() -> anyhow::Result<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).context("the machine has no random numbers")?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}
