//! The EBS CSI driver: makes EBS volumes for PersistentVolumeClaims, attaches them to instances and mounts them for pods.

use super::control_planes::{controller_replicas, needs_host_network, tolerations};
use super::manifest::AddonName;
use super::permissions::{change_own, create_own, tag_own};
use super::tags::own_tags;
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use crate::iam::kms_statements;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use templates::Template;

/// Settings of the driver: `spec.cloudConfig.awsEBSCSIDriver`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EbsCsiDriver {
    /// With `v`: `v1.58.0`.
    pub version: String,
    /// Queries per second and at once of each sidecar to the API.
    pub kube_api_qps: String,
    pub kube_api_burst: i32,
    /// The pods on the nodes use the network of the instance, and so its metadata service.
    pub host_network: bool,
    /// Volumes per node at most; `None`: what EC2 allows for the instance type.
    pub volume_attach_limit: Option<i32>,
    /// Annotations of its pods.
    pub pod_annotations: BTreeMap<String, String>,
    /// The cluster has a snapshot controller: the sidecar that takes snapshots runs too.
    pub snapshots: bool,
}

#[derive(Serialize)]
struct Manifest {
    version: String,
    labels: Value,
    pod_annotations: Option<BTreeMap<String, String>>,
    region: String,
    cluster_id: String,
    extra_tags: String,
    kube_api_qps: String,
    kube_api_burst: i32,
    host_network: bool,
    controller_host_network: Option<bool>,
    health_port: u16,
    limits_volumes: bool,
    volume_attach_limit: Option<i32>,
    replicas: i32,
    tolerations: Vec<Value>,
    snapshots: bool,
    allocatable_period_seconds: Option<i32>,
    /// Pods reach the metadata service by IPv6 only.
    ipv6: bool,
}

impl Template for Manifest {
    const NAME: &'static str = "ebs_csi_driver/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("ebs_csi_driver/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(driver) = &full.addons.ebs_csi_driver else {
        return Ok(None);
    };
    let named = AddonName::new("aws-ebs-csi-driver.addons.k8s.io", "k8s-1.17");
    let manifest = named.render_template(&make_manifest(full, driver))?;
    named.make_addon(full, &[manifest]).map(Some)
}

fn make_manifest(full: &FullSpec, driver: &EbsCsiDriver) -> Manifest {
    Manifest {
        version: driver.version.clone(),
        labels: json!({
            "app.kubernetes.io/component": "csi-driver",
            "app.kubernetes.io/instance": "aws-ebs-csi-driver",
            "app.kubernetes.io/name": "aws-ebs-csi-driver",
            "app.kubernetes.io/version": driver.version,
        }),
        pod_annotations: Some(driver.pod_annotations.clone()).filter(|given| !given.is_empty()),
        region: full.placement.region.clone(),
        cluster_id: format!("--k8s-tag-cluster-id={}", full.name),
        extra_tags: format!("--extra-tags={}", own_tags(full)),
        kube_api_qps: driver.kube_api_qps.clone(),
        kube_api_burst: driver.kube_api_burst,
        host_network: driver.host_network,
        controller_host_network: needs_host_network(full),
        // On the network of a control plane the controller has 9808 already.
        health_port: if driver.host_network { 9810 } else { 9808 },
        limits_volumes: driver.volume_attach_limit.is_some(),
        volume_attach_limit: driver.volume_attach_limit,
        replicas: controller_replicas(full),
        tolerations: tolerations(full),
        snapshots: driver.snapshots,
        // The API server knows the field from 1.33 on, as in the driver's chart.
        allocatable_period_seconds: full.is_at_least(33).then_some(10),
        ipv6: full.is_ipv6(),
    }
}

/// What the controller calls, as in kOps, on objects with the cluster's tag.
pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    let Some(driver) = &full.addons.ebs_csi_driver else {
        return Vec::new();
    };
    let kinds = ["snapshot", "volume"];
    let mut all = vec![
        Statement::allow([
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeTags",
            "ec2:DescribeVolumeStatus",
            "ec2:DescribeVolumes",
            "ec2:DescribeVolumesModifications",
        ])
        .on_all(),
        create_own(full, ["ec2:CopyVolumes", "ec2:CreateVolume"]).on_all(),
        change_own(
            full,
            [
                "ec2:AttachVolume",
                "ec2:DeleteVolume",
                "ec2:DetachVolume",
                "ec2:ModifyVolume",
            ],
        )
        .on_all(),
    ];
    all.extend(tag_own(full, &kinds, &["CopyVolumes", "CreateVolume"]));
    all.extend(kms_statements(full));
    if driver.snapshots {
        let snapshots = format!("arn:{}:ec2:*:*:snapshot/*", full.placement.partition);
        // The request's tags are those of the new object: they do not apply to the snapshot from which a volume is made, and to the
        // volume of which a snapshot is taken.
        all.extend([
            Statement::allow(["ec2:CreateSnapshot", "ec2:DescribeSnapshots"]).on_all(),
            create_own(full, ["ec2:CreateSnapshot"]).on_all(),
            change_own(full, ["ec2:CreateVolume"]).on_each([snapshots]),
            change_own(
                full,
                ["ec2:DeleteSnapshot", "ec2:EnableFastSnapshotRestores"],
            )
            .on_all(),
        ]);
        all.extend(tag_own(full, &kinds, &["CreateSnapshot"]));
    }
    all
}
