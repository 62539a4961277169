//! `spec.cloudConfig`: the EBS CSI driver and the StorageClasses.

use super::fill::{fill, fill_list};
use super::snapshot_controller::full_snapshot_controller;
use crate::api::cloud::EBSCSIDriverSpec;
use crate::api::cluster::ClusterSpec;
use full::EbsCsiDriver;

/// The driver's version, and what its sidecars ask of the API at most, as in kOps.
const VERSION: &str = "v1.58.0";
const QUERIES_PER_SECOND: &str = "20";
const BURST: i32 = 100;

/// Fills in the driver's version, that kctl makes StorageClasses, and which addresses Nodes of IPv6 clusters have.
pub(super) fn complete_cloud_config(spec: &mut ClusterSpec) {
    let ipv6 = spec.is_ipv6();
    let config = spec.cloud_config.get_or_insert_default();
    fill(&mut config.manage_storage_classes, true);
    if ipv6 {
        fill_list(&mut config.node_ip_families, &["ipv6", "ipv4"]);
    }
    let driver = config.aws_ebscsi_driver.get_or_insert_default();
    fill(&mut driver.version, VERSION);
}

/// True if kctl installs the driver.
pub(crate) fn installs_ebs_csi_driver(spec: &ClusterSpec) -> bool {
    let config = spec.cloud_config.as_ref();
    let driver = config.and_then(|config| config.aws_ebscsi_driver.as_ref());
    driver.and_then(|driver| driver.managed) != Some(false)
}

pub(super) fn full_ebs_csi_driver(spec: &ClusterSpec) -> Option<EbsCsiDriver> {
    if !installs_ebs_csi_driver(spec) {
        return None;
    }
    let config = spec.cloud_config.clone().unwrap_or_default();
    let EBSCSIDriverSpec {
        version,
        kube_apiqps,
        kube_api_burst,
        host_network,
        volume_attach_limit,
        pod_annotations,
        ..
    } = config.aws_ebscsi_driver.unwrap_or_default();
    Some(EbsCsiDriver {
        version: version.unwrap_or_else(|| VERSION.to_owned()),
        kube_api_qps: kube_apiqps.unwrap_or_else(|| QUERIES_PER_SECOND.to_owned()),
        kube_api_burst: kube_api_burst.unwrap_or(BURST),
        host_network: host_network == Some(true),
        volume_attach_limit,
        pod_annotations,
        snapshots: full_snapshot_controller(spec).is_some(),
    })
}
