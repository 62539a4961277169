//! Fields with a closed set of values. The reader takes them in any case, kOps' spelling is
//! written.

use serde::{Deserialize, Serialize};

/// What the instances of a group do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InstanceGroupRole {
    /// Runs etcd and the control plane; v1alpha2 writes `Master`.
    #[serde(rename = "Master", alias = "ControlPlane", alias = "control-plane")]
    ControlPlane,
    Node,
    /// Lets operators in by SSH.
    Bastion,
    /// Runs kube-apiserver without etcd.
    #[serde(rename = "APIServer")]
    ApiServer,
}

/// Who is in a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SubnetType {
    /// Instances with public addresses.
    Public,
    /// Instances that reach the internet through NAT.
    Private,
    /// Private instances with IPv4 and IPv6.
    DualStack,
    /// NAT gateways and public load balancers of private subnets.
    Utility,
}

impl SubnetType {
    /// True if its instances reach the internet, and nobody there reaches them.
    pub fn is_private(self) -> bool {
        matches!(self, Self::Private | Self::DualStack)
    }
}

/// Kind of a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadBalancerClass {
    /// ELB; kctl refuses it.
    Classic,
    Network,
}

/// Who reaches a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadBalancerType {
    Public,
    Internal,
}

/// Which DNS zone holds the cluster's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DnsType {
    Public,
    /// A private zone, tied to the VPC.
    Private,
    /// None: the API is reached by its load balancer's own name.
    None,
}

/// What the items of a keyset are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeysetType {
    /// Certificates and their keys.
    Keypair,
    /// Secrets; old stores only.
    Secret,
}
