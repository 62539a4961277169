//! What the types of the spec take, and what their doc comments say, for whoever describes the spec: `kctl explain` and the JSON
//! Schema.

use std::collections::BTreeMap;
use std::fmt;

use node::secret::Secret;
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{Error, IntoDeserializer};
use serde_json::Value;

use super::enums::{
    DnsType, InstanceGroupRole, KeysetType, LoadBalancerClass, LoadBalancerType, SubnetType,
};
use super::scalars::IntOrString;

/// A type of the spec that says what it takes.
pub trait Described {
    /// What the reader takes for it.
    fn shape() -> Shape;
}

/// What the reader takes for a type. Types inside of others are behind functions, so that a struct is a static.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A whole number from the first to the last.
    Int(i64, i64),
    /// Any scalar: its text counts.
    Text,
    /// A whole number, text or a boolean.
    IntOrText,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// Anything: the reader looks into it no further.
    Anything,
    /// What the type inside takes, or null.
    Optional(fn() -> Shape),
    List(fn() -> Shape),
    /// Keys of the user's, and what each has.
    Map(fn() -> Shape),
    /// Fields with names.
    Section(&'static Section),
}

/// A struct of the spec.
#[derive(Debug)]
pub struct Section {
    pub attributes: &'static [Attribute],
    pub fields: &'static [SectionField],
}

/// A field of a struct.
#[derive(Debug)]
pub struct SectionField {
    /// Its name in Rust.
    pub field: &'static str,
    pub attributes: &'static [Attribute],
    pub shape: fn() -> Shape,
}

/// What an attribute in the source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A line of a doc comment.
    Doc(&'static str),
    /// The name in YAML, where it is not the one in Rust in camelCase.
    Rename(&'static str),
    /// The field holds what has no field of its own.
    Flatten,
    /// Nothing that matters here.
    Other,
}

impl Shape {
    /// The shape of one value: of an element of a list, and without null.
    #[must_use]
    pub fn element(self) -> Self {
        match self {
            Self::Optional(of) | Self::List(of) => of().element(),
            other => other,
        }
    }

    /// Its name for people: `[]string`, `map[string]integer`, `object`.
    pub fn type_name(self) -> String {
        let name = match self {
            Self::Bool => "boolean",
            Self::Int(..) => "integer",
            Self::Text | Self::Choice(_) => "string",
            Self::IntOrText => "integer or string",
            Self::Anything => "any",
            Self::Optional(of) => return of().type_name(),
            Self::List(of) => return format!("[]{}", of().type_name()),
            Self::Map(of) => return format!("map[string]{}", of().type_name()),
            Self::Section(_) => "object",
        };
        name.to_owned()
    }
}

impl SectionField {
    /// Its name in YAML.
    pub fn name(&self) -> String {
        let renamed = self.attributes.iter().find_map(|one| match one {
            Attribute::Rename(name) => Some((*name).to_owned()),
            _ => None,
        });
        renamed.unwrap_or_else(|| camel_case(self.field))
    }

    /// True if it holds what has no field of its own.
    pub fn is_flattened(&self) -> bool {
        self.attributes.contains(&Attribute::Flatten)
    }
}

/// The text of a doc comment.
pub fn doc_text(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|one| match one {
        Attribute::Doc(line) => Some(line.trim()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// As serde's `rename_all = "camelCase"`.
fn camel_case(field: &str) -> String {
    let mut name = String::new();
    let mut begins = false;
    for letter in field.chars() {
        match letter {
            '_' => begins = true,
            letter if begins => {
                name.push(letter.to_ascii_uppercase());
                begins = false;
            }
            letter => name.push(letter),
        }
    }
    name
}

impl<T: Described> Described for Option<T> {
    fn shape() -> Shape {
        Shape::Optional(T::shape)
    }
}

impl<T: Described> Described for Vec<T> {
    fn shape() -> Shape {
        Shape::List(T::shape)
    }
}

impl<T: Described> Described for BTreeMap<String, T> {
    fn shape() -> Shape {
        Shape::Map(T::shape)
    }
}

impl<T: Described> Described for Box<T> {
    fn shape() -> Shape {
        T::shape()
    }
}

macro_rules! shapes {
    ($($type:ty => $shape:expr,)*) => {$(
        impl Described for $type {
            fn shape() -> Shape {
                $shape
            }
        }
    )*};
}

shapes! {
    bool => Shape::Bool,
    i32 => Shape::Int(i32::MIN.into(), i32::MAX.into()),
    i64 => Shape::Int(i64::MIN, i64::MAX),
    String => Shape::Text,
    Secret => Shape::Text,
    IntOrString => Shape::IntOrText,
    Value => Shape::Anything,
    DnsType => Shape::Choice(read_words::<Self>()),
    InstanceGroupRole => Shape::Choice(read_words::<Self>()),
    KeysetType => Shape::Choice(read_words::<Self>()),
    LoadBalancerClass => Shape::Choice(read_words::<Self>()),
    LoadBalancerType => Shape::Choice(read_words::<Self>()),
    SubnetType => Shape::Choice(read_words::<Self>()),
}

/// The words of an enum as its reader has them: it names all when it meets another one.
fn read_words<T: Deserialize<'static>>() -> &'static [&'static str] {
    let other: StrDeserializer<'static, Words> = "".into_deserializer();
    match T::deserialize(other) {
        Err(Words(all)) => all,
        Ok(_) => &[],
    }
}

/// The error of a reader that met a word it does not know.
#[derive(Debug)]
struct Words(&'static [&'static str]);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl std::error::Error for Words {}

impl Error for Words {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::{Described, Shape};
    use crate::api::{InstanceGroupRole, SubnetType};

    #[test]
    fn an_enum_has_the_words_that_its_reader_takes() {
        let words = |shape| match shape {
            Shape::Choice(words) => words,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            words(SubnetType::shape()),
            ["Public", "Private", "DualStack", "Utility"]
        );
        let roles = words(InstanceGroupRole::shape());
        assert!(roles.contains(&"Master") && roles.contains(&"ControlPlane"));
    }

    #[test]
    fn types_have_the_names_of_kubectl() {
        assert_eq!(<Option<Vec<String>>>::shape().type_name(), "[]string");
    }
}
