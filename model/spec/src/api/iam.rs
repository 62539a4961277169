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
        pub service_account_external_permissions: Vec<Value>,
    }

    /// The role of one group.
    pub struct IAMProfileSpec {
        /// ARN of an existing instance profile instead of our own.
        pub profile: Option<String>,
    }
}
