//! What gives pods AWS permissions: the OIDC provider through which AWS trusts the cluster's tokens, and a role for each service account
//! that has permissions.

use super::iam::attach_policies;
use crate::addons::{ADDON_NAMESPACE, addon_roles};
use crate::{FullSpec, PodIdentity, cluster_tags, iam};
use cloud::{Cloud, IamOpenidConnectProvider, IamRole, IamRolePolicy};
use node::names::{SERVICE_ACCOUNT_NAMESPACE_TAG, SERVICE_ACCOUNT_TAG, service_account_role};
use serde_json::Value;

/// SHA-1 of the root certificates of S3, as in kOps. AWS itself takes issuers in S3 by its own list of authorities (IAM User Guide, "Obtain
/// the thumbprint for an OpenID Connect identity provider"), but an API call without thumbprints makes it fetch one.
const S3_THUMBPRINTS: [&str; 2] = [
    "9e99a48a9960b14926bb7f3b02e22da2b0ab7280",
    "a9d53002e97e00e043244f3d170d6f4c414104fd",
];

pub(super) fn build_pod_identity(full: &FullSpec) -> Vec<Cloud> {
    let Some(identity) = &full.pod_identity else {
        return Vec::new();
    };
    let mut all = Vec::new();
    if !identity.audiences.is_empty() {
        all.push(
            IamOpenidConnectProvider {
                url: identity.issuer.clone(),
                client_id_list: identity.audiences.clone(),
                thumbprint_list: S3_THUMBPRINTS.map(str::to_owned).to_vec(),
                tags: cluster_tags(full, &full.name),
            }
            .into(),
        );
    }
    for (service_account, statements) in addon_roles(full) {
        let policy = Some(iam::policy_of(statements));
        let account = (ADDON_NAMESPACE, service_account);
        all.extend(build_role(full, identity, account, policy, &[]));
    }
    for role in &identity.roles {
        let policy = role.statements.as_ref().map(iam::policy_of_user);
        let account = (role.namespace.as_str(), role.service_account.as_str());
        all.extend(build_role(
            full,
            identity,
            account,
            policy,
            &role.policy_arns,
        ));
    }
    all
}

fn build_role(
    full: &FullSpec,
    identity: &PodIdentity,
    (namespace, service_account): (&str, &str),
    policy: Option<Value>,
    policy_arns: &[String],
) -> Vec<Cloud> {
    let name = service_account_role(&full.name, namespace, service_account);
    let reference = super::own_ref::<IamRole>(&name);
    let mut tags = cluster_tags(full, &name);
    // AWS takes no asterisk in the value of a tag.
    for (key, value) in [
        (SERVICE_ACCOUNT_TAG, service_account),
        (SERVICE_ACCOUNT_NAMESPACE_TAG, namespace),
    ] {
        tags.insert(key.to_owned(), value.replace('*', "wildcard"));
    }
    let trust = iam::service_account_trust_policy(
        &full.placement,
        &identity.issuer,
        namespace,
        service_account,
    );
    let role = IamRole {
        role_name: name.clone(),
        assume_role_policy_document: trust,
        permissions_boundary: full.iam.permissions_boundary.clone(),
        tags,
    };
    let mut all: Vec<Cloud> = vec![role.into()];
    all.extend(policy.map(|policy_document| {
        Cloud::from(IamRolePolicy {
            policy_name: name,
            role_name: reference.clone(),
            policy_document,
        })
    }));
    all.extend(attach_policies(&reference, policy_arns));
    all
}
