//! What controllers in the cluster have made: load balancers of Services and Ingresses, their target groups and security groups,
//! volumes of PersistentVolumes. It goes with the cluster, and is looked for only when the cluster is deleted.

use super::ec2::is_owned;
use crate::world::AwsWorld;
use cloud::Tags;
use node::names::logical_name;

/// Tag of what the AWS load balancer controller makes; its value is the cluster's name
/// (<https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/ingress/annotations/#resource-tags>).
pub(super) const BALANCER_CONTROLLER_TAG: &str = "elbv2.k8s.aws/cluster";

/// Tag of a volume that the EBS CSI driver, or the cloud provider before it, made for a PersistentVolumeClaim
/// (<https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/tagging.md>).
const CLAIM_TAG: &str = "kubernetes.io/created-for/pvc/name";

/// True if the cluster owns it, or one of its controllers has made it and the cluster is being deleted.
pub(super) fn goes_with_cluster(world: &AwsWorld, tags: &Tags) -> bool {
    let by_controller = || tags.get(BALANCER_CONTROLLER_TAG) == Some(&world.scope.cluster);
    is_owned(world, tags) || (world.scope.is_deletion() && by_controller())
}

/// The logical name by the tags. What controllers made has none, and is named as AWS names it.
pub(super) fn name_in_plan(world: &AwsWorld, tags: &Tags, in_aws: &str) -> Option<String> {
    let deletion = world.scope.is_deletion();
    logical_name(tags).or_else(|| deletion.then(|| in_aws.to_owned()))
}

/// True for the volume of a PersistentVolumeClaim, when the cluster is being deleted.
pub(super) fn is_claimed_volume(world: &AwsWorld, tags: &Tags) -> bool {
    world.scope.is_deletion() && tags.contains_key(CLAIM_TAG)
}
