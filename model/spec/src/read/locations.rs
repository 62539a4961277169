//! Where every field of a document stands, so that findings that only know field paths get a
//! place and a snippet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::node::{Content, Node, Span};
use super::path;
use super::problem::{Place, Problem, Snippet};

/// A text and the name it came under.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the file as the user gave it.
    pub file: String,
    pub text: String,
    /// False where lines may hold secrets and are never shown.
    pub shown: bool,
}

/// Index from the field paths of one document to places in its file.
#[derive(Clone, Debug)]
pub struct Locations {
    source: Arc<Source>,
    places: BTreeMap<String, Spans>,
}

#[derive(Clone, Copy, Debug)]
struct Spans {
    key: Option<Span>,
    value: Span,
}

impl Locations {
    pub(crate) fn index_document(source: Arc<Source>, root: &Node) -> Self {
        let mut places = BTreeMap::new();
        collect_spans(root, None, "", &mut places);
        Self { source, places }
    }

    /// Name of the file.
    pub fn file(&self) -> &str {
        &self.source.file
    }

    /// Gives a finding its place: that of its field, or of the nearest thing around it.
    pub fn locate(&self, problem: &mut Problem) {
        if problem.place.is_none() {
            problem.place = self.place_of_field(&problem.path);
        }
    }

    /// Gives a finding the place of its field's name.
    pub(crate) fn locate_key(&self, problem: &mut Problem) {
        let key = self.places.get(&problem.path).and_then(|spans| spans.key);
        problem.place = key.map(|span| place_of_span(&self.source, span));
    }

    fn place_of_field(&self, path: &str) -> Option<Place> {
        let spans = ancestor_paths(path).find_map(|path| self.places.get(path))?;
        let value = Some(spans.value).filter(|span| span.width > 0);
        Some(place_of_span(
            &self.source,
            value.or(spans.key).unwrap_or(spans.value),
        ))
    }

    pub(crate) fn span_place(&self, span: Span) -> Place {
        place_of_span(&self.source, span)
    }
}

/// The place of a span in its text.
pub(crate) fn place_of_span(source: &Source, span: Span) -> Place {
    let line = source
        .text
        .lines()
        .nth(span.line.saturating_sub(1))
        .unwrap_or_default();
    Place {
        file: source.file.clone(),
        line: span.line,
        column: span.column,
        width: span.width.max(1),
        snippet: source.shown.then(|| Snippet::excerpt_of(line, span.column)),
    }
}

fn collect_spans(node: &Node, key: Option<Span>, at: &str, places: &mut BTreeMap<String, Spans>) {
    let value = match &node.content {
        // A block collection begins at its first key: its own key says more.
        Content::Map(_) | Content::List(_) if key.is_some() => Span {
            width: 0,
            ..node.span
        },
        _ => node.span,
    };
    places.insert(at.to_owned(), Spans { key, value });
    match &node.content {
        Content::Scalar(_) => {}
        Content::List(elements) => {
            for (index, element) in elements.iter().enumerate() {
                collect_spans(element, None, &path::element_path(at, index), places);
            }
        }
        Content::Map(entries) => {
            for entry in entries {
                collect_spans(
                    &entry.value,
                    Some(entry.key_span),
                    &path::field_path(at, &entry.key),
                    places,
                );
            }
        }
    }
}

/// A path, then everything around it, up to the empty path.
fn ancestor_paths(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        let end = path.rfind(['.', '[']);
        if path.is_empty() {
            None
        } else {
            path.get(..end.unwrap_or(0))
        }
    })
}
