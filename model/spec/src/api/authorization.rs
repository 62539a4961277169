//! Who may do what: `spec.authorization`.

use super::fields::spec;

spec! {
    /// One of the modes.
    pub struct AuthorizationSpec {
        /// Everybody may do everything.
        pub always_allow: Option<AlwaysAllowAuthorizationSpec>,
        /// Kubernetes RBAC.
        pub rbac: Option<RBACAuthorizationSpec>,
    }

    /// Marks the mode; has no fields.
    pub struct AlwaysAllowAuthorizationSpec {
    }

    /// Marks the mode; has no fields.
    pub struct RBACAuthorizationSpec {
    }
}
