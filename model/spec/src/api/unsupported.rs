//! The fields of kOps' spec that kctl does not support, with the reason for each.
//!
//! The change that implements a field removes it from this list. A field that is not in the list is
//! supported if it has a type in this folder, and is otherwise reported as unknown.

use std::collections::BTreeSet;

use crate::read::node::{Content, Node, Scalar};
use crate::read::path;

use super::cluster::ClusterSpec;
use super::instance_group::InstanceGroupSpec;
use super::object::Spec;

/// Fields that kctl does not act on, for one reason.
#[derive(Clone, Copy, Debug)]
pub struct Unsupported {
    /// Kind of the object.
    kind: &'static str,
    /// Paths from the object's root; `[]` is any element of a list.
    paths: &'static [&'static str],
    /// When the field counts as used.
    when: When,
    standing: Standing,
    /// What it is; after a semicolon, what to do instead. Of a removed field: why, or what to use instead.
    pub reason: &'static str,
}

/// What kOps does with the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It acts on it.
    Current,
    /// It no longer acts on it.
    Removed,
    /// It may have the field, and nothing follows from it: a spec works as if it were not there (kOps' own test case `complex`).
    Dropped,
}

/// When a field counts as used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// Whenever it is there: its presence is the choice.
    Present,
    /// When it asks for something: not false, not empty, not `enabled: false`.
    Set,
    /// When it has this value, in any case.
    Is(&'static str),
}

const CLUSTER: &str = ClusterSpec::KIND;
const GROUP: &str = InstanceGroupSpec::KIND;

const fn unsupported_in_cluster(
    when: When,
    reason: &'static str,
    paths: &'static [&'static str],
) -> Unsupported {
    Unsupported {
        kind: CLUSTER,
        paths,
        when,
        standing: Standing::Current,
        reason,
    }
}

const fn unsupported_in_group(
    when: When,
    reason: &'static str,
    paths: &'static [&'static str],
) -> Unsupported {
    Unsupported {
        kind: GROUP,
        paths,
        when,
        standing: Standing::Current,
        reason,
    }
}

const fn removed_field(
    when: When,
    reason: &'static str,
    paths: &'static [&'static str],
) -> Unsupported {
    Unsupported {
        kind: CLUSTER,
        paths,
        when,
        standing: Standing::Removed,
        reason,
    }
}

