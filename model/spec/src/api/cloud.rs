//! Settings of the cloud's controllers and drivers: `spec.cloudConfig`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// Settings of the cloud controller manager, of the EBS CSI driver and of StorageClasses. The fields of all clouds are in
    /// one section, as in kOps.
    pub struct CloudConfiguration {
        /// Makes StorageClasses for EBS volumes, one of them the default. Default true.
        pub manage_storage_classes: Option<bool>,
        /// Google Cloud only.
        pub multizone: Option<bool>,
        /// Google Cloud only.
        pub node_tags: Option<String>,
        /// Google Cloud only.
        pub node_instance_prefix: Option<String>,
        /// Families of the addresses of Nodes, the first one first: `ipv4`, `ipv6`. Default `ipv6`, `ipv4` on IPv6, else
        /// `ipv4`.
        #[serde(rename = "nodeIPFamilies")]
        pub node_ip_families: Vec<String>,
        /// Google Cloud only.
        pub gce_service_account: Option<String>,
        /// Google Cloud only.
        pub gce_use_startup_script: Option<bool>,
        /// The cloud controller manager opens no ports of nodes for load balancers of Services. Default false.
        pub disable_security_group_ingress: Option<bool>,
        /// ID of the security group of all classic load balancers of Services. Default one for each.
        pub elb_security_group: Option<String>,
        /// `Managed`: the cloud controller manager makes a security group for each network load balancer of a Service. Default
        /// none.
        pub nlb_security_group_mode: Option<String>,
        /// Nodes are named after their private addresses, not after their instances.
        #[serde(rename = "useIPBasedNodeNames")]
        pub use_ip_based_node_names: Option<bool>,
        /// vSphere only.
        pub v_sphere_username: Option<String>,
        /// vSphere only.
        pub v_sphere_password: Option<String>,
        /// vSphere only.
        pub v_sphere_server: Option<String>,
        /// vSphere only.
        pub v_sphere_datacenter: Option<String>,
        /// vSphere only.
        pub v_sphere_resource_pool: Option<String>,
        /// vSphere only.
        pub v_sphere_datastore: Option<String>,
        /// vSphere only.
        #[serde(rename = "vSphereCoreDNSServer")]
        pub v_sphere_core_dns_server: Option<String>,
        /// Spot Ocean only.
        pub spotinst_product: Option<String>,
        /// Spot Ocean only.
        pub spotinst_orientation: Option<String>,
        /// OpenStack only.
        pub openstack: Option<Value>,
        /// Azure only.
        pub azure: Option<Value>,
        /// The EBS CSI driver, which makes and attaches volumes for PersistentVolumeClaims.
        #[serde(rename = "awsEBSCSIDriver")]
        pub aws_ebscsi_driver: Option<EBSCSIDriverSpec>,
        /// Google Cloud only.
        #[serde(rename = "gcpPDCSIDriver")]
        pub gcp_pdcsi_driver: Option<Value>,
    }

    /// The EBS CSI driver, which is part of every cluster.
    pub struct EBSCSIDriverSpec {
        /// Only true is possible. To install the driver yourself, set `managed` to false.
        pub enabled: Option<bool>,
        /// False: you install the driver yourself. Default true.
        pub managed: Option<bool>,
        /// Tag of the driver's image. Default that of the release.
        pub version: Option<String>,
        /// Queries per second that each sidecar of the driver may send to the API. Default 20.
        #[serde(rename = "kubeAPIQPS")]
        pub kube_apiqps: Option<Quantity>,
        /// Queries that each sidecar of the driver may send to the API at once. Default 100.
        #[serde(rename = "kubeAPIBurst")]
        pub kube_api_burst: Option<i32>,
        /// Pods of the driver on the nodes use the network of the instance. Default false.
        pub host_network: Option<bool>,
        /// Most volumes of a node. Default what EC2 allows for the instance type.
        pub volume_attach_limit: Option<i32>,
        /// Annotations of the driver's pods.
        pub pod_annotations: BTreeMap<String, String>,
    }
}
