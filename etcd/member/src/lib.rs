//! etcd on a control plane: one member of each etcd cluster, with its data on a volume. `etcd_rules` decides the next step; this
//! crate carries it out and observes again.
//!
//! The manifest is on the volume, and kubelet's folder of manifests has a link to it, so kubelet cannot run etcd without its volume.
//! The first manifest of a new cluster says that the member founds it. A running manifest is never changed, because kubelet would
//! restart etcd below the API server. It is rewritten at the next boot, before kubelet can read it, to say that the cluster exists.

// Much is public for the tests of protokube only.
#![warn(unreachable_pub)]

pub mod api_manifests;
pub mod backup;
mod certificates;
pub mod changes;
mod commands;
mod data_restore;
mod disk;
mod disk_worker;
pub mod ec2;
pub mod etcd_backup;
mod gateway;
pub mod hosts;
mod log_files;
mod maintenance;
mod manifest;
mod member;
mod peers;
mod replacement;
mod restored_log;
mod resume;
mod running;
mod scratch;
mod settings;
mod snapshot_restore;
mod static_pod;
mod status;
mod unix_http;
mod unusable;
mod upgrade;
mod upkeep;
mod volumes;

pub(crate) use disk_worker::run_blocking;
pub(crate) use restored_log::LOG_FILE;
pub(crate) use scratch::{ALL_KEYS, EtcdContainers, ScratchGateway, WORK};
pub(crate) use unusable::{UnusableSnapshot, judge_snapshot};

pub use commands::{COMMAND_INTERVAL, CommandMemory, CommandRole};
pub use disk::EtcdDisk;
pub use gateway::EtcdGateway;
pub use maintenance::{DEFRAGMENT_TIMEOUT, DataHash, EtcdMaintenance};
pub use manifest::running_member;
pub use member::{EtcdMember, StepOutcome};
pub use peers::EtcdQuorum;
pub use running::{EtcdHttp, EtcdMembers, EtcdPeer, RunningEtcd};
pub use settings::MemberSettings;
pub use status::StatusReporter;
pub use upkeep::{MemberVolume, UpkeepMemory, UpkeepRole};

use anyhow::Context;
use aws_client::store::Version;
use std::collections::BTreeMap;
use tokio::sync::watch;

/// For each etcd cluster, whether the local member is healthy and its cluster formed.
pub type SettledClusters = watch::Sender<BTreeMap<String, bool>>;

/// For each etcd cluster, the version of its formation record as it was listed last.
pub type ListedRecords = watch::Sender<BTreeMap<String, Version>>;

/// A new random token: 128 bits, hex.
pub fn new_token() -> anyhow::Result<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).context("could not get random numbers from the kernel")?;
    Ok(node::digest::to_hex(&bits))
}
