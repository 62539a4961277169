//! Who sent a request: `spec.authentication`.

use serde_json::Value;

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// Who API servers ask about tokens that they do not know.
    pub struct AuthenticationSpec {
        /// Authentication by kopeio.
        pub kopeio: Option<Value>,
        /// Installs the AWS IAM authenticator: identities of AWS are users of the cluster.
        pub aws: Option<AWSAuthenticationSpec>,
    }

    /// The AWS IAM authenticator. An empty section installs it too.
    pub struct AWSAuthenticationSpec {
        /// Image of the authenticator. Default that of the release.
        pub image: Option<String>,
        /// Where it finds identities: `CRD`, `MountedFile`, `EKSConfigMap` or `DynamicFile`, or several with commas between
        /// them. Default `MountedFile`.
        pub backend_mode: Option<String>,
        /// What tokens are for, so that a token for another cluster does not count. Default the name of the cluster.
        #[serde(rename = "clusterID")]
        pub cluster_id: Option<String>,
        /// Memory that a pod asks for. Default 20Mi.
        pub memory_request: Option<Quantity>,
        /// CPU that a pod asks for. Default 10m.
        pub cpu_request: Option<Quantity>,
        /// Memory that a pod may use at most. Default 20Mi.
        pub memory_limit: Option<Quantity>,
        /// CPU that a pod may use at most. Default no limit.
        pub cpu_limit: Option<Quantity>,
        /// Identities of AWS and the users that they are. They need the backend `CRD`.
        pub identity_mappings: Vec<AWSAuthenticationIdentityMappingSpec>,
    }

    /// An identity of AWS, and the user of the cluster that it is.
    pub struct AWSAuthenticationIdentityMappingSpec {
        /// ARN of a role or user of IAM.
        pub arn: Option<String>,
        /// Name of the user in the cluster. It may have variables such as `{{SessionName}}`.
        pub username: Option<String>,
        /// Groups of the user in the cluster.
        pub groups: Vec<String>,
    }
}
