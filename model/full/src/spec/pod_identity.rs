//! AWS permissions of pods: who issues the tokens of service accounts, where that is published, and which roles they may assume.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The issuer of the tokens of service accounts, published where everybody can read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodIdentity {
    /// `https://BUCKET.s3.REGION.amazonaws.com/PREFIX`, on IPv6 `https://s3.dualstack.REGION.amazonaws.com/BUCKET/PREFIX`; without a
    /// slash at its end.
    pub issuer: String,
    /// Where its documents are: `s3://BUCKET/PREFIX`, without a slash at its end.
    pub discovery_store: String,
    /// Audiences of tokens that AWS takes, sorted; empty: AWS does not know the issuer.
    pub audiences: Vec<String>,
    /// The permissions of addons go to roles of their service accounts, and not to instances.
    pub addon_roles: bool,
    /// Roles of the user's service accounts.
    pub roles: Vec<ServiceAccountRole>,
}

/// What the pods of a service account may do in AWS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceAccountRole {
    /// A namespace, or a pattern with `*`.
    pub namespace: String,
    pub service_account: String,
    /// Managed policies, by ARN.
    pub policy_arns: Vec<String>,
    /// Statements of its own policy, as parsed JSON list; `None`: it has none.
    pub statements: Option<Value>,
}
