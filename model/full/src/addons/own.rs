//! Addons of the user: objects that stand beside kctl's own. They can take the place of none of these.

use super::helm_controller;
use super::manifest::with_addon_labels;
use super::{Addon, Error};
use crate::FullSpec;
use node::addons::{ObjectKey, OwnObject, Unreadable, hide_secrets, read_manifest};
use node::digest::sha256_hex;
use node::protokube::{ADDON_RECORD, TERMINATION_LEASE};
use node::yaml::to_yaml_documents;
use serde_json::Value;

/// kOps' name of the addon with the objects in `clusteraddons/`.
pub const CLUSTER_ADDONS: &str = "cluster-addons.kops.k8s.io";

/// Limit of the objects of all addons of a user: protokube records each in one ConfigMap.
const MAX_OBJECTS: usize = 2000;

/// Objects that protokube writes, with their kinds and groups, and what they are.
const OF_PROTOKUBE: [(&str, &str, &str); 2] = [
    ("", "ConfigMap", ADDON_RECORD),
    ("coordination.k8s.io", "Lease", TERMINATION_LEASE),
];

/// An addon of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnAddon {
    pub name: String,
    /// Id of its manifest, and name of the file without `.yaml`.
    pub id: String,
    /// Where its objects come from, for errors that concern all of it.
    pub place: String,
    /// Its objects, in the order in which they were read.
    pub objects: Vec<OwnObject>,
}

/// An addon of the user cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    #[error(transparent)]
    Refused(Unreadable),
    #[error(transparent)]
    Failed(#[from] Error),
}

fn refuse<T>(place: &str, why: String, next_step: &str) -> Result<T, OwnError> {
    Err(OwnError::Refused(Unreadable {
        place: place.to_owned(),
        why,
        next_step: next_step.to_owned(),
    }))
}

/// Adds the addons of the user after those of kctl, and helm-controller if they have charts. Refuses objects and names that one of these has, and what two of the user's have.
pub fn add_own_addons(
    full: &FullSpec,
    addons: &mut Vec<Addon>,
    own: &[OwnAddon],
) -> Result<(), OwnError> {
    addons.extend(helm_controller::addon(full, own)?);
    let mut taken: Vec<(ObjectKey, String)> = Vec::new();
    for addon in addons.iter() {
        let keys = addon.objects.iter().map(ObjectKey::of);
        taken.extend(keys.map(|key| (key, format!("the addon {}", addon.name))));
    }
    for (group, kind, name) in OF_PROTOKUBE {
        let key = ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: Some("kube-system".to_owned()),
            name: name.to_owned(),
        };
        taken.push((key, "protokube".to_owned()));
    }
    let count: usize = own.iter().map(|addon| addon.objects.len()).sum();
    if let (true, Some(first)) = (count > MAX_OBJECTS, own.first()) {
        return refuse(
            &first.place,
            format!("the addons of the user have {count} objects, more than {MAX_OBJECTS}"),
            "apply some of them in another way",
        );
    }
    for addon in own.iter().filter(|addon| !addon.objects.is_empty()) {
        if addons.iter().any(|other| other.name == addon.name) {
            return refuse(
                &addon.place,
                format!("there is an addon {} already", addon.name),
                "give this one another name",
            );
        }
        for own in &addon.objects {
            let key = ObjectKey::of(&own.object);
            if let Some((_, owner)) = taken.iter().find(|(other, _)| key.is_the_same(other)) {
                return refuse(
                    &own.place,
                    format!("{key} belongs to {owner}"),
                    "remove it here, or give it another name",
                );
            }
            taken.push((key, own.place.clone()));
        }
        addons.push(make_addon(addon)?);
    }
    Ok(())
}

