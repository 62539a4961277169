//! Names that kOps' `--set` knows and its v1alpha2 files do not: those of its newer API version,
//! which its commands work on. In a file, a hint names v1alpha2's.

use crate::read::path::PathSegment;

/// Where the newer version has a field, and where v1alpha2 has it.
const NAMES: &[(&str, &str)] = &[
    ("spec.api.access", "spec.kubernetesApiAccess"),
    ("spec.api.additionalSANs", "spec.additionalSans"),
    (
        "spec.api.loadBalancer.useForInternalAPI",
        "spec.api.loadBalancer.useForInternalApi",
    ),
    ("spec.api.publicName", "spec.masterPublicName"),
    (
        "spec.cloudProvider.aws.disableSecurityGroupIngress",
        "spec.cloudConfig.disableSecurityGroupIngress",
    ),
    (
        "spec.cloudProvider.aws.ebsCSIDriver",
        "spec.cloudConfig.awsEBSCSIDriver",
    ),
    (
        "spec.cloudProvider.aws.elbSecurityGroup",
        "spec.cloudConfig.elbSecurityGroup",
    ),
    (
        "spec.cloudProvider.aws.loadBalancerController",
        "spec.awsLoadBalancerController",
    ),
    (
        "spec.cloudProvider.aws.nodeIPFamilies",
        "spec.cloudConfig.nodeIPFamilies",
    ),
    (
        "spec.cloudProvider.aws.nodeTerminationHandler",
        "spec.nodeTerminationHandler",
    ),
    (
        "spec.cloudProvider.aws.podIdentityWebhook",
        "spec.podIdentityWebhook",
    ),
    ("spec.cloudProvider.aws.warmPool", "spec.warmPool"),
    ("spec.configStore.base", "spec.configBase"),
    ("spec.configStore.keypairs", "spec.keyStore"),
    ("spec.configStore.secrets", "spec.secretStore"),
    ("spec.controlPlaneKubelet", "spec.masterKubelet"),
    ("spec.externalDNS", "spec.externalDns"),
    (
        "spec.networking.additionalNetworkCIDRs",
        "spec.additionalNetworkCIDRs",
    ),
    ("spec.networking.egressProxy", "spec.egressProxy"),
    ("spec.networking.networkCIDR", "spec.networkCIDR"),
    ("spec.networking.networkID", "spec.networkID"),
    (
        "spec.networking.nonMasqueradeCIDR",
        "spec.nonMasqueradeCIDR",
    ),
    ("spec.networking.podCIDR", "spec.podCIDR"),
    (
        "spec.networking.serviceClusterIPRange",
        "spec.serviceClusterIPRange",
    ),
    ("spec.networking.subnets", "spec.subnets"),
    ("spec.networking.topology", "spec.topology"),
    ("spec.rootVolume.size", "spec.rootVolumeSize"),
    ("spec.rootVolume.type", "spec.rootVolumeType"),
    ("spec.rootVolume.iops", "spec.rootVolumeIops"),
    ("spec.rootVolume.throughput", "spec.rootVolumeThroughput"),
    (
        "spec.rootVolume.optimization",
        "spec.rootVolumeOptimization",
    ),
    ("spec.rootVolume.encryption", "spec.rootVolumeEncryption"),
    (
        "spec.rootVolume.encryptionKey",
        "spec.rootVolumeEncryptionKey",
    ),
];

/// The hint for a field of a file that only the newer version has, or of whose fields v1alpha2 has some elsewhere.
pub(crate) fn hint(path: &str) -> Option<String> {
    let is_below = |newer: &str| {
        let rest = newer.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let (newer, older) = NAMES.iter().find(|(newer, _)| is_below(newer))?;
    Some(format!("in v1alpha2 {newer} is {older}"))
}

/// The steps with v1alpha2's names.
pub(crate) fn in_v1alpha2(steps: Vec<PathSegment>) -> Vec<PathSegment> {
    let renamed = NAMES.iter().find_map(|(newer, older)| {
        let mut rest = steps.iter();
        let matches = newer
            .split('.')
            .all(|name| matches!(rest.next(), Some(PathSegment::Field(step)) if step == name));
        let older = older
            .split('.')
            .map(|name| PathSegment::Field(name.to_owned()));
        matches.then(|| older.chain(rest.cloned()).collect())
    });
    let mut steps: Vec<PathSegment> = renamed.unwrap_or(steps);
    // `etcdClusters[N].members`, below an index.
    if let [
        PathSegment::Field(spec),
        PathSegment::Field(clusters),
        PathSegment::Element(_) | PathSegment::Each,
        PathSegment::Field(members),
        ..,
    ] = steps.as_mut_slice()
        && spec == "spec"
        && clusters == "etcdClusters"
        && members == "members"
    {
        "etcdMembers".clone_into(members);
    }
    steps
}
