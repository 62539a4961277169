//! One document to one object: envelope, fields, then what kctl does not do.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::keyset::KeysetSpec;
use crate::api::ssh_credential::SSHCredentialSpec;
use crate::api::{API_VERSION, API_VERSIONS, Object, Resource, Spec, set_names, unsupported};

use super::locations::{Locations, Source, place_of_span};
use super::node::{Content, Node, Span, quote_text};
use super::problem::{self, MOST, ObjectRef, Problem};
use super::typed::{self, Refusal, Unknown};
use super::yaml::Unparsed;
use super::{Document, ReadOptions, nearest, path};

const KINDS: [&str; 4] = [
    ClusterSpec::KIND,
    InstanceGroupSpec::KIND,
    SSHCredentialSpec::KIND,
    KeysetSpec::KIND,
];

/// Reads one document; `Err` holds at least one error, and the warnings too.
pub(crate) fn read_document(
    source: &Arc<Source>,
    root: &Node,
    options: ReadOptions,
) -> Result<Document, Vec<Problem>> {
    let locations = Locations::index_document(Arc::clone(source), root);
    let mut problems = Vec::new();
    let object = match read_envelope(root) {
        Ok(kind) => {
            find_duplicate_keys(root, "", &locations, &mut problems);
            read_body(kind, root, options, &locations, &mut problems)
        }
        Err(problem) => {
            problems.push(*problem);
            None
        }
    };
    let about = root.get_text("kind").map(|kind| ObjectRef {
        kind: kind.to_owned(),
        name: root
            .get("metadata")
            .and_then(|metadata| metadata.get_text("name"))
            .unwrap_or_default()
            .to_owned(),
        occurrence: 0,
    });
    let mut problems = problem::first_of(problems);
    for problem in &mut problems {
        locations.locate(problem);
        problem.object.clone_from(&about);
    }
    match object {
        Some(object) if !problems.iter().any(Problem::is_error) => Ok(Document {
            object,
            locations,
            warnings: problems,
        }),
        _ => Err(problems),
    }
}

/// The kind of a document whose envelope is in order.
fn read_envelope(root: &Node) -> Result<&'static str, Box<Problem>> {
    let Content::Map(_) = root.content else {
        let message = format!(
            "a document must be an object, this one is {}",
            root.kind_text()
        );
        return refuse_document(
            "",
            message,
            "begin with apiVersion, kind, metadata and spec",
        );
    };
    let kind = root.get_text("kind").unwrap_or_default();
    let version = root.get_text("apiVersion").unwrap_or_default();
    let known = KINDS.into_iter().find(|known| *known == kind);
    match (known, version) {
        (Some(known), version) if API_VERSIONS.contains(&version) => Ok(known),
        (Some(_), "") => refuse_document(
            "apiVersion",
            "apiVersion is missing".to_owned(),
            &format!("add a line \"apiVersion: {API_VERSION}\""),
        ),
        (Some(_), "kops.k8s.io/v1alpha3") => refuse_document(
            "apiVersion",
            format!("kctl reads {API_VERSION} only; kops.k8s.io/v1alpha3 has other field names"),
            "`kops get all -o yaml` writes v1alpha2",
        ),
        (Some(_), _) => {
            let message = format!("{} is not a version that kctl reads", quote_text(version));
            refuse_document(
                "apiVersion",
                message,
                &format!("write the object as {API_VERSION}"),
            )
        }
        (None, _) if kind.is_empty() => {
            let hint = format!(
                "add a line \"kind: Cluster\" (known kinds: {})",
                KINDS.join(", ")
            );
            refuse_document("kind", "kind is missing".to_owned(), &hint)
        }
        (None, _) => {
            let message = format!(
                "{} is not a kind of object that kctl reads",
                quote_text(kind)
            );
            refuse_document("kind", message, &kind_hint(kind, version))
        }
    }
}

#[track_caller]
fn refuse_document<T>(path: &str, message: String, hint: &str) -> Result<T, Box<Problem>> {
    Err(Box::new(Problem::error(path, message).hint(hint)))
}

fn kind_hint(kind: &str, version: &str) -> String {
    if matches!(
        version.split('/').next(),
        None | Some("" | "kops" | "kops.k8s.io")
    ) {
        return nearest::hint(kind, &KINDS);
    }
    "kctl reads objects of kops.k8s.io; apply this one to the running cluster with kubectl"
        .to_owned()
}

