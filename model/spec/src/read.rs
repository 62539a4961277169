//! Spec files to objects: YAML or JSON text in, typed objects or findings with places out.

mod access;
mod document;
mod locations;
pub mod nearest;
pub(crate) mod node;
pub mod path;
pub mod problem;
mod syntax;
mod typed;
mod yaml;

use std::sync::Arc;

pub use locations::{Locations, Source};

pub use problem::{ObjectRef, Place, Problem, Severity, Snippet, render_problems};

use crate::api::Object;

pub(crate) use access::split_list;
pub(crate) use document::{refusal_problem, unknown_problem};
pub(crate) use node::{Content, Entry, Node, Scalar, Span, quote_text};
pub(crate) use problem::{MOST, first_of};
pub(crate) use typed::read_typed as read_node;
pub(crate) use yaml::parse as parse_yaml;

/// An object of a spec file.
#[derive(Clone, Debug)]
pub struct Document {
    pub object: Object,
    /// Where each field stands.
    pub locations: Locations,
    /// What was noticed on the way.
    pub warnings: Vec<Problem>,
}

/// How strictly to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// True: fields that kctl does not act on are warnings instead of errors.
    pub allow_unsupported: bool,
}

impl ReadOptions {
    /// For what is stored already: it was checked when it was stored, maybe by another release.
    pub const AS_STORED: Self = Self {
        allow_unsupported: true,
    };
}

/// The objects of a file: YAML with any number of documents, or JSON. On failure all findings,
/// in the order of the file.
pub fn read_documents(file_name: &str, text: &str) -> Result<Vec<Document>, Vec<Problem>> {
    read_documents_with(file_name, text, ReadOptions::default())
}

/// The same, with options.
pub fn read_documents_with(
    file_name: &str,
    text: &str,
    options: ReadOptions,
) -> Result<Vec<Document>, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > ::node::yaml::MAX_BYTES {
        let message = format!(
            "{file_name} has {} bytes, more than the {} of any spec",
            text.len(),
            ::node::yaml::MAX_BYTES
        );
        return Err(vec![
            Problem::error("", message).hint("pass the spec file itself"),
        ]);
    }
    let source = Arc::new(Source {
        file: file_name.to_owned(),
        text: text.to_owned(),
        shown: !text.contains("privateMaterial") && !text.contains("PRIVATE KEY"),
    });
    let roots =
        yaml::parse(text).map_err(|error| vec![document::syntax_problem(&source, &error)])?;
    let mut documents = Vec::new();
    let mut problems = Vec::new();
    for root in &roots {
        match document::read_document(&source, root, options) {
            Ok(document) => documents.push(document),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        return Ok(documents);
    }
    problems.extend(documents.into_iter().flat_map(|document| document.warnings));
    let mut problems = problem::first_of(problems);
    problems.sort_by_key(|problem| {
        problem
            .place
            .as_ref()
            .map(|place| (place.line, place.column))
    });
    Err(problems)
}
