//! IAM roles of the instances: `spec.iam`, of a cluster and of a group.

use serde_json::Value;

use super::fields::spec;

spec! {
    /// Roles of the whole cluster.
    pub struct IAMSpec {
        /// Wide permissions of old kOps; only false is possible.
        pub legacy: Option<bool>,
        /// True: instances may pull from ECR.
        pub allow_container_registry: Option<bool>,
        /// ARN of the boundary of every role.
        pub permissions_boundary: Option<String>,
        /// True: pods get AWS permissions from service accounts.
        pub use_service_account_external_permissions: Option<bool>,
        /// AWS permissions of service accounts.
        pub service_account_external_permissions: Vec<ServiceAccountExternalPermission>,
    }

    /// AWS permissions of one service account.
    pub struct ServiceAccountExternalPermission {
        pub name: String,
        /// A namespace, or a pattern with `*`.
        pub namespace: String,
        pub aws: Option<AWSPermission>,
    }

    /// Either of both.
    pub struct AWSPermission {
        /// ARNs of managed policies.
        #[serde(rename = "policyARNs")]
        pub policy_arns: Vec<String>,
        /// A JSON list of statements.
        pub inline_policy: Option<String>,
    }

    /// The issuer of service accounts' tokens, published where AWS and others can read it.
    pub struct ServiceAccountIssuerDiscoveryConfig {
        /// `s3://BUCKET/PATH`.
        pub discovery_store: Option<String>,
        pub discovery_service: Option<Value>,
        /// True: AWS takes the tokens.
        #[serde(rename = "enableAWSOIDCProvider")]
        pub enable_aws_oidc_provider: Option<bool>,
        /// Audiences beside `amazonaws.com` whose tokens AWS takes.
        pub additional_audiences: Vec<String>,
    }

    /// The role of one group.
    pub struct IAMProfileSpec {
        /// ARN of an existing instance profile instead of our own.
        pub profile: Option<String>,
    }
}
