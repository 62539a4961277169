//! Every leaf of a type, as serde sees it: which fields a spec can have, without a list of them to forget.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use std::cell::RefCell;

/// What a leaf takes.
#[derive(Clone, Debug, PartialEq)]
pub enum LeafType {
    /// `true` or `false`.
    Bool,
    Number,
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A section whose presence is the choice.
    Presence,
    /// Anything: nothing in kctl looks into it.
    Anything,
}

/// A leaf: its path, with `[]` for an element of a list and `.*` for an entry of a map.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// `spec.subnets[].name`.
    pub path: String,
    /// Type of the values that the leaf takes.
    pub takes: LeafType,
    /// A few values are enough.
    pub few: bool,
}

/// The leaves of a type.
pub fn type_leaves<'de, T: Deserialize<'de>>(root: &str) -> Vec<Leaf> {
    let found = RefCell::new(Vec::new());
    let tracer = Tracer {
        path: root.to_owned(),
        found: &found,
    };
    T::deserialize(tracer).expect("a type that can be traced");
    found.into_inner()
}

struct Tracer<'a> {
    path: String,
    found: &'a RefCell<Vec<Leaf>>,
}

impl Tracer<'_> {
    fn add_leaf(&self, takes: LeafType) {
        let path = self.path.clone();
        self.found.borrow_mut().push(Leaf {
            path,
            takes,
            few: false,
        });
    }
}

macro_rules! numbers {
    ($($name:ident),*) => { $(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.add_leaf(LeafType::Number);
            visitor.visit_i64(1)
        }
    )* };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Error;

    numbers!(
        deserialize_i8,
        deserialize_i16,
        deserialize_i32,
        deserialize_i64,
        deserialize_u8,
        deserialize_u16,
        deserialize_u32,
        deserialize_u64,
        deserialize_f32,
        deserialize_f64
    );

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.add_leaf(LeafType::Bool);
        visitor.visit_bool(true)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.add_leaf(LeafType::Text);
        visitor.visit_str("sample")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.add_leaf(LeafType::Anything);
        visitor.visit_str("sample")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if fields.is_empty() {
            self.add_leaf(LeafType::Presence);
        }
        visitor.visit_map(Fields {
            of: self,
            names: fields.iter(),
            now: "",
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.add_leaf(LeafType::Choice(variants));
        let first: StrDeserializer<'_, Error> = variants[0].into_deserializer();
        visitor.visit_enum(first)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SingleField(Some(self)))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(SingleField(Some(self)))
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct Fields<'a> {
    of: Tracer<'a>,
    names: std::slice::Iter<'static, &'static str>,
    now: &'static str,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        self.now = name;
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Tracer {
            path: format!("{}.{}", self.of.path, self.now),
            found: self.of.found,
        })
    }
}

/// The one element of a list, the one entry of a map.
struct SingleField<'a>(Option<Tracer<'a>>);

impl<'de> SeqAccess<'de> for SingleField<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(mut of) = self.0.take() else {
            return Ok(None);
        };
        of.path.push_str("[]");
        seed.deserialize(of).map(Some)
    }
}

impl<'de> MapAccess<'de> for SingleField<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.0.is_none() {
            return Ok(None);
        }
        let key: StrDeserializer<'_, Error> = "sample".into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let mut of = self.0.take().expect("a key before its value");
        of.path.push_str(".*");
        seed.deserialize(of)
    }
}
