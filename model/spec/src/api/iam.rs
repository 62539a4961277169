//! IAM roles of the instances: `spec.iam`, of a cluster and of a group.

use serde_json::Value;

use super::fields::spec;

spec! {
    /// Roles of the instances and of service accounts.
    pub struct IAMSpec {
        /// The wide permissions that kOps gave once; only false is possible.
        pub legacy: Option<bool>,
        /// Instances may pull images from ECR. Default false; `kctl create cluster` writes true.
        pub allow_container_registry: Option<bool>,
        /// ARN of the policy that limits every role of the cluster. Default none.
        pub permissions_boundary: Option<String>,
        /// Addons get the AWS permissions of a role of their service account, not of their instance. It needs a published
        /// issuer. Default false.
        pub use_service_account_external_permissions: Option<bool>,
        /// AWS permissions of service accounts of yours. They need a published issuer.
        pub service_account_external_permissions: Vec<ServiceAccountExternalPermission>,
    }

    /// AWS permissions of one service account.
    pub struct ServiceAccountExternalPermission {
        /// Name of the service account.
        pub name: String,
        /// Its namespace; `*` in it stands for any characters.
        pub namespace: String,
        /// What it may do in AWS.
        pub aws: Option<AWSPermission>,
    }

    /// What a service account may do in AWS: managed policies, or statements.
    pub struct AWSPermission {
        /// ARNs of managed policies.
        #[serde(rename = "policyARNs")]
        pub policy_arns: Vec<String>,
        /// IAM statements, a JSON list as text.
        pub inline_policy: Option<String>,
    }

    /// Publishes who issues the tokens of service accounts, and the keys that verify them.
    pub struct ServiceAccountIssuerDiscoveryConfig {
        /// Folder of the two public documents, `s3://BUCKET/PATH`: one for each cluster, in a bucket that everybody may read
        /// from.
        pub discovery_store: Option<String>,
        /// A service that publishes the documents.
        pub discovery_service: Option<Value>,
        /// AWS takes the tokens: kctl makes an OIDC provider in IAM. Default false.
        #[serde(rename = "enableAWSOIDCProvider")]
        pub enable_aws_oidc_provider: Option<bool>,
        /// Audiences of tokens that AWS takes beside `amazonaws.com`.
        pub additional_audiences: Vec<String>,
    }

    /// The instance profile of a group.
    pub struct IAMProfileSpec {
        /// ARN of an existing instance profile with a role, in the place of the one that kctl makes.
        pub profile: Option<String>,
    }
}
