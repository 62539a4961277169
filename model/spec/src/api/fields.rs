//! How every struct of the spec is written down: one attribute set for all of them.

/// Declares structs of the wire format: camelCase names, every field optional in the input, a
/// field that has its empty value left out of the output, and unknown names refused.
///
/// A macro, because the attributes would otherwise be repeated for each of 700 fields.
macro_rules! spec {
    ($($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[serde(skip_serializing_if = "crate::api::fields::is_empty")]
                pub $field: $type,
            )*
        }
    )*};
}

pub(crate) use spec;

/// True for what a field holds when nobody set it: `None`, an empty list, map or name.
pub(crate) fn is_empty<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
