//! IAM: what instances may do.

use super::listing::{ListingPosition, PartOf, Section};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The OIDC provider of a cluster: AWS trusts the tokens that its API server issues to service accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IamOpenidConnectProvider {
    /// The issuer, which names it: `https://...`.
    pub url: String,
    /// Audiences of tokens that AWS takes, sorted.
    pub client_id_list: Vec<String>,
    /// SHA-1 of certificates in hex, sorted.
    pub thumbprint_list: Vec<String>,
    pub tags: Tags,
}

impl Kind for IamOpenidConnectProvider {
    const TYPE: &'static str = "iam_openid_connect_provider";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Permissions, 4);

    fn name(&self) -> String {
        self.url.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }
}

/// A role that instances of one group role, or pods of one service account, assume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IamRole {
    /// `masters.NAME`, `nodes.NAME`, `bastions.NAME`, `SERVICEACCOUNT.NAMESPACE.sa.NAME`.
    pub role_name: String,
    /// Who may assume it.
    pub assume_role_policy_document: Value,
    /// ARN of the policy that bounds it.
    pub permissions_boundary: Option<String>,
    pub tags: Tags,
}

impl Kind for IamRole {
    const TYPE: &'static str = "iam_role";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Permissions, 0);

    fn name(&self) -> String {
        self.role_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }
}

/// An inline policy of a role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IamRolePolicy {
    /// The policy's name: the role's name, or `additional.ROLE` for `spec.additionalPolicies`.
    pub policy_name: String,
    pub role_name: Ref,
    /// The document; lists of actions and resources sorted.
    pub policy_document: Value,
}

impl Kind for IamRolePolicy {
    const TYPE: &'static str = "iam_role_policy";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Permissions, 1);

    fn name(&self) -> String {
        self.policy_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.role_name]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.role_name, "policy", "policies")
    }
}

/// A managed policy attached to a role (`spec.externalPolicies`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IamRolePolicyAttachment {
    pub role_name: Ref,
    /// ARN of the policy.
    pub policy_arn: String,
}

impl Kind for IamRolePolicyAttachment {
    const TYPE: &'static str = "iam_role_policy_attachment";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Permissions, 2);

    fn name(&self) -> String {
        let role = self
            .role_name
            .id()
            .map_or_else(String::new, |id| id.name().to_owned());
        format!("{role}-{}", self.policy_arn)
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.role_name]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.role_name, "attached policy", "attached policies")
    }
}

/// The instance profile that hands a role to instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IamInstanceProfile {
    /// Same name as its role.
    pub instance_profile_name: String,
    /// The role in it; `None` only as observed, between creation and `AddRoleToInstanceProfile`.
    pub role_name: Option<Ref>,
    pub tags: Tags,
}

impl Kind for IamInstanceProfile {
    const TYPE: &'static str = "iam_instance_profile";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Permissions, 3);

    fn name(&self) -> String {
        self.instance_profile_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        self.role_name.iter_mut().collect()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(
            self.role_name.as_ref()?,
            "instance profile",
            "instance profiles",
        )
    }
}
