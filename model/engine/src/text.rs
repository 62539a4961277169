//! Text with values that are known only once another resource exists (a load balancer's DNS name, a
//! launch template's version).

use super::resource::Id;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A piece of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// Shared by all copies: user data is long, and in several states.
    Literal(#[serde(with = "shared_text")] Arc<str>),
    /// An attribute of another resource, known after that exists.
    Late {
        /// The kind of that resource.
        #[serde(rename = "type")]
        kind: String,
        name: String,
        /// The attribute, for example `dns_name`.
        attribute: String,
    },
}

/// Text of known and late parts. Serialized as a string once all of it is known, as a list of parts before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct Text(Vec<Part>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    Known(String),
    Parts(Vec<Part>),
}

/// Text that is shared by all its copies, stored as a string.
pub mod shared_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(from).map(Into::into)
    }
}

impl From<Wire> for Text {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Known(text) => Self::literal(text),
            Wire::Parts(parts) => Self::from_parts(parts),
        }
    }
}

impl From<Text> for Wire {
    fn from(text: Text) -> Self {
        match text.as_known() {
            Some(known) => Self::Known(known.to_owned()),
            None => Self::Parts(text.0),
        }
    }
}

impl Text {
    /// Text that is known now.
    pub fn literal(text: impl Into<Arc<str>>) -> Self {
        Self(vec![Part::Literal(text.into())])
    }

    /// One attribute of another resource.
    pub fn late(of: &Id, attribute: &str) -> Self {
        Self(vec![Part::Late {
            kind: of.kind().to_owned(),
            name: of.name().to_owned(),
            attribute: attribute.to_owned(),
        }])
    }

    /// Text from parts; neighbouring literals become one, so that equal texts are equal values.
    pub fn from_parts(parts: impl IntoIterator<Item = Part>) -> Self {
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            match (joined.last_mut(), part) {
                (Some(Part::Literal(before)), Part::Literal(more)) => {
                    *before = [&**before, &*more].concat().into();
                }
                (_, part) => joined.push(part),
            }
        }
        if joined.is_empty() {
            joined.push(Part::Literal("".into()));
        }
        Self(joined)
    }

    /// The whole text, if no part of it is late.
    pub fn as_known(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// True if that attribute of that resource is one of its late parts.
    pub fn waits_for(&self, of: &Id, attribute: &str) -> bool {
        let awaited = Self::late(of, attribute);
        self.0.iter().any(|part| awaited.0.contains(part))
    }

    /// True if `text` could be this text once its late parts are known.
    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text;
        let mut anything = false;
        let last = self.0.len().saturating_sub(1);
        for (at, part) in self.0.iter().enumerate() {
            let Part::Literal(literal) = part else {
                anything = true;
                continue;
            };
            let found = match (anything, at == last) {
                (true, true) => rest.strip_suffix(&**literal).map(|_| ""),
                (true, false) => rest.split_once(&**literal).map(|(_, after)| after),
                (false, _) => rest.strip_prefix(&**literal),
            };
            let Some(after) = found else { return false };
            (rest, anything) = (after, false);
        }
        anything || rest.is_empty()
    }

    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The resources whose attributes it waits for.
    pub fn needs(&self) -> Vec<Id> {
        let late = |part: &Part| match part {
            Part::Late { kind, name, .. } => Some(Id::new(kind, name.clone())),
            Part::Literal(_) => None,
        };
        self.0.iter().filter_map(late).collect()
    }

    /// Itself with every late value that `attr` knows written in.
    #[must_use]
    pub fn resolved(&self, attr: &dyn Fn(&Id, &str) -> Option<String>) -> Self {
        Self::from_parts(self.0.iter().map(|part| {
            match part {
                Part::Late {
                    kind,
                    name,
                    attribute,
                } => attr(&Id::new(kind, name.clone()), attribute)
                    .map_or_else(|| part.clone(), |known| Part::Literal(known.into())),
                Part::Literal(_) => part.clone(),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = Part> {
        let late = |attribute: String| Part::Late {
            kind: "lb".to_owned(),
            name: "api".to_owned(),
            attribute,
        };
        let literal = |text: String| Part::Literal(text.into());
        prop_oneof!["[ab]{0,3}".prop_map(literal), "[xy]".prop_map(late)]
    }

    proptest! {
        #[test]
        fn a_text_matches_whatever_its_late_parts_turn_out_to_be(
            parts in prop::collection::vec(part(), 0..6),
            x in "[abc]{0,3}",
            y in "[abc]{0,3}",
        ) {
            let text = Text::from_parts(parts);
            let value = |_: &Id, name: &str| Some(if name == "x" { &x } else { &y }.clone());
            let resolved = text.resolved(&value);
            prop_assert!(text.matches(resolved.as_known().unwrap()));
            prop_assert_eq!(text.needs().is_empty(), text.as_known().is_some());
        }

        #[test]
        fn a_known_text_matches_itself_alone(one in "[ab]{0,3}", other in "[ab]{0,3}") {
            prop_assert_eq!(Text::literal(&*one).matches(&other), one == other);
        }
    }

    #[test]
    fn another_literal_does_not_match() {
        let late = Text::late(&Id::new("lb", "api"), "dns_name");
        let literal = |text: &str| vec![Part::Literal(text.into())];
        let text =
            Text::from_parts([literal("api="), late.parts().to_vec(), literal("\n")].concat());
        assert!(text.matches("api=a.example.com\n"));
        assert!(!text.matches("boot=1\napi=a.example.com\n"));
        assert!(!text.matches("api=a.example.com"));
    }
}
