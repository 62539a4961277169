//! What may be said about a new cluster.

use crate::api::{DnsType, LoadBalancerType};

/// What may be said about a new cluster: one field per flag of `kctl create cluster`. Whatever is
/// `None` or empty is decided by kOps' rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// The cluster's name, a DNS name.
    pub name: String,
    /// The state store: `s3://BUCKET[/PREFIX]` or `file://DIR`.
    pub state_store: String,
    /// Zones of the workers.
    pub zones: Vec<String>,
    /// Zones of the control planes; default `zones`.
    pub control_plane_zones: Vec<String>,
    /// Control planes; default one, or one per control-plane zone where those are named.
    pub control_plane_count: Option<usize>,
    /// Workers in all; default one per zone.
    pub node_count: Option<usize>,
    /// Instance types of control planes; several make a mixed instances policy.
    pub control_plane_sizes: Vec<String>,
    /// Instance types of workers; several make a mixed instances policy.
    pub node_sizes: Vec<String>,
    /// Image of all groups.
    pub image: Option<String>,
    /// Image of control planes; wins over `image`.
    pub control_plane_image: Option<String>,
    /// Image of workers; wins over `image`.
    pub node_image: Option<String>,
    /// Image of bastions; wins over `image`.
    pub bastion_image: Option<String>,
    /// GiB of control planes' root volumes.
    pub control_plane_volume_size: Option<i32>,
    /// EBS type of control planes' root volumes.
    pub control_plane_volume_type: Option<String>,
    /// GiB of workers' root volumes.
    pub node_volume_size: Option<i32>,
    /// EBS type of workers' root volumes.
    pub node_volume_type: Option<String>,
    /// Tenancy of control planes.
    pub control_plane_tenancy: Option<String>,
    pub node_tenancy: Option<String>,
    /// Further security groups of control planes.
    pub control_plane_security_groups: Vec<String>,
    /// Further security groups of workers.
    pub node_security_groups: Vec<String>,
    /// Public addresses for the instances of all groups.
    pub associate_public_ip: Option<bool>,
    /// A group of bastions; private topology only.
    pub bastion: bool,
    pub topology: Topology,
    /// Pods, Services and instances with IPv6 addresses.
    pub ipv6: bool,
    /// Where names are published; default nowhere, or a public zone with `dns_zone`.
    pub dns: Option<DnsType>,
    /// Hosted zone, by name or id.
    pub dns_zone: Option<String>,
    /// The CNI, by the name that kOps has for it; default `cilium`, as in kOps.
    pub networking: Option<String>,
    /// Ranges of the VPC: the first is its own, each further one gets a subnet for workers.
    pub network_cidrs: Vec<String>,
    /// The VPC of the user's; default that of the first of `subnets`.
    pub network_id: Option<String>,
    /// Subnets of the user's, at most one per zone.
    pub subnets: Vec<String>,
    /// Utility subnets of the user's, at most one per zone; private topology only.
    pub utility_subnets: Vec<String>,
    /// How private subnets reach the internet: `nat-...`, `eipalloc-...`, `i-...`, `tgw-...` or
    /// `External`; default a NAT gateway per zone.
    pub egress: Option<String>,
    /// Do not tag subnets for load balancers.
    pub disable_subnet_tags: bool,
    /// Kubernetes version, with or without `v`, kept as written.
    pub kubernetes_version: Option<String>,
    /// Feature gates of all components: `+Gate`, `Gate` or `-Gate`.
    pub kubernetes_feature_gates: Vec<String>,
    pub channel: Option<String>,
    /// Who reaches the API: CIDRs and prefix lists; default everybody.
    pub admin_access: Vec<String>,
    /// Who reaches SSH; default as `admin_access`.
    pub ssh_access: Vec<String>,
    /// Who may do what.
    pub authorization: Authorization,
    /// A load balancer for the API even where names would do.
    pub api_load_balancer_type: Option<LoadBalancerType>,
    /// ACM certificate of the API's load balancer, by ARN.
    pub api_ssl_certificate: Option<String>,
    /// Name of the API for users.
    pub api_public_name: Option<String>,
    /// Names of the etcd clusters; default `main` and `events`.
    pub etcd_clusters: Vec<String>,
    /// Encrypted etcd volumes; default yes.
    pub encrypt_etcd_storage: Option<bool>,
    /// EBS type of etcd volumes.
    pub etcd_storage_type: Option<String>,
    /// `s3://BUCKET[/PATH]` in which the issuer of service accounts' tokens is published, in a folder with the cluster's name.
    pub discovery_store: Option<String>,
    /// An audit log of the API server, by a policy of kctl's.
    pub audit_log: bool,
    /// Tags of everything, `key=value,key="value, with = and comma"`.
    pub cloud_labels: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topology {
    #[default]
    Public,
    /// In private subnets, behind NAT gateways in utility subnets.
    Private,
}

/// Who may do what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Kubernetes RBAC.
    #[default]
    Rbac,
    /// Everybody everything.
    AlwaysAllow,
}

impl CreateOptions {
    /// Names of the etcd clusters.
    pub(super) fn etcd_clusters(&self) -> Vec<&str> {
        match self.etcd_clusters.as_slice() {
            [] => vec!["main", "events"],
            said => said.iter().map(String::as_str).collect(),
        }
    }

    /// Zones of the control planes, each as often as it was named.
    pub(super) fn control_plane_zones(&self) -> &[String] {
        match self.control_plane_zones.as_slice() {
            [] => &self.zones,
            said => said,
        }
    }

    /// How many control planes.
    pub(super) fn control_planes(&self) -> usize {
        let default = self.control_plane_zones.len().max(1);
        self.control_plane_count.unwrap_or(default)
    }

    /// All zones, sorted, each once.
    pub(super) fn all_zones(&self) -> Vec<&str> {
        let zones = self.zones.iter().chain(&self.control_plane_zones);
        let mut zones: Vec<&str> = zones.map(String::as_str).collect();
        zones.sort_unstable();
        zones.dedup();
        zones
    }
}
