//! Builds an addon from rendered templates: parses the objects, adds the addon's labels, and writes them as YAML.

use super::identity::add_role;
use super::values::apply_values;
use super::{Addon, Error};
use crate::{FullSpec, ImageSource};
use node::addons::{ADDON_LABEL, MANAGED_BY_LABEL, MANAGER, read_manifest};
use node::digest::sha256_hex;
use node::yaml::to_yaml_documents;
use serde_json::{Map, Value};
use templates::{Template, render};

/// Name, id and label of an addon.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddonName {
    pub name: &'static str,
    pub id: &'static str,
    pub selector: (&'static str, &'static str),
}

impl AddonName {
    /// An addon with the selector `k8s-addon: NAME`.
    pub const fn new(name: &'static str, id: &'static str) -> Self {
        let selector = ("k8s-addon", name);
        Self { name, id, selector }
    }

    /// Renders a template; errors name the addon.
    pub fn render_template<T: Template>(self, context: &T) -> Result<String, Error> {
        render(context).map_err(|source| Error::Template {
            addon: self.name,
            source,
        })
    }

    /// Builds the addon from rendered YAML documents. Images come from where the spec wants them; pods get the role of their service
    /// account, if it has one.
    pub fn make_addon(self, full: &FullSpec, rendered: &[String]) -> Result<Addon, Error> {
        let mut objects = Vec::new();
        for text in rendered {
            for object in read_manifest(self.name, text)? {
                let mut object = self.with_labels(without_nulls(object));
                mark_pods(&mut object);
                move_images(&full.images, &mut object);
                add_role(full, &mut object);
                objects.push(object);
            }
        }
        let values = full.addons.values.iter();
        for values in values.filter(|values| values.addon == self.name) {
            apply_values(values, &mut objects)?;
        }
        let manifest = to_yaml_documents(&objects)?;
        let (key, value) = self.selector;
        Ok(Addon {
            name: self.name.to_owned(),
            id: self.id.to_owned(),
            selector: (key.to_owned(), value.to_owned()),
            sha256: sha256_hex(&manifest),
            objects,
            manifest,
            shown: None,
        })
    }

    /// Adds the labels that every object of the addon has.
    fn with_labels(self, object: Value) -> Value {
        with_addon_labels(object, self.name, self.selector)
    }
}

/// Adds the labels that every object of an addon has.
pub(super) fn with_addon_labels(mut object: Value, addon: &str, selector: (&str, &str)) -> Value {
    let own_labels = [(ADDON_LABEL, addon), (MANAGED_BY_LABEL, MANAGER), selector];
    if let Some(metadata) = object_field_mut(&mut object, "metadata") {
        let labels = metadata.entry("labels").or_insert(Value::Null);
        if labels.is_null() {
            *labels = Map::new().into();
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.extend(own_labels.map(|(key, value)| (key.to_owned(), value.into())));
        }
    }
    object
}

fn object_field_mut<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(field)?.as_object_mut()
}

/// Labels the pods of workloads as kOps does: the pod identity webhook stands before all others, and these start without it.
fn mark_pods(object: &mut Value) {
    let labels = object.pointer_mut("/spec/template/metadata/labels");
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.insert("kops.k8s.io/managed-by".to_owned(), "kops".into());
    }
}

/// Replaces the image of each container, in the pods of workloads.
fn move_images(images: &ImageSource, object: &mut Value) {
    let pods = object.pointer_mut("/spec/template/spec");
    let Some(pods) = pods.and_then(Value::as_object_mut) else {
        return;
    };
    let containers = ["initContainers", "containers"];
    for (_, list) in pods
        .iter_mut()
        .filter(|(name, _)| containers.contains(&name.as_str()))
    {
        for container in list.as_array_mut().into_iter().flatten() {
            if let Some(Value::String(image)) = container.get_mut("image") {
                *image = images.remap(image);
            }
        }
    }
}

/// Removes all fields that are null.
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
    use super::{AddonName, without_nulls};
    use crate::objects::tests::spec::minimal_spec;
    use node::addons::read_manifest;
    use serde_json::json;

    const NAMED: AddonName = AddonName::new("a.example.com", "v1");

    #[test]
    fn every_object_carries_the_labels_of_its_addon_beside_its_own() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {own: x}}\n---\n\
                    apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n";
        let addon = NAMED
            .make_addon(&minimal_spec(), &[text.to_owned()])
            .unwrap();
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
