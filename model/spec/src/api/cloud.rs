//! Settings of the cloud's controllers and drivers: `spec.cloudConfig`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// One flat set of fields for all clouds, as in kOps.
    pub struct CloudConfiguration {
        /// False: kctl makes no StorageClasses.
        pub manage_storage_classes: Option<bool>,
        /// Google Cloud only.
        pub multizone: Option<bool>,
        /// Google Cloud only.
        pub node_tags: Option<String>,
        /// Google Cloud only.
        pub node_instance_prefix: Option<String>,
        /// Address families of Nodes: `ipv4`, `ipv6`.
        #[serde(rename = "nodeIPFamilies")]
        pub node_ip_families: Vec<String>,
        /// Google Cloud only.
        pub gce_service_account: Option<String>,
        /// Google Cloud only.
        pub gce_use_startup_script: Option<bool>,
        /// True: the controller opens no rules for load balancers of services.
        pub disable_security_group_ingress: Option<bool>,
        /// Security group of the load balancers of services.
        pub elb_security_group: Option<String>,
        /// `Managed`: network load balancers of services get security groups.
        pub nlb_security_group_mode: Option<String>,
        /// True: a Node is named after its private DNS name rather than its instance.
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
        /// The EBS CSI driver addon.
        #[serde(rename = "awsEBSCSIDriver")]
        pub aws_ebscsi_driver: Option<EBSCSIDriverSpec>,
        /// Google Cloud only.
        #[serde(rename = "gcpPDCSIDriver")]
        pub gcp_pdcsi_driver: Option<Value>,
    }

    /// The EBS CSI driver.
    pub struct EBSCSIDriverSpec {
        /// Only true.
        pub enabled: Option<bool>,
        /// False: the user installs it.
        pub managed: Option<bool>,
        pub version: Option<String>,
        /// Queries per second to the API.
        #[serde(rename = "kubeAPIQPS")]
        pub kube_apiqps: Option<Quantity>,
        /// Queries at once to the API.
        #[serde(rename = "kubeAPIBurst")]
        pub kube_api_burst: Option<i32>,
        /// True: its pods on the nodes use the host's network.
        pub host_network: Option<bool>,
        /// Volumes per node at most.
        pub volume_attach_limit: Option<i32>,
        /// Annotations of its pods.
        pub pod_annotations: BTreeMap<String, String>,
    }
}
