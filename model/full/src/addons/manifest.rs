//! From rendered or stored text to objects, and back: every addon's objects have one form and the same labels.

use super::{Addon, Error};
use node::addons::{ADDON_LABEL, MANAGED_BY_LABEL, MANAGER, read_manifest};
use node::config::sha256_hex;
use node::yaml::to_yaml_documents;
use serde_json::{Map, Value};
use templates::{Template, render};

/// What an addon is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub name: &'static str,
    pub id: &'static str,
    pub selector: (&'static str, &'static str),
}

impl Named {
    /// An addon with the selector that most have.
    pub const fn new(name: &'static str, id: &'static str) -> Self {
        let selector = ("k8s-addon", name);
        Self { name, id, selector }
    }

    /// Text of a template.
    pub fn render<T: Template>(self, context: &T) -> Result<String, Error> {
        render(context).map_err(|source| Error::Template {
            addon: self.name,
            source,
        })
    }

    /// The addon of rendered documents.
    pub fn addon(self, rendered: &[String]) -> Result<Addon, Error> {
        let mut objects = Vec::new();
        for text in rendered {
            for object in read_manifest(self.name, text)? {
                objects.push(self.labelled(without_nulls(object)));
            }
        }
        let manifest = to_yaml_documents(&objects)?;
        Ok(Addon {
            name: self.name,
            id: self.id,
            selector: self.selector,
            sha256: sha256_hex(&manifest),
            objects,
            manifest,
        })
    }

    /// With the labels of every object of the addon.
    fn labelled(self, mut object: Value) -> Value {
        let ours = [
            (ADDON_LABEL, self.name),
            (MANAGED_BY_LABEL, MANAGER),
            self.selector,
        ];
        if let Some(labels) = map(&mut object, "metadata").and_then(|metadata| {
            let labels = metadata
                .entry("labels")
                .or_insert_with(|| Map::new().into());
            labels.as_object_mut()
        }) {
            labels.extend(ours.map(|(key, value)| (key.to_owned(), value.into())));
        }
        object
    }
}

fn map<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(field)?.as_object_mut()
}

/// Without the fields that nobody gave a value.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.into_iter().filter(|(_, value)| !value.is_null());
            given
                .map(|(key, value)| (key, without_nulls(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::{Named, without_nulls};
    use node::addons::read_manifest;
    use serde_json::json;

    const NAMED: Named = Named::new("a.example.com", "v1");

    #[test]
    fn every_object_carries_the_labels_of_its_addon_beside_its_own() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {own: x}}\n---\n\
                    apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n";
        let addon = NAMED.addon(&[text.to_owned()]).unwrap();
        let ours = json!({
            "addon.kops.k8s.io/name": "a.example.com",
            "app.kubernetes.io/managed-by": "kctl",
            "k8s-addon": "a.example.com",
        });
        let mut both = ours.clone();
        both["own"] = json!("x");
        assert_eq!(addon.objects[0]["metadata"]["labels"], both);
        assert_eq!(addon.objects[1]["metadata"]["labels"], ours);
        assert_eq!(
            read_manifest("a", &addon.manifest).unwrap(),
            addon.objects,
            "{}",
            addon.manifest
        );
    }

    #[test]
    fn fields_that_nobody_gave_are_left_out() {
        let given = without_nulls(json!({"a": null, "b": [{"c": null, "d": 0}], "e": {}, "f": ""}));
        assert_eq!(given, json!({"b": [{"d": 0}], "e": {}, "f": ""}));
    }
}
