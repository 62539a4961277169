//! Who sent a request: `spec.authentication`.

use serde_json::Value;

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// One of the webhooks that API servers ask.
    pub struct AuthenticationSpec {
        /// That of kopeio, which is refused.
        pub kopeio: Option<Value>,
        /// The AWS IAM authenticator.
        pub aws: Option<AWSAuthenticationSpec>,
    }

    /// Says which user of the cluster an AWS identity is.
    pub struct AWSAuthenticationSpec {
        pub image: Option<String>,
        /// Where it finds identities: `CRD`, `MountedFile`, `EKSConfigMap`, `DynamicFile`, with commas between them.
        pub backend_mode: Option<String>,
        /// What tokens are for; default the cluster's name.
        #[serde(rename = "clusterID")]
        pub cluster_id: Option<String>,
        /// Memory a pod asks for.
        pub memory_request: Option<Quantity>,
        /// CPU a pod asks for.
        pub cpu_request: Option<Quantity>,
        /// Memory a pod may use at most.
        pub memory_limit: Option<Quantity>,
        /// CPU a pod may use at most.
        pub cpu_limit: Option<Quantity>,
        /// Identities and who they are.
        pub identity_mappings: Vec<AWSAuthenticationIdentityMappingSpec>,
    }

    /// An AWS identity and who it is in the cluster.
    pub struct AWSAuthenticationIdentityMappingSpec {
        /// ARN of a role or user of IAM.
        pub arn: Option<String>,
        /// Name of the user in the cluster; may have the authenticator's variables.
        pub username: Option<String>,
        pub groups: Vec<String>,
    }
}
