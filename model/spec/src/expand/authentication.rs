//! `spec.authentication.aws`.

use crate::api::authentication::AWSAuthenticationSpec;
use crate::api::cluster::ClusterSpec;
use full::{AwsIamAuthenticator, IdentityMapping};

/// The image of kOps.
const IMAGE: &str =
    "public.ecr.aws/eks-distro/kubernetes-sigs/aws-iam-authenticator:v0.6.20-eks-1-30-7";

/// The AWS IAM authenticator of a completed spec; `None` if there is none.
pub(super) fn full_aws_iam_authenticator(spec: &ClusterSpec) -> Option<AwsIamAuthenticator> {
    let AWSAuthenticationSpec {
        image,
        backend_mode,
        cluster_id,
        memory_request,
        cpu_request,
        memory_limit,
        cpu_limit,
        identity_mappings,
    } = spec.authentication.clone()?.aws?;
    let said = |text: &String| !text.is_empty();
    let mappings = identity_mappings.into_iter();
    Some(AwsIamAuthenticator {
        image: image.filter(said).unwrap_or_else(|| IMAGE.to_owned()),
        backend_mode: backend_mode.filter(said),
        cluster_id: cluster_id.filter(said),
        identity_mappings: mappings
            .map(|mapping| IdentityMapping {
                arn: mapping.arn.unwrap_or_default(),
                username: mapping.username.unwrap_or_default(),
                groups: mapping.groups,
            })
            .collect(),
        memory_request,
        memory_limit,
        cpu_request,
        cpu_limit,
    })
}