pub const UNSUPPORTED: &[Unsupported] = &[
    unsupported_in_cluster(
        When::Present,
        "kopeio's authentication",
        &["spec.authentication.kopeio"],
    ),
    unsupported_in_cluster(
        When::Set,
        "metrics and webhooks of the node termination handler; protokube handles terminations and logs them",
        &[
            "spec.nodeTerminationHandler.prometheusEnable",
            "spec.nodeTerminationHandler.webhookTemplate",
            "spec.nodeTerminationHandler.webhookURL",
        ],
    ),
    unsupported_in_cluster(
        When::Is("false"),
        "handling of terminations on each instance; protokube handles them by the SQS queue (or not at all: enabled: false)",
        &["spec.nodeTerminationHandler.enableSQSTerminationDraining"],
    ),
    unsupported_in_cluster(
        When::Set,
        "a taint that detaches volumes while the instance may still write to them; protokube removes Nodes whose instance is gone",
        &["spec.nodeTerminationHandler.enableOutOfServiceTaint"],
    ),
    unsupported_in_cluster(
        When::Set,
        "pods with addresses of the VPC",
        &["spec.networking.cni.usesSecondaryIP"],
    ),
    unsupported_in_cluster(
        When::Set,
        "valueFrom in etcd's environment, which starts before the API has an object to read it from; write the value",
        &["spec.etcdClusters[].manager.env[].valueFrom"],
    ),
    unsupported_in_cluster(
        When::Set,
        "valueFrom in the environment of the VPC CNI, which kOps leaves out; write the value",
        &["spec.networking.amazonvpc.env[].valueFrom"],
    ),
    // It launches and ends instances outside of Auto Scaling groups, which are what kctl counts, compares with the spec, replaces and
    // deletes: such an instance would be neither out of date nor gone with its cluster.
    unsupported_in_cluster(
        When::Set,
        "Karpenter; instance groups with spec.clusterAutoscaler follow the pods too",
        &["spec.karpenter"],
    ),
    unsupported_in_cluster(
        When::Present,
        "a discovery service; use a discovery store",
        &["spec.serviceAccountIssuerDiscovery.discoveryService"],
    ),
    unsupported_in_cluster(
        When::Set,
        "gVisor for all groups; set it in instance groups, which kOps requires too",
        &["spec.containerd.gvisor"],
    ),
    unsupported_in_cluster(
        When::Present,
        "this network plugin; use \"cni: {}\" and install it with its own chart, or use flannel, cilium or calico",
        &["spec.networking.kopeio"],
    ),
    unsupported_in_cluster(
        When::Set,
        "AdminNetworkPolicies with kindnet; kindnet 1.0 has none, and does not start if it is asked for them",
        &[
            "spec.networking.kindnet.adminNetworkPolicies",
            "spec.networking.kindnet.baselineAdminNetworkPolicies",
        ],
    ),
    unsupported_in_cluster(
        When::Set,
        "the DNS cache of kindnet; use kubeDNS.nodeLocalDNS",
        &["spec.networking.kindnet.dnsCaching"],
    ),
    unsupported_in_cluster(
        When::Set,
        "an etcd cluster for Cilium",
        &["spec.networking.cilium.etcdManaged"],
    ),
    unsupported_in_cluster(
        When::Is("aws-cni"),
        "cilium after another network plugin",
        &["spec.networking.cilium.chainingMode"],
    ),
    unsupported_in_cluster(
        When::Is("flannel"),
        "cilium after another network plugin",
        &["spec.networking.cilium.chainingMode"],
    ),
    unsupported_in_cluster(
        When::Is("generic-veth"),
        "cilium after another network plugin",
        &["spec.networking.cilium.chainingMode"],
    ),
    unsupported_in_cluster(
        When::Is("crd"),
        "addresses of pods from cilium's own objects",
        &["spec.networking.cilium.ipam"],
    ),
    unsupported_in_cluster(
        When::Is("hostscope"),
        "addresses of pods from cilium's configuration on each node",
        &["spec.networking.cilium.ipam"],
    ),
    unsupported_in_cluster(
        When::Is("kvstore"),
        "identities in an etcd cluster for Cilium",
        &["spec.networking.cilium.identityAllocationMode"],
    ),
    unsupported_in_cluster(
        When::Is("cilium"),
        "an etcd cluster for Cilium",
        &["spec.etcdClusters[].name"],
    ),
    unsupported_in_cluster(
        When::Is("leases"),
        "an etcd cluster for leases alone; they are in main",
        &["spec.etcdClusters[].name"],
    ),
    unsupported_in_cluster(
        When::Set,
        "Nodes named after their addresses; a Node has its instance's id as its name",
        &["spec.cloudConfig.useIPBasedNodeNames"],
    ),
    unsupported_in_cluster(
        When::Set,
        "clouds other than AWS",
        &[
            "spec.project",
            "spec.subnets[].region",
            "spec.cloudControllerManager.azureNodeManagerImage",
            "spec.cloudConfig.multizone",
            "spec.cloudConfig.nodeTags",
            "spec.cloudConfig.nodeInstancePrefix",
            "spec.cloudConfig.gceServiceAccount",
            "spec.cloudConfig.gceUseStartupScript",
            "spec.cloudConfig.vSphereUsername",
            "spec.cloudConfig.vSpherePassword",
            "spec.cloudConfig.vSphereServer",
            "spec.cloudConfig.vSphereDatacenter",
            "spec.cloudConfig.vSphereResourcePool",
            "spec.cloudConfig.vSphereDatastore",
            "spec.cloudConfig.vSphereCoreDNSServer",
            "spec.cloudConfig.spotinstProduct",
            "spec.cloudConfig.spotinstOrientation",
            "spec.cloudConfig.openstack",
            "spec.cloudConfig.azure",
            "spec.cloudConfig.gcpPDCSIDriver",
            "spec.networking.gce",
        ],
    ),
    removed_field(
        When::Present,
        "this network plugin is no longer maintained; calico has its policies",
        &["spec.networking.canal"],
    ),
    removed_field(
        When::Present,
        "this network plugin is no longer maintained; cilium encrypts packets too, and flannel is as simple",
        &["spec.networking.weave"],
    ),
    removed_field(
        When::Present,
        "this network plugin is no longer maintained; amazonvpc gives pods addresses of the VPC too",
        &["spec.networking.lyftvpc"],
    ),
    removed_field(
        When::Present,
        "this network plugin is no longer maintained; use cilium",
        &["spec.networking.classic", "spec.networking.romana"],
    ),
    removed_field(
        When::Set,
        "containerd is the one container runtime",
        &["spec.docker"],
    ),
    removed_field(
        When::Is("false"),
        "the EBS CSI driver is part of every cluster; managed: false leaves it to you",
        &["spec.cloudConfig.awsEBSCSIDriver.enabled"],
    ),
    removed_field(
        When::Set,
        "kube-scheduler has no policies any more",
        &["spec.kubeScheduler.usePolicyConfigMap"],
    ),
    removed_field(
        When::Is("docker"),
        "containerd is the one container runtime",
        &["spec.containerRuntime"],
    ),
    removed_field(
        When::Set,
        "clusters have DNS names or a load balancer",
        &["spec.gossipConfig", "spec.dnsControllerGossipConfig"],
    ),
    removed_field(
        When::Set,
        "control-plane instances have security groups of their own",
        &["spec.isolateMasters"],
    ),
    removed_field(
        When::Set,
        "Nodes are authorized by Kubernetes",
        &["spec.nodeAuthorization"],
    ),
    Unsupported {
        kind: CLUSTER,
        paths: &["spec.serviceOIDCProvider"],
        when: When::Set,
        standing: Standing::Dropped,
        reason: "use serviceAccountIssuerDiscovery",
    },
    Unsupported {
        kind: CLUSTER,
        paths: &["spec.networking.calico.crossSubnet"],
        when: When::Present,
        standing: Standing::Dropped,
        reason: "packets are encapsulated between subnets only unless ipipMode or vxlanMode say otherwise",
    },
    Unsupported {
        kind: CLUSTER,
        paths: &["spec.networking.calico.majorVersion"],
        when: When::Present,
        standing: Standing::Dropped,
        reason: "there is calico 3 only; its version is in version",
    },
    Unsupported {
        kind: CLUSTER,
        paths: &[
            "spec.networking.cilium.accessLog",
            "spec.networking.cilium.agentLabels",
            "spec.networking.cilium.allowLocalhost",
            "spec.networking.cilium.autoIpv6NodeRoutes",
            "spec.networking.cilium.bpfRoot",
            "spec.networking.cilium.cniBinPath",
            "spec.networking.cilium.containerRuntime",
            "spec.networking.cilium.containerRuntimeEndpoint",
            "spec.networking.cilium.containerRuntimeLabels",
            "spec.networking.cilium.debugVerbose",
            "spec.networking.cilium.device",
            "spec.networking.cilium.disableConntrack",
            "spec.networking.cilium.disableIpv4",
            "spec.networking.cilium.disableK8sServices",
            "spec.networking.cilium.enableTracing",
            "spec.networking.cilium.enableipv4",
            "spec.networking.cilium.enableipv6",
            "spec.networking.cilium.envoyLog",
            "spec.networking.cilium.ipv4ClusterCidrMaskSize",
            "spec.networking.cilium.ipv4Node",
            "spec.networking.cilium.ipv4Range",
            "spec.networking.cilium.ipv4ServiceRange",
            "spec.networking.cilium.ipv6ClusterAllocCidr",
            "spec.networking.cilium.ipv6Node",
            "spec.networking.cilium.ipv6Range",
            "spec.networking.cilium.ipv6ServiceRange",
            "spec.networking.cilium.k8sApiServer",
            "spec.networking.cilium.k8sKubeconfigPath",
            "spec.networking.cilium.keepBpfTemplates",
            "spec.networking.cilium.keepConfig",
            "spec.networking.cilium.labelPrefixFile",
            "spec.networking.cilium.labels",
            "spec.networking.cilium.lb",
            "spec.networking.cilium.libDir",
            "spec.networking.cilium.logDriver",
            "spec.networking.cilium.logOpt",
            "spec.networking.cilium.logstash",
            "spec.networking.cilium.logstashAgent",
            "spec.networking.cilium.logstashProbeTimer",
            "spec.networking.cilium.nat46Range",
            "spec.networking.cilium.nodeInitBootstrapFile",
            "spec.networking.cilium.pprof",
            "spec.networking.cilium.prefilterDevice",
            "spec.networking.cilium.prometheusServeAddr",
            "spec.networking.cilium.reconfigureKubelet",
            "spec.networking.cilium.removeCbrBridge",
            "spec.networking.cilium.restartPods",
            "spec.networking.cilium.restore",
            "spec.networking.cilium.singleClusterRoute",
            "spec.networking.cilium.socketPath",
            "spec.networking.cilium.stateDir",
            "spec.networking.cilium.toFqdnsEnablePoller",
            "spec.networking.cilium.tracePayloadlen",
        ],
        when: When::Set,
        standing: Standing::Dropped,
        reason: "no cilium reads it any more",
    },
    removed_field(
        When::Set,
        "use sshAccess and kubernetesApiAccess",
        &["spec.adminAccess"],
    ),
    removed_field(
        When::Is("true"),
        "roles have only the permissions they need",
        &["spec.iam.legacy"],
    ),
    removed_field(
        When::Is("Legacy"),
        "etcd runs under protokube",
        &["spec.etcdClusters[].provider"],
    ),
    removed_field(
        When::Is("false"),
        "etcd always uses TLS",
        &[
            "spec.etcdClusters[].enableEtcdTLS",
            "spec.etcdClusters[].enableTLSAuth",
        ],
    ),
    removed_field(
        When::Set,
        "protokube takes snapshots itself, without an image",
        &["spec.etcdClusters[].backups.image"],
    ),
    removed_field(
        When::Is("KubeDNS"),
        "CoreDNS is the one DNS server",
        &["spec.kubeDNS.provider"],
    ),
    unsupported_in_group(
        When::Is("APIServer"),
        "groups of role APIServer",
        &["spec.role"],
    ),
    unsupported_in_group(
        When::Set,
        "a device plugin or exporter of a group's own; set it in the cluster's spec.containerd.nvidiaGPU",
        &[
            "spec.containerd.nvidiaGPU.image",
            "spec.containerd.nvidiaGPU.dcgmExporter",
        ],
    ),
    unsupported_in_group(
        When::Set,
        "Spot blocks; AWS has ended them",
        &["spec.spotDurationInMinutes"],
    ),
    unsupported_in_group(
        When::Set,
        "clouds other than AWS",
        &["spec.guestAccelerators", "spec.gcpProvisioningModel"],
    ),
];

