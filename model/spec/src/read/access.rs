//! Walks over the elements of lists and the fields of mappings, keeping their paths.

use std::collections::BTreeSet;

use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess};

use super::node::{Entry, Node, Scalar};
use super::path;
use super::typed::{Pass, Refusal, Typed, Unknown};

/// The elements of a list.
pub(crate) struct Elements<'a> {
    source: Source<'a>,
    index: usize,
    path: String,
    pass: &'a Pass,
}

enum Source<'a> {
    Nodes(&'a [Node]),
    /// Text from a command line, split at commas.
    Parts(Vec<Node>),
}

impl<'a> Elements<'a> {
    pub fn from_nodes(elements: &'a [Node], path: String, pass: &'a Pass) -> Self {
        Self {
            source: Source::Nodes(elements),
            index: 0,
            path,
            pass,
        }
    }

    /// The parts of a comma list; no text is the empty list.
    pub fn from_comma_list(text: &str, path: String, pass: &'a Pass) -> Self {
        let nodes = split_list(text)
            .map(|part| Node::from_scalar(Scalar::Assigned(part.to_owned())))
            .collect();
        Self {
            source: Source::Parts(nodes),
            index: 0,
            path,
            pass,
        }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Refusal;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Refusal> {
        loop {
            let path = path::element_path(&self.path, self.index);
            let node = match &self.source {
                Source::Nodes(nodes) => nodes.get(self.index),
                Source::Parts(nodes) => nodes.get(self.index),
            };
            let Some(node) = node else { return Ok(None) };
            self.index += 1;
            if self.pass.skipped.contains(&path) {
                continue;
            }
            if node.is_null() {
                let hint = Some("write a value after \"- \", or remove the line".to_owned());
                return Err(Refusal {
                    path: Some(path),
                    message: "an element of the list is empty".to_owned(),
                    hint,
                });
            }
            let value = seed.deserialize(Typed {
                node,
                path: path.clone(),
                pass: self.pass,
            });
            return value.map(Some).map_err(|refusal| refusal.at_path(&path));
        }
    }
}

/// The elements of a list on a command line, parted by commas.
pub(crate) fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// The fields of a mapping.
pub(crate) struct Fields<'a> {
    entries: std::slice::Iter<'a, Entry>,
    current: Option<(&'a Node, String)>,
    seen: BTreeSet<&'a str>,
    path: String,
    pass: &'a Pass,
    /// The names a struct has; `None` for maps, which take any.
    known: Option<&'static [&'static str]>,
}

impl<'a> Fields<'a> {
    pub fn from_entries(
        entries: &'a [Entry],
        path: String,
        pass: &'a Pass,
        known: Option<&'static [&'static str]>,
    ) -> Self {
        Self {
            entries: entries.iter(),
            current: None,
            seen: BTreeSet::new(),
            path,
            pass,
            known,
        }
    }

    /// The next entry that is read: the first of its name, known, not refused before, and for
    /// structs not null, which means "not set".
    fn next_key(&mut self) -> Option<&'a str> {
        for entry in self.entries.by_ref() {
            let path = path::field_path(&self.path, &entry.key);
            if !self.seen.insert(&entry.key) || self.pass.skipped.contains(&path) {
                continue;
            }
            if let Some(known) = self.known {
                if !known.contains(&entry.key.as_str()) {
                    self.pass.unknown.borrow_mut().push(Unknown {
                        path,
                        name: entry.key.clone(),
                        known,
                    });
                    continue;
                }
                if entry.value.is_null() {
                    continue;
                }
            }
            self.current = Some((&entry.value, path));
            return Some(&entry.key);
        }
        None
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refusal> {
        match self.next_key() {
            Some(key) => seed.deserialize(key.into_deserializer()).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refusal> {
        let (node, path) = self.current.take().ok_or_else(|| {
            <Refusal as serde::de::Error>::custom("a value was asked for before its key")
        })?;
        let value = seed.deserialize(Typed {
            node,
            path: path.clone(),
            pass: self.pass,
        });
        value.map_err(|refusal| refusal.at_path(&path))
    }
}
