//! What one object of the API says about names: which it wants, and where they shall lead. Annotations and addresses are those of
//! kOps' dns-controller (`dns-controller/pkg/watchers`).

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Node, Pod, Service};
use k8s_openapi::api::networking::v1::{Ingress, IngressLoadBalancerIngress};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const EXTERNAL: &str = "dns.alpha.kubernetes.io/external";
const INTERNAL: &str = "dns.alpha.kubernetes.io/internal";

/// Annotation of a pod that a kubelet shows for one of its manifests.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Labels of Nodes that are no workers.
const NOT_WORKERS: [&str; 3] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/api-server",
];

/// Kind of an object, in the order in which objects of the same age get a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectKind {
    Service,
    Ingress,
    Pod,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectRef {
    pub(super) kind: ObjectKind,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Kind of a Node's address: `ExternalIP`, `InternalIP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressKind {
    External,
    Internal,
}

/// Where names lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nowhere yet: what the names have stays.
    Waiting,
    /// To the name of a load balancer.
    Host(String),
    Addresses(BTreeSet<IpAddr>),
    /// To all Nodes that are workers.
    Workers(AddressKind),
    /// To one Node, by its name.
    Node(String, AddressKind),
    /// Nowhere, and why.
    Impossible(String),
}

/// The names that an object wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) object: ObjectRef,
    /// Time of creation, RFC 3339 in UTC.
    pub(super) created: String,
    /// As written, without the spaces around them.
    pub(super) names: Vec<String>,
    pub(super) target: Target,
}

impl Claim {
    fn new(
        kind: ObjectKind,
        metadata: &ObjectMeta,
        names: Vec<String>,
        target: Target,
    ) -> Option<Self> {
        let created = metadata.creation_timestamp.as_ref();
        let claim = Self {
            object: ObjectRef {
                kind,
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: metadata.name.clone().unwrap_or_default(),
            },
            created: created.map(|time| time.0.to_string()).unwrap_or_default(),
            names,
            target,
        };
        (!claim.names.is_empty()).then_some(claim)
    }

    /// The names in a Service's annotations: those of its load balancer, or with node ports of the workers.
    pub(super) fn of_service(service: &Service) -> Vec<Self> {
        let metadata = &service.metadata;
        let (external, internal) = (
            annotated_names(metadata, EXTERNAL),
            annotated_names(metadata, INTERNAL),
        );
        let spec = service.spec.as_ref();
        let target = match spec.and_then(|spec| spec.type_.as_deref()) {
            Some("LoadBalancer") => {
                let status = service.status.as_ref();
                let balancer = status.and_then(|status| status.load_balancer.as_ref());
                let ends = balancer.and_then(|balancer| balancer.ingress.as_ref());
                balancer_target(ends.into_iter().flatten().map(service_end))
            }
            Some("NodePort") if !external.is_empty() && !internal.is_empty() => Target::Impossible(
                "names of node ports lead to internal or to external addresses, not to both".into(),
            ),
            Some("NodePort") if internal.is_empty() => Target::Workers(AddressKind::External),
            Some("NodePort") => Target::Workers(AddressKind::Internal),
            other => {
                let other = other.unwrap_or("ClusterIP");
                Target::Impossible(format!(
                    "a Service of type {other} has no address for names"
                ))
            }
        };
        let names = external.into_iter().chain(internal).collect();
        Self::new(ObjectKind::Service, metadata, names, target)
            .into_iter()
            .collect()
    }

    /// The hosts in an Ingress' rules: those of its load balancer.
    pub(super) fn of_ingress(ingress: &Ingress) -> Vec<Self> {
        let rules = ingress.spec.iter().flat_map(|spec| &spec.rules).flatten();
        let hosts = rules.filter_map(|rule| rule.host.as_deref());
        let names = hosts.flat_map(split_names).collect();
        let status = ingress.status.as_ref();
        let balancer = status.and_then(|status| status.load_balancer.as_ref());
        let ends = balancer.and_then(|balancer| balancer.ingress.as_ref());
        let target = balancer_target(ends.into_iter().flatten().map(ingress_end));
        Self::new(ObjectKind::Ingress, &ingress.metadata, names, target)
            .into_iter()
            .collect()
    }