/// A use of a field of the list.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub path: String,
    pub entry: &'static Unsupported,
}

impl Unsupported {
    /// True if a spec with it works in kOps, which drops it.
    pub fn is_dropped_by_kops(&self) -> bool {
        self.standing == Standing::Dropped
    }

    /// What to say about it, without the path.
    pub fn message(&self) -> String {
        match self.standing {
            Standing::Current => {}
            Standing::Removed => return format!("kOps removed this: {}", self.reason),
            Standing::Dropped => {
                return format!("it does nothing, in kOps either: {}", self.reason);
            }
        }
        let (what, advice) = self
            .reason
            .split_at(self.reason.find(';').unwrap_or(self.reason.len()));
        format!("kctl does not support {what}{advice}")
    }

    /// The same as a sentence, with the values that it is said of.
    pub fn note(&self) -> String {
        let verb = if self.is_dropped_by_kops() {
            "Ignored"
        } else {
            "Refused"
        };
        let condition = match self.when {
            When::Present => String::new(),
            When::Set => " unless it is empty or off".to_owned(),
            When::Is(value) => format!(" if it is {value}"),
        };
        format!("{verb}{condition}: {}.", self.message())
    }

    /// When the field counts as used.
    pub(crate) fn when(&self) -> When {
        self.when
    }
}

