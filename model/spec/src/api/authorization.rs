//! Who may do what: `spec.authorization`.

use super::fields::spec;

spec! {
    /// How the API server decides who may do what. One of the two.
    pub struct AuthorizationSpec {
        /// Everybody who has any token or certificate of the cluster may do everything. It needs no fields: `{}`.
        pub always_allow: Option<AlwaysAllowAuthorizationSpec>,
        /// Roles and bindings of Kubernetes decide (RBAC). This is the default. It needs no fields: `{}`.
        pub rbac: Option<RBACAuthorizationSpec>,
    }

    /// Everybody may do everything. It has no fields.
    pub struct AlwaysAllowAuthorizationSpec {
    }

    /// Roles and bindings of Kubernetes decide. It has no fields.
    pub struct RBACAuthorizationSpec {
    }
}
