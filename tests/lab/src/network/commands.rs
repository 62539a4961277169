//! `lab network` and `lab partition`: what the network does to each host, and faults on demand.

use super::balancing::{target_key, target_state};
use super::faults::{self, Faults, Partition};
use super::snapshot::{self, Snapshot};
use super::topology::{Host, RouteVia, Topology};
use super::{Error, Result, names};
use crate::lab_paths::LabPaths;
use clap::Args;

/// Cut a host off, or lose its packets; or heal
#[derive(Debug, Args)]
pub struct PartitionArguments {
    /// The host: instance id, address or name. With --heal: all when left out
    #[arg(required_unless_present = "heal")]
    host: Option<String>,
    /// From this host only
    #[arg(long, value_name = "HOST", conflicts_with_all = ["from_balancers", "loss", "only"])]
    from: Option<String>,
    /// Only packets to it, or only those from it
    #[arg(long, value_name = "WAY", conflicts_with_all = ["from_balancers", "loss"])]
    only: Option<Way>,
    /// From load balancers only
    #[arg(long, conflicts_with = "loss")]
    from_balancers: bool,
    /// Instead: so many percent of packets from and to it are lost
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u16).range(0..=100))]
    loss: Option<u16>,
    /// Take back all faults of the host, or of the lab
    #[arg(long, conflicts_with_all = ["from", "from_balancers", "loss", "only"])]
    heal: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Way {
    Inbound,
    Outbound,
}

/// Does what the arguments say and returns what is in force then.
pub fn change_partition(place: &LabPaths, arguments: &PartitionArguments) -> Result<String> {
    let snapshot = snapshot::read_snapshot(place)?;
    let find = |name: &str| find_host(&snapshot, name);
    let host = arguments.host.as_deref().map(find).transpose()?;
    match host {
        _ if arguments.heal => faults::remove_faults(place, host.as_deref())?,
        None => {}
        Some(host) => {
            if let Some(percent) = arguments.loss {
                faults::set_packet_loss(place, &host, percent * 10)?;
            } else {
                let what = match (&arguments.from, arguments.only, arguments.from_balancers) {
                    (Some(other), ..) => Partition::Pair(host, find(other)?),
                    (None, Some(Way::Inbound), _) => Partition::Inbound(host),
                    (None, Some(Way::Outbound), _) => Partition::Outbound(host),
                    (None, None, true) => Partition::FromBalancers(host),
                    (None, None, false) => Partition::Host(host),
                };
                faults::partition_host(place, &what)?;
            }
        }
    }
    describe_network(place)
}

fn find_host(snapshot: &Snapshot, name: &str) -> Result<String> {
    let named = snapshot.world.instances.iter().find(|instance| {
        let short = instance.hostname.split('.').next();
        instance.id == name
            || instance.address.to_string() == name
            || instance
                .ipv6_addresses
                .iter()
                .any(|address| address.to_string() == name)
            || instance.hostname == name
            || short == Some(name)
    });
    named
        .map(|instance| instance.id.clone())
        .ok_or_else(|| Error::Unknown(name.to_owned()))
}

/// Hosts with their way to the internet and their faults, balancers with their targets, and what the lab does not do.
pub fn describe_network(place: &LabPaths) -> Result<String> {
    let snapshot = snapshot::read_snapshot(place)?;
    let faults = faults::read_faults(place)?;
    let topology = Topology::from_world(&snapshot.world)?;
    let mut lines: Vec<String> = topology
        .hosts
        .iter()
        .map(|host| host_line(&topology, host, &faults))
        .collect();
    for balancer in &topology.balancers {
        let addresses: Vec<_> = balancer
            .addresses
            .iter()
            .map(|at| {
                at.public_address.map_or(at.address.to_string(), |public| {
                    format!("{} ({public})", at.address)
                })
            })
            .collect();
        lines.push(format!(
            "{} {} {}",
            balancer.dns_name,
            balancer.scheme,
            addresses.join(", ")
        ));
        for listener in &balancer.listeners {
            let groups = snapshot
                .world
                .target_groups
                .iter()
                .filter(|group| group.arn == listener.target_group);
            for (group, target) in
                groups.flat_map(|group| group.targets.iter().map(move |target| (group, target)))
            {
                lines.push(format!(
                    "  {} {} -> {} {}",
                    listener.protocol,
                    listener.port,
                    target_key(target),
                    target_state(&snapshot.health, group, target)
                ));
            }
        }
    }
    lines.extend(
        snapshot
            .warnings
            .iter()
            .map(|warning| format!("not done: {warning}")),
    );
    lines.push(String::new());
    Ok(lines.join("\n"))
}

fn host_line(topology: &Topology<'_>, host: &Host<'_>, faults: &Faults) -> String {
    let instance = host.instance;
    let internet = match (
        topology.route_of(host.table, names::FRONT.into()),
        instance.public_address,
    ) {
        (RouteVia::InternetGateway, Some(public)) => format!("internet as {public}"),
        (RouteVia::NatGateway(public), _) => format!("internet by NAT as {public}"),
        _ => "no internet".to_owned(),
    };
    let addresses: Vec<_> = std::iter::once(instance.address.to_string())
        .chain(instance.ipv6_addresses.iter().map(ToString::to_string))
        .chain(instance.ipv6_prefixes.iter().map(ToString::to_string))
        .collect();
    let mut line = format!(
        "{} {} {} {} {internet}",
        instance.id,
        addresses.join(","),
        instance.zone,
        instance.security_groups.join(",")
    );
    let own = faults.hosts.get(&instance.id).cloned().unwrap_or_default();
    let words = [
        match (own.inbound, own.outbound) {
            (true, true) => Some("cut off".to_owned()),
            (true, false) => Some("nothing reaches it".to_owned()),
            (false, true) => Some("it reaches nothing".to_owned()),
            (false, false) => None,
        },
        own.from_balancers
            .then(|| "cut off from balancers".to_owned()),
        (own.loss > 0).then(|| format!("loss {}.{} %", own.loss / 10, own.loss % 10)),
    ];
    let pairs = faults
        .pairs
        .iter()
        .filter_map(|(one, other)| match &instance.id {
            id if id == one => Some(format!("cut off from {other}")),
            id if id == other => Some(format!("cut off from {one}")),
            _ => None,
        });
    let ways = faults.ways.iter().filter(|way| way.from == instance.id);
    let ways = ways.map(|way| format!("loses {:?} to {}", way.lost, way.to));
    for word in words.into_iter().flatten().chain(pairs).chain(ways) {
        line.push_str("; ");
        line.push_str(&word);
    }
    line
}
