//! The spec as users write it: kOps' `kops.k8s.io/v1alpha2`, field for field.
//!
//! What is optional stays optional here; expansion makes a complete spec of it.

pub mod addon_values;
pub mod addons;
pub mod amazon_vpc;
pub mod api_access;
pub mod assets;
pub mod authentication;
pub mod authorization;
pub mod calico;
pub mod cilium;
pub mod cloud;
pub mod cloud_controller_manager;
pub mod cluster;
pub mod containerd;
pub mod dns;
pub mod enums;
pub mod etcd;
mod fields;
pub mod host;
pub mod iam;
pub mod instance;
pub mod instance_group;
pub mod keyset;
pub mod kindnet;
pub mod kube_apiserver;
pub mod kube_controller_manager;
pub mod kube_proxy;
pub mod kube_router;
pub mod kube_scheduler;
pub mod kubelet;
pub mod metadata;
pub mod networking;
pub mod object;
pub mod scalars;
pub mod set;
pub(crate) mod set_names;
pub mod shape;
pub mod ssh_credential;
pub mod subnet;
pub mod topology;
pub mod unsupported;

pub use enums::{
    DnsType, InstanceGroupRole, KeysetType, LoadBalancerClass, LoadBalancerType, SubnetType,
};
pub use object::{
    API_VERSION, API_VERSIONS, Cluster, InstanceGroup, Keyset, Object, Resource, SSHCredential,
    Spec,
};
pub use scalars::{Duration, IntOrString, Quantity};
