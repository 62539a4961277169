//! Objects of users: which documents of a file are such objects, and what they must be to be applied beside the addons of kctl.

use crate::yaml::{MAX_BYTES, to_yaml_documents};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Options;

/// Limit of an object as JSON, bytes: etcd takes 1.5 MiB.
pub const MAX_OBJECT_BYTES: usize = 1 << 20;

/// Longest name of an object.
const MAX_NAME: usize = 253;

/// Kinds that configure a component and are no objects of the API, with the groups of their API versions, and what to do instead.
const CONFIGURATIONS: [(&str, &str); 3] = [
    (
        "kubescheduler.config.k8s.io",
        "give what kctl supports of it in spec.kubeScheduler",
    ),
    ("kubelet.config.k8s.io", "give it in spec.kubelet"),
    ("kubeproxy.config.k8s.io", "give it in spec.kubeProxy"),
];

/// An object of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnObject {
    pub object: Value,
    /// Where it was read: `FILE, line 3`.
    pub place: String,
}

/// Why a text holds no objects that can be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct Unreadable {
    /// `FILE, line 3`.
    pub place: String,
    pub why: String,
    pub next_step: String,
}

/// What a document says about its own kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Envelope {
    api_version: Option<String>,
}

/// A document of a file: its text with the line that it begins at, from 1.
struct Section<'a> {
    line: usize,
    text: &'a str,
}

/// Separates objects of users from objects of the spec. Returns the text without the former, in which every line is where it was, and the
/// objects.
pub fn split_own_objects(what: &str, text: &str) -> Result<(String, Vec<OwnObject>), Unreadable> {
    let (mut rest, mut own) = (String::new(), Vec::new());
    if text.len() > MAX_BYTES {
        // The reader of specs says so.
        return Ok((text.to_owned(), own));
    }
    for section in sections(text) {
        if is_own(section.text) {
            own.extend(read_section(what, &section)?);
            rest.extend(section.text.matches('\n'));
        } else {
            rest.push_str(section.text);
        }
    }
    Ok((rest, own))
}

/// Reads a text in which all objects are the user's.
pub fn read_own_objects(what: &str, text: &str) -> Result<Vec<OwnObject>, Unreadable> {
    if text.len() > MAX_BYTES {
        return Err(Unreadable {
            place: what.to_owned(),
            why: format!("it has {} bytes, more than {MAX_BYTES}", text.len()),
            next_step: "divide it into several files".to_owned(),
        });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = Vec::new();
    for section in sections(text) {
        all.extend(read_section(what, &section)?);
    }
    Ok(all)
}

/// The documents of a text. A line that begins with `---` separates them wherever it is: YAML allows it inside of no value.
fn sections(text: &str) -> Vec<Section<'_>> {
    let mut found = Vec::new();
    let (mut start, mut at, mut first) = (0, 0, 1);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let after = line.strip_prefix("---");
        let separates =
            after.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if separates && at > start {
            found.extend(
                text.get(start..at)
                    .map(|text| Section { line: first, text }),
            );
            (start, first) = (at, index + 1);
        }
        at += line.len();
    }
    found.extend(text.get(start..).map(|text| Section { line: first, text }));
    found
}

/// True if a document is an object of another API than that of the spec.
fn is_own(text: &str) -> bool {
    let read: Result<Vec<Envelope>, _> = serde_saphyr::from_multiple_with_options(text, options());
    let Ok(read) = read else {
        return false;
    };
    let version = read.into_iter().find_map(|one| one.api_version);
    version.is_some_and(|version| !is_of_spec(&version))
}

/// True for API versions of kOps' objects, and for none at all.
fn is_of_spec(version: &str) -> bool {
    matches!(
        version.split('/').next(),
        None | Some("" | "kops" | "kops.k8s.io")
    )
}

fn options() -> Options {
    // A snippet could show a secret. The limits are those of [`super::read_manifest`], which protokube reads the objects with.
    serde_saphyr::options! { with_snippet: false }
}

