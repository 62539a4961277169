//! Clusters with a hosted zone. With a public zone and kubenet, the API's names follow the control plane and the VPC's routes lead to
//! pods. With a private zone, instances use the names, and the operator uses the name of the API's load balancer.

use super::super::cluster::{self, CLUSTER};
use super::super::{PATIENCE, Step, pods};
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::scenario::Lab;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The hosted zone.
const ZONE: &str = "example.com";

/// TTL of kctl's records in seconds.
const LIFE: u32 = 60;

pub const STEPS: [Step; 13] = [
    ("a hosted zone", make_public_zone),
    ("kctl makes a cluster", |lab| {
        cluster::create_cluster(lab, &["--dns=public", "--networking=kubenet"])
    }),
    ("three instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 1)
    }),
    ("kctl says that it is healthy", cluster::expect_healthy),
    ("names are those of the control plane", expect_names),
    (
        "a Service gets its name in the zone and loses it again",
        publish_service,
    ),
    ("routes lead to the pods of each node", expect_routes),
    ("six pods run, on both workers", pods::run_pods),
    (
        "pods reach each other across nodes, and services by name",
        pods::expect_connections,
    ),
    ("logs, exec and port-forward", pods::read_logs_and_forward),
    (
        "names and routes follow another control plane",
        replace_control_plane,
    ),
    ("pods still reach each other", pods::expect_connections),
    (
        "logs, exec and port-forward again",
        pods::read_logs_and_forward,
    ),
];

pub const PRIVATE_STEPS: [Step; 6] = [
    ("a private hosted zone", make_private_zone),
    ("kctl makes a cluster", |lab| {
        let balancer = "--api-loadbalancer-type=public";
        cluster::create_cluster(lab, &["--dns=private", "--networking=flannel", balancer])
    }),
    ("three instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 1)
    }),
    ("kctl says that it is healthy", cluster::expect_healthy),
    (
        "names are the control plane's and the balancer's",
        expect_shared_names,
    ),
    ("six pods run, on both workers", pods::run_pods),
];

pub fn make_public_zone(lab: &mut Lab) -> Result<()> {
    let asked = json!({"Name": ZONE, "CallerReference": "join"});
    lab.call_aws("route53", "CreateHostedZone", &asked)
        .map(drop)
}

/// AWS creates a private zone only with a VPC. kctl associates the cluster's VPC later.
fn make_private_zone(lab: &mut Lab) -> Result<()> {
    let vpc = lab.call_aws("ec2", "CreateVpc", &json!({"CidrBlock": "10.99.0.0/16"}))?;
    let vpc = &vpc["Vpc"]["VpcId"];
    let asked = json!({
        "Name": ZONE,
        "CallerReference": "join",
        "VPC": {"VPCRegion": "us-east-1", "VPCId": vpc},
        "HostedZoneConfig": {"PrivateZone": true, "Comment": ""},
    });
    lab.call_aws("route53", "CreateHostedZone", &asked)
        .map(drop)
}

/// The load balancer is for the operator only: every other name resolves to the control plane.
fn expect_shared_names(lab: &mut Lab) -> Result<()> {
    let (control, worker) = (
        cluster::control_plane(lab, 0)?,
        cluster::worker_instances(lab)?.remove(0),
    );
    let names = [
        "api.internal",
        "kops-controller.internal",
        "etcd-a.internal",
        "etcd-events-a.internal",
    ];
    for name in names {
        expect_address(lab, &worker, &format!("{name}.{CLUSTER}"), control.address)?;
    }
    let balancers = lab.fetch_world()?.load_balancers;
    let mut addresses = balancers.iter().flat_map(|one| &one.addresses);
    let address = addresses.find_map(|one| one.public_address);
    let address = address.context("no balancer with a public address")?;
    let seen = lab.resolve_name(&worker.id, &format!("api.{CLUSTER}"))?;
    ensure!(
        seen == [address],
        "{} sees {seen:?}, not {address}",
        worker.id
    );
    Ok(())
}

/// Waits until the zone has this address for the name, and a worker resolves it.
fn expect_address(lab: &Lab, worker: &Instance, name: &str, address: Ipv4Addr) -> Result<()> {
    lab.wait_until(&format!("{name} is {address}"), PATIENCE, |lab| {
        let said = published_addresses(lab, name)?;
        ensure!(said == (vec![address], LIFE), "the zone has {said:?}");
        let seen = lab.resolve_name(&worker.id, name)?;
        ensure!(seen == [address], "{} sees {seen:?}", worker.id);
        Ok(())
    })
}

/// Addresses and TTL of a name in the zone.
fn published_addresses(lab: &Lab, name: &str) -> Result<(Vec<Ipv4Addr>, u32)> {
    let zones = lab.fetch_world()?.hosted_zones;
    let mut records = zones.into_iter().flat_map(|zone| zone.records);
    let found = records.find(|record| record.name == name && record.record_type == "A");
    let found = found.with_context(|| format!("no zone has {name}"))?;
    let addresses = found.values.iter().map(|value| value.parse());
    Ok((addresses.collect::<Result<_, _>>()?, found.ttl))
}

