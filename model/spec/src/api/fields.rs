//! How every struct of the spec is written down: one attribute set for all of them.

/// Declares structs of the wire format: camelCase names, every field optional in the input, a
/// field that has its empty value left out of the output, and unknown names refused.
///
/// A macro, because the attributes would otherwise be repeated for each of 700 fields.
macro_rules! spec {
    ($($(#[$($meta:tt)*])* pub struct $name:ident {
        $($(#[$($field_meta:tt)*])* pub $field:ident: $type:ty,)*
    })*) => {$(
        crate::api::fields::described! {
            $(#[$($meta)*])*
            #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
            #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
            pub struct $name {
                $(
                    $(#[$($field_meta)*])*
                    #[serde(skip_serializing_if = "crate::api::fields::is_empty")]
                    pub $field: $type,
                )*
            }
        }
    )*};
}

/// Declares a struct that knows its own doc comments, and the names and types of its fields: `kctl explain` and the JSON Schema are
/// made of them.
macro_rules! described {
    ($(#[$($meta:tt)*])* pub struct $name:ident {
        $($(#[$($field_meta:tt)*])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$($meta)*])*
        pub struct $name {
            $($(#[$($field_meta)*])* pub $field: $type,)*
        }

        impl crate::api::shape::Described for $name {
            fn shape() -> crate::api::shape::Shape {
                static SECTION: crate::api::shape::Section = crate::api::shape::Section {
                    attributes: &[$(crate::api::fields::attribute!($($meta)*)),*],
                    fields: &[$(crate::api::shape::SectionField {
                        field: stringify!($field),
                        attributes: &[$(crate::api::fields::attribute!($($field_meta)*)),*],
                        shape: <$type as crate::api::shape::Described>::shape,
                    }),*],
                };
                crate::api::shape::Shape::Section(&SECTION)
            }
        }
    };
}

/// What an attribute says of its struct or field.
macro_rules! attribute {
    (doc = $line:literal) => {
        crate::api::shape::Attribute::Doc($line)
    };
    (serde(rename = $name:literal)) => {
        crate::api::shape::Attribute::Rename($name)
    };
    (serde(flatten)) => {
        crate::api::shape::Attribute::Flatten
    };
    ($($other:tt)*) => {
        crate::api::shape::Attribute::Other
    };
}

pub(crate) use {attribute, described, spec};

/// True for what a field holds when nobody set it: `None`, an empty list, map or name.
pub(crate) fn is_empty<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