fn read_section(what: &str, section: &Section<'_>) -> Result<Vec<OwnObject>, Unreadable> {
    let meant = |line: &str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && !line.starts_with("---")
    };
    let before = section.text.lines().position(meant).unwrap_or_default();
    let place = format!("{what}, line {}", section.line + before);
    let read: Result<Vec<Value>, _> =
        serde_saphyr::from_multiple_with_options(section.text, options());
    let objects = read.map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let line = section.line + usize::try_from(line).unwrap_or(1).saturating_sub(1);
        Unreadable {
            place: format!("{what}, line {line}"),
            why: error_text(&error),
            next_step: "correct the YAML: `kubectl apply --dry-run=client -f` reads it too"
                .to_owned(),
        }
    })?;
    let mut found = Vec::new();
    for object in objects.into_iter().filter(|object| !object.is_null()) {
        for object in items(object) {
            check(&object, &place)?;
            let place = place.clone();
            found.push(OwnObject { object, place });
        }
    }
    Ok(found)
}

/// What the parser says, on one line and without the place.
fn error_text(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// The objects of a list, or the object.
fn items(object: Value) -> Vec<Value> {
    let is_list = object.get("kind").and_then(Value::as_str) == Some("List");
    match object {
        Value::Object(mut fields) if is_list => match fields.remove("items") {
            Some(Value::Array(items)) => items,
            _ => vec![Value::Object(fields)],
        },
        object => vec![object],
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// Group of an API version; empty for the core.
pub fn api_group(version: &str) -> &str {
    version.rsplit_once('/').map_or("", |(group, _)| group)
}

pub(super) fn refuse<T>(place: &str, why: String, next_step: &str) -> Result<T, Unreadable> {
    Err(Unreadable {
        place: place.to_owned(),
        why,
        next_step: next_step.to_owned(),
    })
}

fn check(object: &Value, place: &str) -> Result<(), Unreadable> {
    if !object.is_object() {
        let why = "a document is not an object".to_owned();
        return refuse(place, why, "begin it with apiVersion, kind and metadata");
    }
    check_kind(object, place)?;
    check_metadata(object, place)?;
    if is_secret(object) {
        check_secret(object, place)?;
    }
    let bytes = serde_json::to_vec(object).map_or(usize::MAX, |bytes| bytes.len());
    if bytes > MAX_OBJECT_BYTES {
        let key = ObjectKey::of(object);
        let why = format!("{key} has {bytes} bytes, more than {MAX_OBJECT_BYTES}");
        return refuse(place, why, "divide it: the cluster could not store it");
    }
    Ok(())
}

fn check_kind(object: &Value, place: &str) -> Result<(), Unreadable> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    for (field, value) in [("apiVersion", version), ("kind", kind)] {
        if value.is_empty() {
            return refuse(place, format!("the object has no {field}"), "add it");
        }
    }
    let of = format!("{kind} of {version}");
    if is_of_spec(version) {
        return refuse(
            place,
            format!("{of} is no object of a cluster's API"),
            "store it with `kctl create -f` or `kctl replace -f`",
        );
    }
    let group = api_group(version);
    if let Some((_, instead)) = CONFIGURATIONS.iter().find(|(named, _)| *named == group) {
        let why = format!("{of} configures a component, and is no object of a cluster's API");
        return refuse(place, why, instead);
    }
    if kind == "List" {
        let why = "the list has no items".to_owned();
        return refuse(place, why, "write the objects one by one");
    }
    match wrong_word(version, "./-").or(wrong_word(kind, "")) {
        Some(wrong) => refuse(
            place,
            format!("{wrong:?} is not the name of a kind"),
            "correct apiVersion and kind",
        ),
        None => Ok(()),
    }
}

fn check_metadata(object: &Value, place: &str) -> Result<(), Unreadable> {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    let given = object.pointer("/metadata/name");
    if given.is_some_and(|given| !given.is_string() && !given.is_null()) {
        let why = format!("{kind}: metadata.name is no text");
        return refuse(place, why, "put it in quotes");
    }
    if name.is_empty() {
        return refuse(
            place,
            format!("{kind} has no metadata.name"),
            "name it: what has no fixed name cannot be applied again",
        );
    }
    if !is_name(name) {
        let why = format!("{name:?} is not the name of an object");
        return refuse(place, why, "correct metadata.name");
    }
    let namespace = object.pointer("/metadata/namespace");
    if namespace.is_some_and(|namespace| !namespace.as_str().is_some_and(is_label)) {
        let why = format!("{kind} {name}: metadata.namespace is not a name");
        return refuse(place, why, "correct it");
    }
    for field in ["labels", "annotations"] {
        let all = object.pointer(&format!("/metadata/{field}"));
        if all.is_some_and(|all| !all.is_null() && !is_text_map(all)) {
            return refuse(
                place,
                format!("{kind} {name}: metadata.{field} has a value that is no text"),
                "put numbers, true and false in quotes",
            );
        }
    }
    Ok(())
}

/// True for a Secret of the core API.
pub fn is_secret(object: &Value) -> bool {
    text(object, "/kind") == "Secret" && api_group(text(object, "/apiVersion")).is_empty()
}

/// A value that the API server would refuse is refused here: its answer could show it.
fn check_secret(object: &Value, place: &str) -> Result<(), Unreadable> {
    let name = text(object, "/metadata/name");
    for field in ["data", "stringData"] {
        let values = object.get(field).filter(|values| !values.is_null());
        if values.is_some_and(|values| !is_text_map(values)) {
            let why = format!("Secret {name}: {field} has a value that is no text");
            return refuse(place, why, "put it in quotes");
        }
    }
    let data = object.get("data").and_then(Value::as_object);
    let texts = data.into_iter().flatten();
    for value in texts.filter_map(|(_, value)| value.as_str()) {
        // As Kubernetes does, also over several lines.
        let value: String = value
            .chars()
            .filter(|char| !"\r\n".contains(*char))
            .collect();
        if STANDARD.decode(value).is_err() {
            return refuse(
                place,
                format!("Secret {name}: data has a value that is not base64"),
                "encode it, or write it as it is under stringData",
            );
        }
    }
    Ok(())
}

fn is_text_map(value: &Value) -> bool {
    let fields = value.as_object();
    fields.is_some_and(|fields| fields.values().all(Value::is_string))
}

/// The word, if it has other characters than letters, digits and these.
fn wrong_word<'a>(word: &'a str, others: &str) -> Option<&'a str> {
    let fine = |char: char| char.is_ascii_alphanumeric() || others.contains(char);
    (!word.chars().all(fine)).then_some(word)
}

