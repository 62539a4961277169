//! Trees to typed values. One pass finds every unknown field; a value of the wrong type is noted,
//! left out and the rest read again, so that all of them are found too.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};

use super::access::{Elements, Fields};
use super::nearest;
use super::node::{Content, Node, Scalar, quote_text};
use super::problem::MOST;

/// A field that does not exist.
#[derive(Clone, Debug)]
pub(crate) struct Unknown {
    pub path: String,
    pub name: String,
    pub known: &'static [&'static str],
}

/// A value that its field cannot take.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// `None` until an access on the way up fills it in.
    pub path: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

impl Refusal {
    fn new(path: &str, message: String, hint: &str) -> Self {
        Self {
            path: Some(path.to_owned()),
            message,
            hint: Some(hint.to_owned()),
        }
    }

    pub(crate) fn at_path(mut self, path: &str) -> Self {
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            path: None,
            message: message.to_string(),
            hint: None,
        }
    }
}

/// What a document amounts to.
pub(crate) struct Reading<T> {
    /// The value; `None` if any value was refused.
    pub value: Option<T>,
    pub unknown: Vec<Unknown>,
    pub refusals: Vec<Refusal>,
}

/// What all parts of one pass share.
pub(crate) struct Pass {
    /// Paths refused by earlier passes: as if they were not there.
    pub skipped: BTreeSet<String>,
    pub unknown: RefCell<Vec<Unknown>>,
}

/// At most this many findings per document are reported.
const MAX_REFUSALS: usize = MOST + 1;

/// Reads a tree as `T`.
pub(crate) fn read_typed<T: DeserializeOwned>(root: &Node) -> Reading<T> {
    let mut pass = Pass {
        skipped: BTreeSet::new(),
        unknown: RefCell::default(),
    };
    let mut refusals = Vec::new();
    loop {
        pass.unknown.borrow_mut().clear();
        let result = T::deserialize(Typed {
            node: root,
            path: String::new(),
            pass: &pass,
        });
        let refusal = match result {
            Ok(value) => {
                let value = Some(value).filter(|_| refusals.is_empty());
                return Reading {
                    value,
                    unknown: pass.unknown.into_inner(),
                    refusals,
                };
            }
            Err(refusal) => refusal,
        };
        let fresh = refusal
            .path
            .as_ref()
            .is_some_and(|path| pass.skipped.insert(path.clone()));
        refusals.push(refusal);
        if !fresh || refusals.len() == MAX_REFUSALS {
            return Reading {
                value: None,
                unknown: pass.unknown.into_inner(),
                refusals,
            };
        }
    }
}

/// A part of a tree, about to become a value.
pub(crate) struct Typed<'a> {
    pub node: &'a Node,
    pub path: String,
    pub pass: &'a Pass,
}

impl<'a> Typed<'a> {
    fn refuse(&self, wanted: &str, hint: &str) -> Refusal {
        Refusal::new(
            &self.path,
            format!("{} is not {wanted}", self.node.kind_text()),
            hint,
        )
    }

    fn scalar(&self) -> Option<&'a Scalar> {
        match &self.node.content {
            Content::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    fn integer(&self) -> Result<i128, Refusal> {
        match self.scalar() {
            Some(Scalar::Int(value, _)) => return Ok(*value),
            Some(Scalar::Assigned(text)) => {
                if let Ok(value) = text.trim().parse() {
                    return Ok(value);
                }
            }
            Some(Scalar::Text(text)) if text.parse::<i128>().is_ok() => {
                return Err(self.refuse("a whole number but text", "write it without quotes"));
            }
            _ => {}
        }
        Err(self.refuse("a whole number", "write a whole number such as 3"))
    }

    fn boolean(&self) -> Result<bool, Refusal> {
        let text = match self.scalar() {
            Some(Scalar::Bool(value, _)) => return Ok(*value),
            Some(Scalar::Assigned(text)) => text.trim().to_lowercase(),
            Some(Scalar::Text(text)) if matches!(text.as_str(), "true" | "false") => {
                return Err(self.refuse("true or false but text", "write it without quotes"));
            }
            _ => String::new(),
        };
        match text.as_str() {
            "true" | "yes" | "on" | "t" | "1" => Ok(true),
            "false" | "no" | "off" | "f" | "0" => Ok(false),
            _ => Err(self.refuse("true or false", "write true or false")),
        }
    }

    fn text(&self) -> Result<&'a str, Refusal> {
        let hint = "write one value here, in quotes if it holds : or #";
        self.scalar()
            .map(Scalar::text)
            .ok_or_else(|| self.refuse("text", hint))
    }