    /// The names in the annotations of a pod with the host's network: the external ones are those of its Node's external address, the
    /// internal ones those of its own. A pod that has ended wants none, and one that a kubelet has made up gets none: a worker would name itself.
    pub(super) fn of_pod(pod: &Pod) -> Vec<Self> {
        if pod.annotations().contains_key(MIRROR) {
            return Vec::new();
        }
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return Vec::new();
        }
        let spec = pod.spec.as_ref();
        let (external, internal) = if spec.and_then(|spec| spec.host_network) == Some(true) {
            let node = spec.and_then(|spec| spec.node_name.clone());
            let address = status.and_then(|status| status.pod_ip.as_deref()?.parse().ok());
            (
                node.map(|node| Target::Node(node, AddressKind::External)),
                address.map(|address| Target::Addresses([address].into())),
            )
        } else {
            let why = || Target::Impossible("only pods with hostNetwork get names".into());
            (Some(why()), Some(why()))
        };
        let claim = |annotation: &str, target: Option<Target>| {
            let names = annotated_names(&pod.metadata, annotation);
            let target = target.unwrap_or(Target::Waiting);
            Self::new(ObjectKind::Pod, &pod.metadata, names, target)
        };
        [claim(EXTERNAL, external), claim(INTERNAL, internal)]
            .into_iter()
            .flatten()
            .collect()
    }
}

fn annotated_names(metadata: &ObjectMeta, annotation: &str) -> Vec<String> {
    let annotations = metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation));
    text.map(|text| split_names(text).collect())
        .unwrap_or_default()
}

fn split_names(text: &str) -> impl Iterator<Item = String> {
    let names = text.split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Host name and address of one end of a load balancer.
type BalancerEnd<'a> = (Option<&'a str>, Option<&'a str>);

fn service_end(end: &LoadBalancerIngress) -> BalancerEnd<'_> {
    (end.hostname.as_deref(), end.ip.as_deref())
}

fn ingress_end(end: &IngressLoadBalancerIngress) -> BalancerEnd<'_> {
    (end.hostname.as_deref(), end.ip.as_deref())
}

/// A name is either another one's or has addresses, and it can be one other's only: the first host name wins.
fn balancer_target<'a>(ends: impl Iterator<Item = BalancerEnd<'a>>) -> Target {
    let mut addresses = BTreeSet::new();
    for (host, address) in ends {
        if let Some(host) = host.filter(|host| !host.is_empty()) {
            return Target::Host(host.to_owned());
        }
        addresses.extend(address.and_then(|address| address.parse::<IpAddr>().ok()));
    }
    if addresses.is_empty() {
        Target::Waiting
    } else {
        Target::Addresses(addresses)
    }
}

/// Addresses of a Node by kind, and whether it is a worker. One of each kind and family: a kubelet writes them, and many of one would leave no
/// room for those of others.
pub(super) fn node_addresses(node: &Node) -> (Vec<(AddressKind, IpAddr)>, bool) {
    let labels: &BTreeMap<String, String> = node.labels();
    let worker = !NOT_WORKERS.iter().any(|label| labels.contains_key(*label));
    let status = node.status.iter();
    let addresses = status.flat_map(|status| &status.addresses).flatten();
    let addresses = addresses.filter_map(|address| {
        let kind = match address.type_.as_str() {
            "ExternalIP" => AddressKind::External,
            "InternalIP" => AddressKind::Internal,
            _ => return None,
        };
        Some((kind, address.address.parse::<IpAddr>().ok()?))
    });
    let mut first: Vec<(AddressKind, IpAddr)> = Vec::new();
    for (kind, address) in addresses {
        let same =
            |one: &(AddressKind, IpAddr)| one.0 == kind && one.1.is_ipv4() == address.is_ipv4();
        if !first.iter().any(same) {
            first.push((kind, address));
        }
    }
    (first, worker)
}
