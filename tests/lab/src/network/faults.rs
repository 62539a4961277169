//! Faults on demand: hosts cut off, from everything, from each other or from balancers; packets lost. They are a
//! file and nft tables of their own, so that they outlive each change of the world and the daemon itself.

mod tables;

use super::error::{Result, add_context};
use super::{netns, routing, snapshot};
use crate::json_file;
use crate::lab_paths::LabPaths;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;

/// All faults of a lab, by instance id.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    pub hosts: BTreeMap<String, HostFaults>,
    /// Pairs that do not reach each other.
    pub pairs: BTreeSet<(String, String)>,
    /// Some packets from one host to another.
    #[serde(default)]
    pub ways: BTreeSet<LossyWay>,
}

/// Packets from one host to another that are lost, in that direction only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LossyWay {
    pub from: String,
    pub to: String,
    pub lost: Lost,
}

/// Which packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lost {
    /// For a port of TCP.
    TcpPort(u16),
    /// Of UDP, with more bytes than that, IP header included.
    UdpLargerThan(u16),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFaults {
    /// Nothing reaches it but what AWS's own hypervisor answers: metadata, names, DHCP.
    pub inbound: bool,
    /// It reaches nothing else.
    pub outbound: bool,
    /// From balancers: their connections, their health checks, and its own to them.
    pub from_balancers: bool,
    /// Of a thousand packets, in each direction.
    pub loss: u16,
}

/// What a partition separates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partition {
    Host(String),
    /// Of the packets between a host and everything else only those to it are lost.
    Inbound(String),
    /// Only those from it.
    Outbound(String),
    Pair(String, String),
    FromBalancers(String),
    Way(LossyWay),
}

/// Cuts a host off; connections that it has starve, nothing is refused.
pub fn partition_host(place: &LabPaths, what: &Partition) -> Result<()> {
    change_faults(place, |faults| match what {
        Partition::Host(id) => {
            let host = faults.hosts.entry(id.clone()).or_default();
            (host.inbound, host.outbound) = (true, true);
        }
        Partition::Inbound(id) => faults.hosts.entry(id.clone()).or_default().inbound = true,
        Partition::Outbound(id) => faults.hosts.entry(id.clone()).or_default().outbound = true,
        Partition::FromBalancers(id) => {
            faults.hosts.entry(id.clone()).or_default().from_balancers = true;
        }
        Partition::Way(way) => {
            faults.ways.insert(way.clone());
        }
        Partition::Pair(one, other) => {
            faults
                .pairs
                .insert((one.min(other).clone(), one.max(other).clone()));
        }
    })
}

/// Loses that many of a thousand packets from and to the host, at random.
pub fn set_packet_loss(place: &LabPaths, instance: &str, per_mille: u16) -> Result<()> {
    change_faults(place, |faults| {
        faults.hosts.entry(instance.to_owned()).or_default().loss = per_mille.min(1000);
    })
}

/// Takes back every fault of a host, or of all.
pub fn remove_faults(place: &LabPaths, instance: Option<&str>) -> Result<()> {
    change_faults(place, |faults| match instance {
        None => *faults = Faults::default(),
        Some(id) => {
            faults.hosts.remove(id);
            faults.pairs.retain(|(one, other)| one != id && other != id);
            faults.ways.retain(|way| way.from != id && way.to != id);
        }
    })
}

/// What is in force.
pub fn read_faults(place: &LabPaths) -> Result<Faults> {
    Ok(json_file::read_json(&faults_file(place))?.unwrap_or_default())
}

/// Loads the tables again, for links that came meanwhile.
pub fn reload_tables(place: &LabPaths) -> Result<()> {
    let _lock = lock_faults(place)?;
    load_tables(place, &read_faults(place)?)
}

fn faults_file(place: &LabPaths) -> PathBuf {
    place.run().join("faults.json")
}

fn change_faults(place: &LabPaths, change: impl FnOnce(&mut Faults)) -> Result<()> {
    let _lock = lock_faults(place)?;
    let mut faults = read_faults(place)?;
    change(&mut faults);
    faults
        .hosts
        .retain(|_, host| *host != HostFaults::default());
    json_file::write_json(&faults_file(place), &faults)?;
    load_tables(place, &faults)
}

/// The daemon and commands change faults at the same time; the lock goes when the file is closed.
fn lock_faults(place: &LabPaths) -> Result<File> {
    let path = place.run().join("faults.lock");
    let what = format!("locking {}", path.display());
    let file = File::create(&path).map_err(add_context(what.clone()))?;
    file.lock().map_err(add_context(what))?;
    Ok(file)
}

fn load_tables(place: &LabPaths, faults: &Faults) -> Result<()> {
    let netns = place.router_netns();
    let world = snapshot::read_snapshot(place)?.world;
    netns::retry_until_settled(|| {
        let links = routing::observe_links(&netns)?;
        netns::load_ruleset(&netns, &tables::fault_ruleset(faults, &world, &links))
    })
}
