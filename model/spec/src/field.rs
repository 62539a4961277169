//! The fields of the objects in a spec file as a tree, made of the reader's own types: what each takes, what its doc comment says, and
//! what kctl refuses of it. `kctl explain` shows the tree, and the JSON Schema is written from it.

mod lookup;

pub use lookup::{NoSuchField, look_up};

use crate::api::Spec;
use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::keyset::KeysetSpec;
use crate::api::metadata::Metadata;
use crate::api::shape::{Described, Section, SectionField, Shape, doc_text};
use crate::api::ssh_credential::SSHCredentialSpec;
use crate::api::unsupported::{self, Unsupported};
use crate::validate::removed_flags;
use crate::validate::values::{ValueType, value_type};

/// A field, with all below it.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in YAML.
    pub name: String,
    /// Where it is in its object: `spec.subnets[].cidr`. `[]` is any element of a list, `*` any key of a map.
    pub path: String,
    /// What it means, in sentences.
    pub description: String,
    pub shape: Shape,
    /// What kctl or kOps refuses of it, or drops.
    pub refusals: Vec<&'static Unsupported>,
    /// What to say of it where Kubernetes has removed its flag.
    pub removal: Option<String>,
    /// The fields of its value, or of the elements of its value.
    pub fields: Vec<Field>,
}

/// The objects that a spec file may hold, each as a field with the name of its kind and an empty path.
pub fn objects() -> [Field; 4] {
    [
        object::<ClusterSpec>(),
        object::<InstanceGroupSpec>(),
        object::<SSHCredentialSpec>(),
        object::<KeysetSpec>(),
    ]
}

fn object<S: Spec + Described>() -> Field {
    static OBJECT: Section = Section {
        attributes: &[],
        fields: &[],
    };
    let part = |name: &str, description: String, shape: Shape| Field {
        name: name.to_owned(),
        path: name.to_owned(),
        description,
        shape,
        refusals: Vec::new(),
        removal: None,
        fields: fields_of(S::KIND, shape, name),
    };
    let version = "Version of the form in which the object is written: `kops.k8s.io/v1alpha2`.";
    let (metadata, spec) = (Metadata::shape(), S::shape());
    Field {
        name: S::KIND.to_owned(),
        path: String::new(),
        description: section_text(spec),
        shape: Shape::Section(&OBJECT),
        refusals: Vec::new(),
        removal: None,
        fields: vec![
            part("apiVersion", version.to_owned(), Shape::Text),
            part(
                "kind",
                format!("Kind of the object: `{}`.", S::KIND),
                Shape::Text,
            ),
            part("metadata", section_text(metadata), metadata),
            part("spec", section_text(spec), spec),
        ],
    }
}

/// The fields of a value, or of the elements of a value.
fn fields_of(kind: &str, shape: Shape, path: &str) -> Vec<Field> {
    match shape {
        Shape::Optional(of) => fields_of(kind, of(), path),
        Shape::List(of) => fields_of(kind, of(), &format!("{path}[]")),
        Shape::Map(of) => fields_of(kind, of(), &format!("{path}.*")),
        Shape::Section(section) => section_fields(kind, section, path),
        _ => Vec::new(),
    }
}

fn section_fields(kind: &str, section: &Section, path: &str) -> Vec<Field> {
    let own = section.fields.iter().filter(|one| !one.is_flattened());
    let mut fields: Vec<Field> = own.map(|one| section_field(kind, one, path)).collect();
    for name in unsupported::names_below(kind, path) {
        if fields.iter().all(|field| field.name != name) {
            fields.push(listed_field(kind, name, path));
        }
    }
    fields
}

fn section_field(kind: &str, field: &SectionField, parent: &str) -> Field {
    let (name, shape) = (field.name(), (field.shape)());
    let path = format!("{parent}.{name}");
    let own = doc_text(field.attributes);
    Field {
        description: if own.is_empty() {
            section_text(shape)
        } else {
            own
        },
        refusals: unsupported::entries_at(kind, &path),
        removal: removed_flags::removal_note(&path),
        fields: fields_of(kind, shape, &path),
        shape,
        name,
        path,
    }
}

/// A field of kOps that has no type of its own.
fn listed_field(kind: &str, name: &str, parent: &str) -> Field {
    let path = format!("{parent}.{name}");
    Field {
        name: name.to_owned(),
        description: "A field of kOps that has no effect.".to_owned(),
        shape: Shape::Anything,
        refusals: unsupported::entries_at(kind, &path),
        removal: None,
        fields: Vec::new(),
        path,
    }
}

/// The doc comment of the struct of a value.
fn section_text(shape: Shape) -> String {
    match shape.element() {
        Shape::Section(section) => doc_text(section.attributes),
        _ => String::new(),
    }
}

impl Field {
    /// The words that it takes, if these are few.
    pub fn choices(&self) -> Vec<&'static str> {
        let words = match (self.shape.element(), value_type(&self.path)) {
            (Shape::Choice(words), _) | (Shape::Text, Some(ValueType::OneOf(words))) => {
                words.to_vec()
            }
            (Shape::Text, Some(ValueType::Only(word, _))) => vec![word],
            _ => Vec::new(),
        };
        words.into_iter().filter(|word| !word.is_empty()).collect()
    }

    /// What is refused or dropped of it, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let refusals = self.refusals.iter().map(|one| one.note());
        refusals.chain(self.removal.clone()).collect()
    }

    /// The first sentence of its description.
    pub fn summary(&self) -> String {
        match self.description.split_once(". ") {
            Some((first, _)) => format!("{first}."),
            None => self.description.clone(),
        }
    }

    /// The fields below it, and with `deep` all below these too.
    pub fn below(&self, deep: bool) -> Vec<&Self> {
        let fields = self.fields.iter();
        let all = fields.flat_map(|field| {
            let more = if deep { field.below(deep) } else { Vec::new() };
            std::iter::once(field).chain(more)
        });
        all.collect()
    }
}