/// The entries of a field, by its path with `[]` for any element of a list.
pub(crate) fn entries_at(kind: &str, path: &str) -> Vec<&'static Unsupported> {
    let all = UNSUPPORTED.iter();
    all.filter(|entry| entry.kind == kind && entry.paths.contains(&path))
        .collect()
}

/// The names of all listed fields directly below a path.
pub(crate) fn names_below(kind: &str, parent: &str) -> BTreeSet<&'static str> {
    let entries = UNSUPPORTED.iter().filter(|entry| entry.kind == kind);
    let paths = entries.flat_map(|entry| entry.paths.iter().copied());
    let names = paths.filter_map(|path| path.strip_prefix(parent)?.strip_prefix('.'));
    names.filter(|name| !name.contains('.')).collect()
}

/// Every use in an object.
pub(crate) fn find_unsupported(kind: &str, root: &Node) -> Vec<Found> {
    let mut found = Vec::new();
    for entry in UNSUPPORTED.iter().filter(|entry| entry.kind == kind) {
        for pattern in entry.paths {
            find_pattern(root, String::new(), pattern, &mut |path, node| {
                if entry.when.applies_to(node) {
                    found.push(Found { path, entry });
                }
            });
        }
    }
    found
}

/// True if the field at a path is of the list, whatever its value.
pub(crate) fn is_listed(kind: &str, path: &str) -> bool {
    !entries_at(kind, path).is_empty()
}