    fn elements(self) -> Result<Elements<'a>, Refusal> {
        match &self.node.content {
            Content::List(elements) => Ok(Elements::from_nodes(elements, self.path, self.pass)),
            Content::Scalar(Scalar::Null) => Ok(Elements::from_nodes(&[], self.path, self.pass)),
            Content::Scalar(Scalar::Assigned(text)) => {
                Ok(Elements::from_comma_list(text, self.path, self.pass))
            }
            _ => Err(self.refuse(
                "a list",
                "write each value on a line of its own, after \"- \"",
            )),
        }
    }

    fn fields(self, known: Option<&'static [&'static str]>) -> Result<Fields<'a>, Refusal> {
        match &self.node.content {
            Content::Map(entries) => Ok(Fields::from_entries(entries, self.path, self.pass, known)),
            Content::Scalar(Scalar::Null) => {
                Ok(Fields::from_entries(&[], self.path, self.pass, known))
            }
            Content::Scalar(Scalar::Assigned(text)) if text.is_empty() => {
                Ok(Fields::from_entries(&[], self.path, self.pass, known))
            }
            _ => Err(self.refuse(
                "a mapping",
                "write \"name: value\" lines below it, indented further",
            )),
        }
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            let number = self.integer()?;
            let Ok(value) = <$type>::try_from(number) else {
                let range = format!("between {} and {}", <$type>::MIN, <$type>::MAX);
                return Err(self.refuse(&range, &format!("write a number {range}")));
            };
            visitor.$visit(value)
        }
    )*};
}

impl<'de> Deserializer<'de> for Typed<'_> {
    type Error = Refusal;

    integers! {
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let path = self.path.clone();
        let scalar = match &self.node.content {
            Content::Scalar(scalar) => scalar,
            Content::List(_) => return self.deserialize_seq(visitor),
            Content::Map(_) => return self.deserialize_map(visitor),
        };
        let result = match scalar {
            Scalar::Null => visitor.visit_unit(),
            Scalar::Bool(value, _) => visitor.visit_bool(*value),
            Scalar::Int(value, text) => visit_integer(*value, text, visitor),
            Scalar::Float(value, _) => visitor.visit_f64(*value),
            Scalar::Text(text) => visitor.visit_str(text),
            Scalar::Assigned(text) => visit_inferred(text, visitor),
        };
        result.map_err(|refusal: Refusal| refusal.at_path(&path))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_bool(self.boolean()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.node.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        SeqAccessDeserializer::new(self.elements()?).deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        MapAccessDeserializer::new(self.fields(None)?).deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        let path = self.path.clone();
        let result =
            MapAccessDeserializer::new(self.fields(Some(fields))?).deserialize_any(visitor);
        result.map_err(|refusal| refusal.at_path(&path))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        type_name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        let text = self.text()?;
        let name = variants
            .iter()
            .find(|variant| variant.eq_ignore_ascii_case(text))
            .copied()
            .unwrap_or(text);
        let variant: StrDeserializer<'_, Refusal> = name.into_deserializer();
        visitor.visit_enum(variant).map_err(|_| {
            let (message, hint) = match type_name {
                "InstanceGroupRole" => unknown_role(text),
                _ => unknown_choice(text, variants),
            };
            Refusal::new(&self.path, message, &hint)
        })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

/// Message and hint for a value that is not one of a few.
fn unknown_choice(text: &str, choices: &[&str]) -> (String, String) {
    let message = format!("{} is not one of {}", quote_text(text), choices.join(", "));
    (message, nearest::choice_hint(text, choices))
}

/// Message and hint for an unknown role. Some roles have several spellings, of which only one is listed.
fn unknown_role(text: &str) -> (String, String) {
    let near = nearest::nearest_name(text, ["ControlPlane", "Master", "Node", "Bastion"]);
    let hint = near.map_or_else(
        || "workers have the role Node".to_owned(),
        |near| format!("did you mean \"{near}\"?"),
    );
    let name = quote_text(text);
    (
        format!("{name} is not a role: ControlPlane, Node or Bastion"),
        hint,
    )
}

fn visit_integer<'de, V: Visitor<'de>>(
    value: i128,
    text: &str,
    visitor: V,
) -> Result<V::Value, Refusal> {
    if let Ok(value) = i64::try_from(value) {
        return visitor.visit_i64(value);
    }
    if let Ok(value) = u64::try_from(value) {
        return visitor.visit_u64(value);
    }
    visitor.visit_str(text)
}

/// Text from a command line, for a field that takes anything.
fn visit_inferred<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value, Refusal> {
    if let Ok(value) = text.parse::<bool>() {
        return visitor.visit_bool(value);
    }
    if let Ok(value) = text.parse::<i64>() {
        return visitor.visit_i64(value);
    }
    visitor.visit_str(text)
}