fn make_addon(own: &OwnAddon) -> Result<Addon, OwnError> {
    let selector = ("k8s-addon", own.name.as_str());
    let mut objects: Vec<Value> = own
        .objects
        .iter()
        .map(|one| with_addon_labels(one.object.clone(), &own.name, selector))
        .collect();
    // What others need comes first; all else stays in its order.
    objects.sort_by_key(|object| match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("CustomResourceDefinition") => 1,
        _ => 2,
    });
    let manifest = to_yaml_documents(&objects).map_err(Error::from)?;
    if let Err(error) = read_manifest(&own.name, &manifest) {
        return refuse(
            &own.place,
            format!(
                "together its objects are more than can be applied: {}",
                error.why
            ),
            "divide them into several addons of spec.addons",
        );
    }
    Ok(Addon {
        name: own.name.clone(),
        id: own.id.clone(),
        selector: (selector.0.to_owned(), selector.1.to_owned()),
        sha256: sha256_hex(&manifest),
        shown: hide_secrets(&manifest),
        objects,
        manifest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addons::make_addons;
    use crate::objects::tests::spec::minimal_spec;
    use node::addons::read_own_objects;

    fn own(name: &str, text: &str) -> OwnAddon {
        OwnAddon {
            name: name.to_owned(),
            id: "default".to_owned(),
            place: "FILE".to_owned(),
            objects: read_own_objects("FILE", text).unwrap(),
        }
    }

    fn added(own: &[OwnAddon]) -> Result<Vec<Addon>, String> {
        let mut addons = make_addons(&minimal_spec()).unwrap();
        let before = addons.len();
        add_own_addons(&minimal_spec(), &mut addons, own).map_err(|error| error.to_string())?;
        Ok(addons.split_off(before))
    }

    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: null}\n";

    #[test]
    fn every_object_of_kctl_s_addons_is_refused_and_so_is_what_protokube_writes() {
        for addon in make_addons(&minimal_spec()).unwrap() {
            for object in &addon.objects {
                let mut others = vec![object.clone()];
                if object.pointer("/metadata/namespace").is_none() {
                    let mut other = object.clone();
                    other["metadata"]["namespace"] = "kube-system".into();
                    others.push(other);
                }
                for object in others {
                    let text = to_yaml_documents(&[object]).unwrap();
                    let said = added(&[own("x", &text)]).unwrap_err();
                    assert!(
                        said.ends_with(&format!("belongs to the addon {}", addon.name)),
                        "{said}"
                    );
                }
            }
            let said = added(&[own(&addon.name, MAP)]).unwrap_err();
            assert_eq!(
                said,
                format!("FILE: there is an addon {} already", addon.name)
            );
        }
        for (version, kind, name) in [
            ("v1", "ConfigMap", "kctl-addons"),
            ("coordination.k8s.io/v1", "Lease", "kctl-termination"),
        ] {
            let text = format!(
                "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: kube-system}}\n"
            );
            let said = added(&[own("x", &text)]).unwrap_err();
            assert_eq!(
                said,
                format!("FILE, line 1: {kind} kube-system/{name} belongs to protokube")
            );
        }
    }

    #[test]
    fn charts_bring_helm_controller_before_them_and_its_images_are_moved() {
        let chart = "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: a, namespace: shop}\n";
        let all = added(&[own("x", chart)]).unwrap();
        let names: Vec<&str> = all.iter().map(|addon| addon.name.as_str()).collect();
        assert_eq!(names, ["helm-controller.kctl.dev", "x"]);
        let kinds: Vec<&str> = all[0]
            .objects
            .iter()
            .filter_map(|one| one["kind"].as_str())
            .collect();
        assert_eq!(
            kinds,
            [
                "CustomResourceDefinition",
                "CustomResourceDefinition",
                "ServiceAccount",
                "ClusterRoleBinding",
                "Deployment"
            ]
        );
        let mut spec = minimal_spec();
        spec.images.registry = Some("mirror.example.com/all".to_owned());
        let mut moved = Vec::new();
        add_own_addons(&spec, &mut moved, &[own("x", chart)]).unwrap();
        for image in [
            "helm-controller:v0.17.9",
            "klipper-helm:v0.13.2-build20260716",
        ] {
            assert!(
                all[0]
                    .manifest
                    .contains(&format!("docker.io/rancher/{image}")),
                "{image}"
            );
            assert!(
                !moved[0].manifest.contains("docker.io/"),
                "{}",
                moved[0].manifest
            );
            assert!(
                moved[0].manifest.contains("mirror.example.com/all"),
                "{image}"
            );
        }
    }

    #[test]
    fn an_object_of_two_places_is_refused() {
        let said = added(&[
            own("x", MAP),
            own("y", &MAP.replace("name: a", "name: a, namespace: default")),
        ]);
        assert_eq!(
            said.unwrap_err(),
            "FILE, line 1: ConfigMap default/a belongs to FILE, line 1"
        );
    }

    #[test]
    fn own_objects_get_the_labels_of_their_addon_and_come_after_what_they_need() {
        let text = format!("{MAP}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n");
        let all = added(&[own("x", &text), own("nothing", "")]).unwrap();
        let [addon] = all.as_slice() else {
            panic!("{all:?}")
        };
        let names: Vec<&Value> = addon
            .objects
            .iter()
            .map(|one| &one["metadata"]["name"])
            .collect();
        assert_eq!(names, ["shop", "a"]);
        for object in &addon.objects {
            assert_eq!(
                object["metadata"]["labels"],
                serde_json::json!({"addon.kops.k8s.io/name": "x", "app.kubernetes.io/managed-by": "kctl", "k8s-addon": "x"})
            );
        }
        assert_eq!(addon.shown, None);
    }
}
