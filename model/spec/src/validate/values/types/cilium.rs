//! The types of the texts of `spec.networking.cilium`.

use super::ValueType;

/// Words that cilium knows (its `pkg/option/config.go`, `pkg/defaults`, `pkg/maglev` and `daemon/cmd/cni`).
const CHAINS: &[&str] = &["aws-cni", "flannel", "generic-veth", "none", "portmap"];
const POLICIES: &[&str] = &["always", "default", "never"];
const ENCRYPTIONS: &[&str] = &["ipsec", "wireguard"];
const IDENTITIES: &[&str] = &["crd", "kvstore"];
const TUNNELS: &[&str] = &["disabled", "geneve", "vxlan"];
const AGGREGATIONS: &[&str] = &["low", "maximum", "medium", "none"];
const ALGORITHMS: &[&str] = &["maglev", "random"];
const REJECTS: &[&str] = &["nameError", "refused"];
const BALANCERS: &[&str] = &["dedicated", "shared"];
const ADDRESSES: &[&str] = &["crd", "eni", "hostscope", "kubernetes"];
const TABLES: &[&str] = &[
    "251", "509", "1021", "2039", "4093", "8191", "16381", "32749", "65521", "131071",
];

/// Rows as those of all other fields.
pub(super) const TYPES: &[(ValueType, &[&str])] = &[
    (ValueType::OneOf(CHAINS), &["cilium.chainingMode"]),
    (ValueType::OneOf(POLICIES), &["cilium.enablePolicy"]),
    (ValueType::OneOf(ENCRYPTIONS), &["cilium.encryptionType"]),
    (
        ValueType::OneOf(IDENTITIES),
        &["cilium.identityAllocationMode"],
    ),
    (ValueType::OneOf(TUNNELS), &["cilium.tunnel"]),
    (
        ValueType::OneOf(AGGREGATIONS),
        &["cilium.monitorAggregation"],
    ),
    (ValueType::OneOf(ALGORITHMS), &["cilium.bpfLBAlgorithm"]),
    (ValueType::OneOf(TABLES), &["cilium.bpfLBMaglevTableSize"]),
    (
        ValueType::OneOf(REJECTS),
        &["cilium.toFqdnsDnsRejectResponseCode"],
    ),
    (ValueType::OneOf(ADDRESSES), &["cilium.ipam"]),
    (
        ValueType::OneOf(BALANCERS),
        &["ingress.defaultLoadBalancerMode"],
    ),
    (
        ValueType::DnsName,
        &["ingress.sharedLoadBalancerServiceName"],
    ),
    (ValueType::Duration, &["cilium.identityChangeGracePeriod"]),
    (ValueType::DnsName, &["cilium.clusterName"]),
    (ValueType::PortOrNone, &["cilium.agentPrometheusPort"]),
    (ValueType::RegistryPrefix, &["cilium.registry"]),
    (ValueType::Tag, &["cilium.version"]),
    (ValueType::Image, &["cilium.sidecarIstioProxyImage"]),
    (ValueType::Word, &["cilium.metrics", "hubble.metrics"]),
    (
        ValueType::Line,
        &["extraConfig.*", "ingress.loadBalancerAnnotationPrefixes"],
    ),
];
