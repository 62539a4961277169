//! Two instances that run `by-hand.sh`, and the volume of etcd.

use super::network::{NAME, Network, ZONE, text};
use super::{Cluster, PATIENCE, content};
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lab::content::Served;
use lab::scenario::Lab;
use lab::world::InstanceState;
use model::catalog::Component;
use model::pki::{KeyAlgorithm, Keyset, SystemKeys, mint};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const SCRIPT: &str = include_str!("by-hand.sh");

/// The control plane's, which the worker has to know.
pub const API: &str = "10.0.0.10";
const WORKER: &str = "10.0.0.11";
pub const CLUSTER_PODS: &str = "100.96.0.0/11";
/// Pods of control plane and worker.
pub const PODS: [&str; 2] = ["100.96.1.0/24", "100.96.2.0/24"];

pub struct Machines {
    /// Instances.
    pub control: String,
    pub worker: String,
    volume: String,
    /// Signs all certificates of the cluster.
    pub authority: Keyset,
}

type Variables = Vec<(&'static str, String)>;

pub fn launch(lab: &Lab, network: &Network, served: &Served) -> Result<Machines> {
    let mut keys = SystemKeys::at(time::OffsetDateTime::now_utc());
    let authority = mint(NAME, KeyAlgorithm::EcdsaP256, &mut keys)?;
    let volume = json!({"AvailabilityZone": ZONE, "Size": 1, "VolumeType": "gp3"});
    let volume = text(&lab.aws("ec2", "CreateVolume", &volume)?, "/VolumeId")?;
    let common = common(&authority, served)?;
    let with = |more: Variables| user_data(common.iter().cloned().chain(more).collect());
    let control = with(control_plane(&authority, served)?);
    let profile = json!({"IamInstanceProfile": {"Name": NAME}});
    let control = run(lab, network, API, &control, &profile)?;
    let worker = with(vec![
        ("ROLE", "worker".to_owned()),
        ("PODS", PODS[1].to_owned()),
    ]);
    let worker = run(lab, network, WORKER, &worker, &json!({}))?;
    Ok(Machines {
        control,
        worker,
        volume,
        authority,
    })
}

fn key(authority: &Keyset) -> Result<&str> {
    let key = authority.primary()?.key.as_ref();
    Ok(key.context("the authority's key")?.reveal())
}

fn common(authority: &Keyset, served: &Served) -> Result<Variables> {
    Ok(vec![
        ("API", API.to_owned()),
        // As secret as the key.
        ("TOKEN", format!("{:x}", Sha256::digest(key(authority)?))),
        ("CA", STANDARD.encode(&authority.primary()?.certificate)),
        ("CLUSTER_PODS", CLUSTER_PODS.to_owned()),
        ("CNI_URL", content::url(Component::CniPlugins)?),
        ("CONTAINERD_URL", content::url(Component::Containerd)?),
        ("KUBELET_URL", content::url(Component::Kubelet)?),
        ("RUNC_URL", content::url(Component::Runc)?),
        ("PAUSE", content::image(served, "registry.k8s.io/pause")?),
    ])
}

fn control_plane(authority: &Keyset, served: &Served) -> Result<Variables> {
    let mut all = vec![
        ("ROLE", "control-plane".to_owned()),
        ("PODS", PODS[0].to_owned()),
        ("CA_KEY", STANDARD.encode(key(authority)?)),
    ];
    for (name, repository) in [
        ("ETCD", "registry.k8s.io/etcd"),
        ("APISERVER", "registry.k8s.io/kube-apiserver"),
        ("CONTROLLERS", "registry.k8s.io/kube-controller-manager"),
        ("SCHEDULER", "registry.k8s.io/kube-scheduler"),
    ] {
        all.push((name, content::image(served, repository)?));
    }
    Ok(all)
}

/// The script after its variables, none of which has a quote in it.
fn user_data(variables: Variables) -> String {
    let lines = variables
        .into_iter()
        .map(|(name, value)| format!("{name}='{value}'\n"));
    format!("#!/bin/sh\n{}{SCRIPT}", lines.collect::<String>())
}

fn run(
    lab: &Lab,
    network: &Network,
    address: &str,
    user_data: &str,
    more: &Value,
) -> Result<String> {
    ensure!(
        user_data.len() <= 16384,
        "{} bytes of user data",
        user_data.len()
    );
    let images = lab.aws("ec2", "DescribeImages", &json!({}))?;
    let mut asked = json!({
        "ImageId": text(&images, "/Images/0/ImageId")?,
        "InstanceType": "m6i.large", "MinCount": 1, "MaxCount": 1, "UserData": user_data,
        "NetworkInterfaces": [{
            "DeviceIndex": 0, "SubnetId": network.subnet, "Groups": [network.group],
            "PrivateIpAddress": address, "AssociatePublicIpAddress": true,
        }],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "TagSpecifications": [{
            "ResourceType": "instance",
            "Tags": [{"Key": format!("kubernetes.io/cluster/{NAME}"), "Value": "owned"}],
        }],
    });
    let more = more.as_object().context("parameters")?.clone();
    asked.as_object_mut().context("parameters")?.extend(more);
    text(
        &lab.aws("ec2", "RunInstances", &asked)?,
        "/Instances/0/InstanceId",
    )
}

/// EC2 attaches to what runs.
pub fn attach_volume(lab: &Lab, machines: &Machines) -> Result<()> {
    lab.reaches(&machines.control, InstanceState::Running)?;
    let asked =
        json!({"VolumeId": machines.volume, "InstanceId": machines.control, "Device": "/dev/xvdf"});
    lab.aws("ec2", "AttachVolume", &asked)?;
    lab.until("the script has mounted it", PATIENCE, |lab| {
        lab.sh(&machines.control, "mountpoint -q /mnt/etcd")
            .map(drop)
    })
}

pub fn data_on_volume(lab: &Lab, cluster: &Cluster) -> Result<()> {
    let Machines {
        control, volume, ..
    } = &cluster.machines;
    let link = format!(
        "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{}",
        volume.replace('-', "")
    );
    lab.sh(
        control,
        &format!("test $(findmnt -no SOURCE /mnt/etcd) -ef {link}"),
    )?;
    lab.sh(control, "test -s /mnt/etcd/data/member/snap/db")
        .map(drop)
}
