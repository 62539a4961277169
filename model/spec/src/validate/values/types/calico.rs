//! The types of the texts of `spec.networking.calico`, and of its ports.

use super::ValueType;

/// Words that kOps takes.
const CHECKS: &[&str] = &["Disable", "DoNothing", "Enable"];
const SERVICES: &[&str] = &["DSR", "Tunnel"];
const LOGS: &[&str] = &["Debug", "Info", "Off"];
const CHAINS: &[&str] = &["append", "insert"];
const ENCAPSULATIONS: &[&str] = &["ipip", "none", "vxlan"];
const POOLS: &[&str] = &["Always", "CrossSubnet", "Never"];
const BACKENDS: &[&str] = &["Auto", "Legacy", "NFT"];
const NFTABLES: &[&str] = &["Auto", "Disabled", "Enabled"];

/// Rows as those of all other fields.
pub(super) const TYPES: &[(ValueType, &[&str])] = &[
    (ValueType::OneOf(CHECKS), &["calico.awsSrcDstCheck"]),
    (
        ValueType::OneOf(SERVICES),
        &["calico.bpfExternalServiceMode"],
    ),
    (ValueType::OneOf(LOGS), &["calico.bpfLogLevel"]),
    (ValueType::OneOf(CHAINS), &["calico.chainInsertMode"]),
    (
        ValueType::OneOf(ENCAPSULATIONS),
        &["calico.encapsulationMode"],
    ),
    (
        ValueType::OneOf(POOLS),
        &["calico.ipipMode", "calico.vxlanMode"],
    ),
    (ValueType::OneOf(BACKENDS), &["calico.iptablesBackend"]),
    (ValueType::OneOf(NFTABLES), &["calico.nftablesMode"]),
    (
        ValueType::Line,
        &[
            "calico.ipv4AutoDetectionMethod",
            "calico.ipv6AutoDetectionMethod",
        ],
    ),
    (ValueType::Word, &["calico.logSeverityScreen"]),
    (
        ValueType::PortOrNone,
        &[
            "calico.prometheusMetricsPort",
            "calico.typhaPrometheusMetricsPort",
        ],
    ),
    (ValueType::RegistryPrefix, &["calico.registry"]),
    (ValueType::Tag, &["calico.version"]),
];