fn expect_names(lab: &mut Lab) -> Result<()> {
    let control = cluster::control_plane(lab, 0)?;
    expect_names_of(lab, &control)
}

/// Waits until the names of the API and of etcd's members resolve to this control plane, in the zone and on a worker, and the operator
/// reaches the API.
fn expect_names_of(lab: &Lab, control: &Instance) -> Result<()> {
    let public = control.public_address.context("no public address")?;
    let worker = cluster::worker_instances(lab)?.remove(0);
    for (name, address) in [
        (format!("api.{CLUSTER}"), public),
        (format!("api.internal.{CLUSTER}"), control.address),
        (
            format!("kops-controller.internal.{CLUSTER}"),
            control.address,
        ),
        (format!("etcd-a.internal.{CLUSTER}"), control.address),
        (format!("etcd-events-a.internal.{CLUSTER}"), control.address),
    ] {
        expect_address(lab, &worker, &name, address)?;
    }
    lab.wait_until("the API answers the operator", PATIENCE, |lab| {
        lab.run_kubectl(&["get", "--raw=/readyz"]).map(drop)
    })
}

/// A Service with node ports: its name leads to the workers, and goes with it.
fn publish_service(lab: &mut Lab) -> Result<()> {
    let name = format!("web.{CLUSTER}");
    let workers = cluster::worker_instances(lab)?;
    let wanted: BTreeSet<Ipv4Addr> = workers.iter().map(|one| one.address).collect();
    lab.run_kubectl(&["create", "service", "nodeport", "web", "--tcp=80"])?;
    let annotation = format!("dns.alpha.kubernetes.io/internal={name}");
    lab.run_kubectl(&["annotate", "service", "web", &annotation])?;
    lab.wait_until(&format!("{name} leads to the workers"), PATIENCE, |lab| {
        let (said, life) = published_addresses(lab, &name)?;
        let said: BTreeSet<Ipv4Addr> = said.into_iter().collect();
        ensure!(
            (&said, life) == (&wanted, LIFE),
            "the zone has {said:?}, {life} seconds"
        );
        let worker = workers.first().context("no worker")?;
        let seen = lab.resolve_name(&worker.id, &name)?.into_iter();
        let seen: BTreeSet<Ipv4Addr> = seen.collect();
        ensure!(seen == wanted, "{} sees {seen:?}", worker.id);
        Ok(())
    })?;
    lab.run_kubectl(&["delete", "service", "web"])?;
    lab.wait_until(&format!("{name} is gone"), PATIENCE, |lab| {
        let found = published_addresses(lab, &name);
        ensure!(found.is_err(), "the zone has {found:?}");
        Ok(())
    })
}

/// The instance of each node's pod CIDR.
fn pod_ranges(lab: &Lab) -> Result<BTreeMap<String, String>> {
    let nodes = lab.get_objects(&["nodes"])?;
    let nodes = nodes["items"].as_array().context("nodes")?;
    let range = |node: &Value| {
        let (name, range) = (&node["metadata"]["name"], &node["spec"]["podCIDR"]);
        let range = range
            .as_str()
            .with_context(|| format!("{name} has no range"))?;
        Ok((
            range.to_owned(),
            name.as_str().context("a name")?.to_owned(),
        ))
    };
    nodes.iter().map(range).collect()
}

fn expect_routes(lab: &mut Lab) -> Result<()> {
    lab.wait_until("there is a route to each node's pods", PATIENCE, |lab| {
        let wanted = pod_ranges(lab)?;
        ensure!(wanted.len() == 3, "ranges of three nodes: {wanted:?}");
        let mut found = BTreeMap::new();
        for route in lab
            .fetch_world()?
            .route_tables
            .into_iter()
            .flat_map(|one| one.routes)
        {
            if let Some(instance) = route.instance {
                ensure!(!route.blackhole, "{} leads nowhere", route.destination);
                found.insert(route.destination, instance);
            }
        }
        ensure!(found == wanted, "wanted {wanted:?}, there is {found:?}");
        Ok(())
    })
}

fn replace_control_plane(lab: &mut Lab) -> Result<()> {
    let old = cluster::control_plane(lab, 0)?;
    lab.call_aws(
        "ec2",
        "TerminateInstances",
        &json!({"InstanceIds": [old.id]}),
    )?;
    let new = lab.wait_until("another control plane runs", PATIENCE, |lab| {
        let new = cluster::control_plane(lab, 0)?;
        ensure!(new.id != old.id, "it is still {}", old.id);
        Ok(new)
    })?;
    ensure!(new.address != old.address, "both are at {}", old.address);
    expect_names_of(lab, &new)?;
    cluster::becomes_ready(lab, &new.id)?;
    lab.wait_until("the old node is gone", PATIENCE, |lab| {
        let ranges = pod_ranges(lab)?;
        ensure!(!ranges.values().any(|name| *name == old.id), "{ranges:?}");
        Ok(())
    })?;
    cluster::expect_healthy(lab)?;
    expect_routes(lab)
}