fn read_body(
    kind: &str,
    root: &Node,
    options: ReadOptions,
    locations: &Locations,
    problems: &mut Vec<Problem>,
) -> Option<Object> {
    let object =
        match kind {
            ClusterSpec::KIND => {
                typed_body::<ClusterSpec>(root, locations, problems).map(Object::Cluster)
            }
            InstanceGroupSpec::KIND => typed_body::<InstanceGroupSpec>(root, locations, problems)
                .map(Object::InstanceGroup),
            SSHCredentialSpec::KIND => typed_body::<SSHCredentialSpec>(root, locations, problems)
                .map(Object::SSHCredential),
            _ => typed_body::<KeysetSpec>(root, locations, problems).map(Object::Keyset),
        };
    problems.extend(
        unsupported::find_unsupported(kind, root)
            .into_iter()
            .map(|found| unsupported_problem(&found, options)),
    );
    if root
        .get("metadata")
        .and_then(|metadata| metadata.get_text("name"))
        .unwrap_or_default()
        .is_empty()
    {
        problems.push(
            Problem::error("metadata.name", "the object has no name")
                .hint("add a line \"name: ...\" under metadata"),
        );
    }
    object
}

fn typed_body<S: Spec + Default>(
    root: &Node,
    locations: &Locations,
    problems: &mut Vec<Problem>,
) -> Option<Resource<S>> {
    let reading = typed::read_typed::<Resource<S>>(root);
    for unknown in reading.unknown.iter().take(MOST + 1) {
        if let Some(mut problem) = unknown_problem(S::KIND, unknown) {
            locations.locate_key(&mut problem);
            problems.push(problem);
        }
    }
    problems.extend(reading.refusals.into_iter().map(refusal_problem));
    reading.value
}

/// The finding for a field without a type: a typo, unless it is in the list of what kctl does not
/// do, which has its own finding.
pub(crate) fn unknown_problem(kind: &str, unknown: &Unknown) -> Option<Problem> {
    if unsupported::is_listed(kind, &unknown.path) {
        return None;
    }
    let problem = Problem::error(
        &unknown.path,
        format!("unknown field {}", quote_text(&unknown.name)),
    );
    let newer = set_names::hint(&unknown.path);
    Some(problem.hint(newer.unwrap_or_else(|| nearest::hint(&unknown.name, unknown.known))))
}

pub(crate) fn refusal_problem(refusal: Refusal) -> Problem {
    let problem = Problem::error(refusal.path.unwrap_or_default(), refusal.message);
    problem.hint(
        refusal
            .hint
            .unwrap_or_else(|| "write what is expected instead".to_owned()),
    )
}

fn unsupported_problem(found: &unsupported::Found, options: ReadOptions) -> Problem {
    let message = found.entry.message();
    let dropped = found.entry.is_dropped_by_kops();
    if options.allow_unsupported || dropped {
        let end = if dropped { "" } else { "; it is ignored" };
        return Problem::warning(&found.path, format!("{message}{end}"))
            .hint("remove it, so that the spec says what is done");
    }
    Problem::error(&found.path, message).hint("remove it, or pass --allow-unsupported to ignore it")
}

/// Every key that is given twice in one mapping.
fn find_duplicate_keys(node: &Node, at: &str, locations: &Locations, problems: &mut Vec<Problem>) {
    if problems.len() > MOST {
        return;
    }
    match &node.content {
        Content::Scalar(_) => {}
        Content::List(elements) => {
            for (index, element) in elements.iter().enumerate() {
                find_duplicate_keys(element, &path::element_path(at, index), locations, problems);
            }
        }
        Content::Map(entries) => {
            let mut before: BTreeMap<&str, Span> = BTreeMap::new();
            for entry in entries {
                let field = path::field_path(at, &entry.key);
                if let Some(first) = before.get(entry.key.as_str()) {
                    let message = format!("{} is given twice", quote_text(&entry.key));
                    let mut problem = Problem::error(&field, message).hint(format!(
                        "it is on line {} already; remove one of them",
                        first.line
                    ));
                    problem.place = Some(locations.span_place(entry.key_span));
                    problems.push(problem);
                } else {
                    before.insert(&entry.key, entry.key_span);
                }
                find_duplicate_keys(&entry.value, &field, locations, problems);
            }
        }
    }
}

/// The finding for text that is no YAML at all, or no spec's.
pub(crate) fn syntax_problem(source: &Source, error: &Unparsed) -> Problem {
    let error = match error {
        Unparsed::Syntax(error) => error,
        Unparsed::Paths => {
            let message = "the file's keys are longer than those of any spec, and have many values below them";
            let mut problem = Problem::error("", message)
                .hint("look for a long text that is followed by a colon");
            problem.place = Some(place_of_span(
                source,
                Span {
                    line: 1,
                    column: 1,
                    width: 1,
                },
            ));
            return problem;
        }
    };
    let mut problem = super::syntax::explain_error(error);
    problem.place = error
        .location()
        .map(|location| place_of_span(source, super::yaml::span_of(&location)));
    problem
}