/// A name that stands for itself in a path of the API. Names of access rules may have colons.
fn is_name(name: &str) -> bool {
    let fine = |char: char| char.is_ascii_alphanumeric() || "-._:@".contains(char);
    name.len() <= MAX_NAME && name.chars().all(fine) && name != "." && name != ".."
}

fn is_label(name: &str) -> bool {
    let fine = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    !name.is_empty() && name.len() <= 63 && name.chars().all(fine)
}

/// A manifest as it may be shown: without what Secrets hold. `None`: it has none. A text that is no manifest is not shown at all.
pub fn hide_secrets(text: &str) -> Option<String> {
    let Ok(objects) = super::read_manifest("", text) else {
        return Some(String::new());
    };
    let shown: Vec<Value> = objects.iter().map(without_secrets).collect();
    let has_secrets = objects.iter().any(is_secret);
    has_secrets.then(|| to_yaml_documents(&shown).unwrap_or_default())
}

/// The object, as it may be shown: without what a Secret holds.
pub fn without_secrets(object: &Value) -> Value {
    let mut object = object.clone();
    if !is_secret(&object) {
        return object;
    }
    for field in ["data", "stringData"] {
        let values = object.get_mut(field).and_then(Value::as_object_mut);
        for (_, value) in values.into_iter().flatten() {
            *value = "(sensitive)".into();
        }
    }
    object
}

/// Group, kind, namespace and name: what tells objects of one cluster apart, whatever the version of their API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    pub group: String,
    pub kind: String,
    /// `None`: it names none, so it is in `default` or in no namespace.
    pub namespace: Option<String>,
    pub name: String,
}

impl ObjectKey {
    pub fn of(object: &Value) -> Self {
        let namespace = text(object, "/metadata/namespace");
        Self {
            group: api_group(text(object, "/apiVersion")).to_owned(),
            kind: text(object, "/kind").to_owned(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: text(object, "/metadata/name").to_owned(),
        }
    }

    /// True if both are one object of the cluster. A namespace does not count if the other one, which kctl wrote, has none: its kind may be one
    /// without namespaces.
    pub fn is_the_same(&self, other: &Self) -> bool {
        let place = |key: &Self| {
            key.namespace
                .clone()
                .unwrap_or_else(|| "default".to_owned())
        };
        (place(self) == place(other) || other.namespace.is_none())
            && (&self.group, &self.kind, &self.name) == (&other.group, &other.kind, &other.name)
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
#[path = "own_test.rs"]
mod tests;
