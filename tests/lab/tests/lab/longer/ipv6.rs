//! An IPv6 cluster: workers in a subnet with IPv6 alone, three control planes with both families; Nodes, pods, Services, etcd's
//! members and the API are reached at IPv6 addresses.

use super::super::cluster::{self, CLUSTER, Network};
use super::super::{PATIENCE, Step, attacks, etcd, pods};
use super::{cilium::policies, rolled, zone};
use anyhow::{Context, Result, ensure};
use ipnet::Ipv6Net;
use lab::aws_state::Instance;
use lab::scenario::{ConnectResult, LIMIT, Lab};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// Ports at which members of the two etcd clusters reach each other.
const PEER_PORTS: [u16; 2] = [2380, 2381];

pub const STEPS: [Step; 13] = [
    ("a hosted zone", zone::make_public_zone),
    ("kctl makes a cluster", make_cluster),
    ("five instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 3)
    }),
    ("kctl says that it is healthy", cluster::expect_healthy),
    (
        "Nodes have IPv6 addresses, and the ranges of their instances for pods",
        expect_nodes,
    ),
    (
        "every member of etcd reports itself, and one leads",
        etcd::expect_reported,
    ),
    ("members of etcd reach each other by IPv6", expect_peers),
    ("the API answers at IPv6 addresses", expect_api),
    ("six pods run, on both workers", pods::run_pods),
    (
        "pods reach each other across nodes, and services by name",
        pods::expect_connections,
    ),
    ("a policy by label", policies::enforce_labels),
    (
        "a stolen worker uses the agent's token",
        attacks::use_plugin_token,
    ),
    ("kctl replaces one instance", |lab| {
        rolled::replace_one(lab)?;
        cluster::expect_healthy(lab)?;
        expect_nodes(lab)?;
        pods::run_pods_again(lab)
    }),
];

fn make_cluster(lab: &mut Lab) -> Result<()> {
    let words = [
        "--ipv6",
        Network::Cilium.argument(),
        "--dns=public",
        "--api-loadbalancer-type=public",
        "--control-plane-zones=us-east-1a,us-east-1b,us-east-1c",
        "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1",
    ];
    cluster::create_cluster(lab, &words)
}

fn expect_nodes(lab: &mut Lab) -> Result<()> {
    let workers = cluster::worker_instances(lab)?;
    for worker in &workers {
        let other = worker.private_address();
        ensure!(other.is_none(), "{} has {other:?} in its VPC", worker.id);
    }
    for instance in [workers, cluster::control_planes(lab, 3)?].concat() {
        let node = lab.get_objects(&["node", &instance.id])?;
        let addresses = node["status"]["addresses"]
            .as_array()
            .context("addresses")?;
        let internal = |one: &&Value| one["type"] == "InternalIP";
        let first = addresses.iter().find(internal).map(|one| &one["address"]);
        let own = ipv6_address(&instance)?;
        ensure!(first == Some(&json!(own)), "{own}: {addresses:?}");
        let range = instance.ipv6_prefixes.first().context("no range of pods")?;
        ensure!(
            node["spec"]["podCIDRs"] == json!([range]),
            "{range}: {}",
            node["spec"]
        );
        ensure!(range.prefix_len() == 80, "{range}");
    }
    let service = lab.get_objects(&["service", "kubernetes"])?;
    let address: Ipv6Addr = text(&service["spec"]["clusterIP"])?.parse()?;
    let services: Ipv6Net = "fd00:5e4f:ce::/108".parse()?;
    ensure!(services.contains(&address), "{address}");
    Ok(())
}

/// The members' names have one address each, and each member is connected to the others there.
fn expect_peers(lab: &mut Lab) -> Result<()> {
    let instances = cluster::control_planes(lab, 3)?;
    for (instance, member) in instances.iter().zip(["a", "b", "c"]) {
        for etcd in ["etcd", "etcd-events"] {
            let name = format!("{etcd}-{member}.internal.{CLUSTER}");
            let own = BTreeSet::from([ipv6_address(instance)?]);
            let seen = resolve_name(lab, &instance.id, &name)?;
            ensure!(seen == own, "{name}: {} sees {seen:?}", instance.id);
            let four = lab.resolve_name(&instance.id, &name)?;
            ensure!(four.is_empty(), "{name} is {four:?} too");
        }
    }
    for instance in &instances {
        let others = instances.iter().filter(|other| other.id != instance.id);
        let others = others.map(ipv6_address).collect::<Result<BTreeSet<_>>>()?;
        for port in PEER_PORTS {
            let peers = connected_to(lab, &instance.id, port)?;
            let four = peers.iter().any(|peer| peer.to_ipv4_mapped().is_some());
            ensure!(
                peers.is_superset(&others) && !four,
                "{} port {port}: {peers:?}",
                instance.id
            );
        }
    }
    Ok(())
}

