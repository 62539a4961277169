//! YAML and JSON text to trees, within limits that no honest spec reaches.

use std::fmt;

use node::yaml::{alias_limits, read_limits};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, Options, Spanned};

use super::node::{Content, Entry, Node, Scalar, Span};

/// Bytes of all field paths together at most: findings are placed by them. Only long keys around long lists come near.
const MAX_PATHS: usize = 64 << 20;

/// A text that is no spec.
pub(crate) enum Unparsed {
    /// It is not YAML, or beyond a limit of the reader.
    Syntax(serde_saphyr::Error),
    /// Its keys are too long for so many values below them.
    Paths,
}

/// The documents of a text; empty ones are left out.
pub(crate) fn parse(text: &str) -> Result<Vec<Node>, Unparsed> {
    let documents: Result<Vec<Raw>, _> =
        serde_saphyr::from_multiple_with_options(text, reader_options());
    let nodes: Vec<Node> = documents
        .map_err(Unparsed::Syntax)?
        .into_iter()
        .map(|raw| raw.into_node(text))
        .collect();
    let bytes = nodes
        .iter()
        .fold(0_usize, |sum, node| sum.saturating_add(path_bytes(node, 0)));
    if bytes > MAX_PATHS {
        return Err(Unparsed::Paths);
    }
    Ok(nodes)
}

/// Bytes of the paths of a part and all below it; its own path has `own`.
fn path_bytes(node: &Node, own: usize) -> usize {
    const INDEX: usize = 8;
    let below = |bytes: usize, key: usize, node: &Node| {
        bytes.saturating_add(path_bytes(node, own.saturating_add(key)))
    };
    match &node.content {
        Content::Scalar(_) => own,
        Content::List(elements) => elements
            .iter()
            .fold(own, |bytes, element| below(bytes, INDEX, element)),
        Content::Map(entries) => entries.iter().fold(own, |bytes, entry| {
            below(bytes, entry.key.len().saturating_add(1), &entry.value)
        }),
    }
}

fn reader_options() -> Options {
    serde_saphyr::options! {
        budget: read_limits(),
        alias_limits: alias_limits(),
        // Reported by us, all of them, with the place of the first.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
        emit_comments: false,
    }
}

/// What the YAML crate hands over: inferred scalars without their text, which is cut out of the
/// source afterwards.
struct Raw {
    content: RawContent,
    location: Location,
    defined: Location,
}

enum RawContent {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(Spanned<String>, Raw)>),
}

impl Raw {
    fn into_node(self, source: &str) -> Node {
        let written = || source_slice(source, &self.defined).to_owned();
        let mut span = span_of(&self.location);
        let content = match self.content {
            RawContent::Null => Content::Scalar(Scalar::Null),
            RawContent::Bool(value) => Content::Scalar(Scalar::Bool(value, written())),
            RawContent::Int(value) => Content::Scalar(Scalar::Int(value, written())),
            RawContent::Float(value) => Content::Scalar(Scalar::Float(value, written())),
            RawContent::Text(text) => Content::Scalar(Scalar::Text(text)),
            RawContent::List(elements) => {
                span.width = 0;
                Content::List(
                    elements
                        .into_iter()
                        .map(|raw| raw.into_node(source))
                        .collect(),
                )
            }
            RawContent::Map(entries) => {
                span.width = 0;
                Content::Map(
                    entries
                        .into_iter()
                        .map(|(key, value)| to_entry(key, value, source))
                        .collect(),
                )
            }
        };
        Node { content, span }
    }
}

fn to_entry(key: Spanned<String>, value: Raw, source: &str) -> Entry {
    Entry {
        key_span: span_of(&key.referenced),
        key: key.value,
        value: value.into_node(source),
    }
}

/// Our span of a location.
pub(crate) fn span_of(location: &Location) -> Span {
    let number = |value: u64| usize::try_from(value).unwrap_or(0);
    Span {
        line: number(location.line()),
        column: number(location.column()),
        width: usize::try_from(location.span().len()).unwrap_or(0),
    }
}

fn source_slice<'a>(source: &'a str, location: &Location) -> &'a str {
    let bytes = location.span();
    let range = bytes
        .byte_offset()
        .zip(bytes.byte_len())
        .and_then(|(start, length)| {
            let start = usize::try_from(start).ok()?;
            Some(start..start.checked_add(usize::try_from(length).ok()?)?)
        });
    range
        .and_then(|range| source.get(range))
        .unwrap_or_default()
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<RawContent>::deserialize(deserializer)?;
        Ok(Self {
            content: spanned.value,
            location: spanned.referenced,
            defined: spanned.defined,
        })
    }
}

impl<'de> Deserialize<'de> for RawContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<RawContent, E> {
        Ok(RawContent::Null)
    }

    fn visit_none<E: Error>(self) -> Result<RawContent, E> {
        Ok(RawContent::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<RawContent, E> {
        Ok(RawContent::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<RawContent, E> {
        Ok(RawContent::Int(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<RawContent, E> {
        Ok(RawContent::Int(value.into()))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<RawContent, E> {
        Ok(RawContent::Int(value))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<RawContent, E> {
        Ok(i128::try_from(value)
            .map_or_else(|_| RawContent::Text(value.to_string()), RawContent::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<RawContent, E> {
        Ok(RawContent::Float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RawContent, E> {
        Ok(RawContent::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<RawContent, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = access.next_element()? {
            elements.push(element);
        }
        Ok(RawContent::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RawContent, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(RawContent::Map(entries))
    }
}
