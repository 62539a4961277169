//! An instance group, as far as the health of its instances rests on it.

use node::config::Role;

/// An instance group of the spec. It can be made from the full spec or from the stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// Its role; `None` if kctl does not support the role that the spec names.
    pub role: Option<Role>,
    /// Smallest number of instances, if the spec says it.
    pub min: Option<i32>,
    /// Largest number of instances, if the spec says it.
    pub max: Option<i32>,
}

/// A role as kOps writes it in tables, `ControlPlane` for example; empty for `None`.
pub fn role_name(role: Option<Role>) -> &'static str {
    match role {
        Some(Role::ControlPlane) => "ControlPlane",
        Some(Role::Node) => "Node",
        Some(Role::Bastion) => "Bastion",
        None => "",
    }
}