/// The addresses to whose port a host has connections.
fn connected_to(lab: &Lab, host: &str, port: u16) -> Result<BTreeSet<Ipv6Addr>> {
    let script = format!(
        "ss --no-header --tcp --numeric state established dport = :{port} | awk '{{print $4}}'"
    );
    let said = lab.run_script(host, &script)?;
    let address = |line: &str| {
        let inside = line.rsplit_once(':').map(|(address, _)| address);
        let inside = inside.map(|address| address.trim_matches(['[', ']']));
        let inside = inside.with_context(|| format!("ss says {line:?}"))?;
        inside
            .parse()
            .with_context(|| format!("connected to {inside}"))
    };
    said.lines().map(address).collect()
}

/// Its public name leads to the load balancer, its internal one to the control planes; the operator and a worker reach both.
fn expect_api(lab: &mut Lab) -> Result<()> {
    let world = lab.fetch_world()?;
    let balancers = world.load_balancers.iter().flat_map(|one| &one.addresses);
    let balancers: BTreeSet<Ipv6Addr> = balancers.filter_map(|at| at.ipv6_address).collect();
    ensure!(!balancers.is_empty(), "no balancer has an IPv6 address");
    let worker = cluster::worker_instances(lab)?.remove(0).id;
    let public = format!("api.{CLUSTER}");
    lab.wait_until("the public name leads to the balancer", PATIENCE, |lab| {
        let seen = lab.run(&["getent", "ahostsv6", &public])?;
        let seen = parse_addresses(&seen)?;
        ensure!(seen == balancers, "the operator sees {seen:?}");
        let seen = resolve_name(lab, &worker, &public)?;
        ensure!(seen == balancers, "{worker} sees {seen:?}");
        Ok(())
    })?;
    for address in &balancers {
        let server = format!("--server=https://[{address}]");
        let name = format!("--tls-server-name={public}");
        lab.wait_until(&format!("{address} answers"), LIMIT, |lab| {
            lab.run_kubectl(&["get", "--raw=/readyz", &server, &name])?;
            let seen = lab.connect_from(&worker, (*address).into(), 443)?;
            ensure!(seen == ConnectResult::Open, "{worker}: {seen:?}");
            Ok(())
        })?;
    }
    let internal = format!("api.internal.{CLUSTER}");
    let control_planes = cluster::control_planes(lab, 3)?;
    let own = control_planes
        .iter()
        .map(ipv6_address)
        .collect::<Result<BTreeSet<_>>>()?;
    lab.wait_until("the internal name leads to all", PATIENCE, |lab| {
        let seen = resolve_name(lab, &worker, &internal)?;
        ensure!(seen == own, "{worker} sees {seen:?}");
        Ok(())
    })
}

fn ipv6_address(instance: &Instance) -> Result<Ipv6Addr> {
    let first = instance.ipv6_addresses.first();
    first
        .copied()
        .with_context(|| format!("{} has no IPv6 address", instance.id))
}

/// The IPv6 addresses of a name in a host.
fn resolve_name(lab: &Lab, host: &str, name: &str) -> Result<BTreeSet<Ipv6Addr>> {
    parse_addresses(&lab.exec_in_host(host, &["getent", "ahostsv6", name])?)
}

/// The first words of the lines.
fn parse_addresses(said: &str) -> Result<BTreeSet<Ipv6Addr>> {
    let words = said
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let parse = |word: &str| {
        word.parse()
            .with_context(|| format!("getent says {word:?}"))
    };
    words.map(parse).collect()
}

fn text(value: &Value) -> Result<&str> {
    value
        .as_str()
        .with_context(|| format!("{value} is no text"))
}
