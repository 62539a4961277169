//! IAM: what instances may do.

use super::{Kind, Rename, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A role that instances of one group role assume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IamRole {
    /// `masters.NAME`, `nodes.NAME`, `bastions.NAME`.
    pub role_name: String,
    /// Who may assume it.
    pub assume_role_policy_document: Value,
    /// ARN of the policy that bounds it.
    pub permissions_boundary: Option<String>,
    /// Tags.
    pub tags: Tags,
}

impl Kind for IamRole {
    const TYPE: &'static str = "iam_role";

    fn name(&self) -> String {
        self.role_name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        Vec::new()
    }
}

/// An inline policy of a role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IamRolePolicy {
    /// The policy's name: the role's name, or `additional.ROLE` for `spec.additionalPolicies`.
    pub policy_name: String,
    /// The role.
    pub role_name: Ref,
    /// The document; lists of actions and resources sorted.
    pub policy_document: Value,
}

impl Kind for IamRolePolicy {
    const TYPE: &'static str = "iam_role_policy";

    fn name(&self) -> String {
        self.policy_name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.role_name.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            role_name: rename(&self.role_name),
            ..self.clone()
        }
    }
}

/// A managed policy attached to a role (`spec.externalPolicies`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IamRolePolicyAttachment {
    /// The role.
    pub role_name: Ref,
    /// ARN of the policy.
    pub policy_arn: String,
}

impl Kind for IamRolePolicyAttachment {
    const TYPE: &'static str = "iam_role_policy_attachment";

    fn name(&self) -> String {
        let role = self
            .role_name
            .id()
            .map_or_else(String::new, |id| id.name().to_owned());
        format!("{role}-{}", self.policy_arn)
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.role_name.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            role_name: rename(&self.role_name),
            ..self.clone()
        }
    }
}

/// The instance profile that hands a role to instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IamInstanceProfile {
    /// Same name as its role.
    pub instance_profile_name: String,
    /// The role in it; `None` only as observed, between creation and `AddRoleToInstanceProfile`.
    pub role_name: Option<Ref>,
    /// Tags.
    pub tags: Tags,
}

impl Kind for IamInstanceProfile {
    const TYPE: &'static str = "iam_instance_profile";

    fn name(&self) -> String {
        self.instance_profile_name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        self.role_name.iter().cloned().collect()
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            role_name: self.role_name.as_ref().map(rename),
            ..self.clone()
        }
    }
}
