//! Clusters with a hosted zone. A public one, and kubenet: the API's names follow the control plane, the VPC's routes lead to
//! pods. A private one: machines find each other by name, and the operator the API by its load balancer's.

use super::{CLUSTER, CONTROL_PLANE, PATIENCE, Step, cluster, pods};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use lab::world::Instance;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Holds the cluster's name.
const ZONE: &str = "example.com";

/// How long resolvers may keep an address, seconds: the life of kctl's records.
const LIFE: u32 = 60;

pub const STEPS: [Step; 12] = [
    ("a hosted zone", public),
    ("kctl makes a cluster", |lab| {
        cluster::make(lab, &["--dns=public", "--networking=kubenet"])
    }),
    ("three machines become Ready nodes", cluster::ready),
    ("kctl says that it is healthy", cluster::healthy),
    ("names are those of the control plane", names),
    ("routes lead to the pods of each node", routes),
    ("six pods run, on both workers", pods::run),
    (
        "pods reach each other across nodes, and services by name",
        pods::reach,
    ),
    ("logs, exec and port-forward", pods::operator),
    ("names and routes follow another control plane", replaced),
    ("pods still reach each other", pods::reach),
    ("logs, exec and port-forward again", pods::operator),
];

pub const PRIVATE_STEPS: [Step; 6] = [
    ("a private hosted zone", private),
    ("kctl makes a cluster", |lab| {
        let balancer = "--api-loadbalancer-type=public";
        cluster::make(lab, &["--dns=private", "--networking=flannel", balancer])
    }),
    ("three machines become Ready nodes", cluster::ready),
    ("kctl says that it is healthy", cluster::healthy),
    ("names are the control plane's and the balancer's", shared),
    ("six pods run, on both workers", pods::run),
];

fn public(lab: &mut Lab) -> Result<()> {
    let asked = json!({"Name": ZONE, "CallerReference": "join"});
    lab.aws("route53", "CreateHostedZone", &asked).map(drop)
}

/// AWS makes it with a VPC: one that is there already. kctl adds the cluster's.
fn private(lab: &mut Lab) -> Result<()> {
    let vpc = lab.aws("ec2", "CreateVpc", &json!({"CidrBlock": "10.99.0.0/16"}))?;
    let vpc = &vpc["Vpc"]["VpcId"];
    let asked = json!({
        "Name": ZONE,
        "CallerReference": "join",
        "VPC": {"VPCRegion": "us-east-1", "VPCId": vpc},
        "HostedZoneConfig": {"PrivateZone": true, "Comment": ""},
    });
    lab.aws("route53", "CreateHostedZone", &asked).map(drop)
}

/// With a balancer that machines do not use: only its name is not the control plane's.
fn shared(lab: &mut Lab) -> Result<()> {
    let (control, worker) = (
        cluster::control_plane(lab)?,
        cluster::workers(lab)?.remove(0),
    );
    for name in ["api.internal", "kops-controller.internal"] {
        becomes(lab, &worker, &format!("{name}.{CLUSTER}"), control.address)?;
    }
    let balancers = lab.world()?.load_balancers;
    let mut addresses = balancers.iter().flat_map(|one| &one.addresses);
    let address = addresses.find_map(|one| one.public_address);
    let address = address.context("no balancer with a public address")?;
    let seen = lab.lookup(&worker.id, &format!("api.{CLUSTER}"))?;
    ensure!(
        seen == [address],
        "{} sees {seen:?}, not {address}",
        worker.id
    );
    Ok(())
}

/// Waits until the zone has an address for a name, and a worker sees it.
fn becomes(lab: &Lab, worker: &Instance, name: &str, address: Ipv4Addr) -> Result<()> {
    lab.until(&format!("{name} is {address}"), PATIENCE, |lab| {
        let said = published(lab, name)?;
        ensure!(said == (vec![address], LIFE), "the zone has {said:?}");
        let seen = lab.lookup(&worker.id, name)?;
        ensure!(seen == [address], "{} sees {seen:?}", worker.id);
        Ok(())
    })
}

/// What the zone says of a name: addresses, and how long they may be kept.
fn published(lab: &Lab, name: &str) -> Result<(Vec<Ipv4Addr>, u32)> {
    let zones = lab.world()?.hosted_zones;
    let mut records = zones.into_iter().flat_map(|zone| zone.records);
    let found = records.find(|record| record.name == name && record.record_type == "A");
    let found = found.with_context(|| format!("no zone has {name}"))?;
    let addresses = found.values.iter().map(|value| value.parse());
    Ok((addresses.collect::<Result<_, _>>()?, found.ttl))
}

fn names(lab: &mut Lab) -> Result<()> {
    let control = cluster::control_plane(lab)?;
    follow(lab, &control)
}

/// Waits until the API's names are a control plane's, in the zone, for workers, and for the operator.
fn follow(lab: &Lab, control: &Instance) -> Result<()> {
    let public = control.public_address.context("no public address")?;
    let worker = cluster::workers(lab)?.remove(0);
    for (name, address) in [
        (format!("api.{CLUSTER}"), public),
        (format!("api.internal.{CLUSTER}"), control.address),
        (
            format!("kops-controller.internal.{CLUSTER}"),
            control.address,
        ),
    ] {
        becomes(lab, &worker, &name, address)?;
    }
    lab.until("the API answers the operator", PATIENCE, |lab| {
        lab.kubectl(&["get", "--raw=/readyz"]).map(drop)
    })
}

/// Which instance each node's range of pods has to lead to.
fn ranges(lab: &Lab) -> Result<BTreeMap<String, String>> {
    let nodes = lab.objects(&["nodes"])?;
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

fn routes(lab: &mut Lab) -> Result<()> {
    lab.until("there is a route to each node's pods", PATIENCE, |lab| {
        let wanted = ranges(lab)?;
        ensure!(wanted.len() == 3, "ranges of three nodes: {wanted:?}");
        let mut found = BTreeMap::new();
        for route in lab
            .world()?
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

fn replaced(lab: &mut Lab) -> Result<()> {
    let old = cluster::control_plane(lab)?;
    lab.aws(
        "ec2",
        "TerminateInstances",
        &json!({"InstanceIds": [old.id]}),
    )?;
    let new = lab.until("another control plane runs", PATIENCE, |lab| {
        let new = lab.members(CONTROL_PLANE, 1)?.remove(0);
        ensure!(new.id != old.id, "it is still {}", old.id);
        Ok(new)
    })?;
    ensure!(new.address != old.address, "both are at {}", old.address);
    follow(lab, &new)?;
    cluster::becomes_ready(lab, &new.id)?;
    lab.until("the old node is gone", PATIENCE, |lab| {
        let ranges = ranges(lab)?;
        ensure!(!ranges.values().any(|name| *name == old.id), "{ranges:?}");
        Ok(())
    })?;
    cluster::healthy(lab)?;
    routes(lab)
}