fn find_pattern(node: &Node, at: String, pattern: &str, found: &mut impl FnMut(String, &Node)) {
    if let Some(rest) = pattern.strip_prefix("[]") {
        if let Content::List(elements) = &node.content {
            for (index, element) in elements.iter().enumerate() {
                find_pattern(element, path::element_path(&at, index), rest, found);
            }
        }
        return;
    }
    let pattern = pattern.strip_prefix('.').unwrap_or(pattern);
    if pattern.is_empty() {
        return found(at, node);
    }
    let (name, rest) = pattern.split_at(pattern.find(['.', '[']).unwrap_or(pattern.len()));
    if let Some(value) = node.get(name) {
        find_pattern(value, path::field_path(&at, name), rest, found);
    }
}

impl When {
    fn applies_to(self, node: &Node) -> bool {
        match self {
            Self::Present => !node.is_null(),
            Self::Set => is_enabled(node),
            Self::Is(value) => match &node.content {
                Content::Scalar(scalar) => scalar.text().eq_ignore_ascii_case(value),
                _ => false,
            },
        }
    }
}

/// True unless a value is false, empty or switched off.
fn is_enabled(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(Scalar::Bool(value, _)) => *value,
        Content::Scalar(scalar) => !scalar.text().is_empty(),
        Content::List(elements) => !elements.is_empty(),
        Content::Map(entries) => {
            let off =
                |enabled: &Node| matches!(enabled.content, Content::Scalar(Scalar::Bool(false, _)));
            !entries.is_empty() && !node.get("enabled").is_some_and(off)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::UNSUPPORTED;
    use crate::field::objects;

    #[test]
    fn every_listed_field_is_one_that_is_described() {
        let objects = objects();
        for entry in UNSUPPORTED {
            let object = objects.iter().find(|object| object.name == entry.kind);
            let fields = object.unwrap().below(true);
            for path in entry.paths {
                assert!(fields.iter().any(|field| field.path == *path), "{path}");
            }
        }
    }
}
