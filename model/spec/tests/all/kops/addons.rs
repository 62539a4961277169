//! Objects of addons, and the list of addons.

use super::compare::{ComparedObject, Objects, compare_objects};
use super::read_text;
use full::FullSpec;
use full::addons::{channel_yaml, make_addons};
use node::addons::{ADDON_LABEL, read_manifest};
use serde_json::Value;
use std::path::Path;

const LIST: &str = "bootstrap.yaml";

/// The objects of a case, and the entries of its list.
pub fn compare_addons(full: &FullSpec, case: &Path, theirs: &Objects) -> [Vec<ComparedObject>; 2] {
    let addons = make_addons(full).expect("addons");
    let list = channel_yaml(&addons).expect("a list");
    let ours = addons.into_iter().flat_map(|addon| addon.objects);
    let ours = ours.map(key_by_place).collect();
    let kops_list = read_text(&case.join("addons").join(LIST));
    [
        compare_objects(&ours, theirs),
        compare_objects(&entries(&list), &entries(&kops_list)),
    ]
}

/// The objects that kOps makes.
pub fn kops_objects(case: &Path) -> Objects {
    let files = std::fs::read_dir(case.join("addons")).expect("addons");
    let files = files.map(|entry| entry.expect("an entry").path());
    let manifests = files.filter(|path| !path.ends_with(LIST));
    let texts = manifests.map(|path| read_text(&path));
    let objects = texts.flat_map(|text| read_manifest("kops", &text).expect("objects"));
    objects.map(key_by_place).collect()
}

fn key_by_place(mut object: Value) -> ((String, String), Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // What kOps' own tool leaves of an object that it has read.
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    let metadata = &object["metadata"];
    let place = [
        text(&metadata["labels"][ADDON_LABEL]),
        text(&object["kind"]),
        text(&metadata["name"]),
    ];
    let key = (place.join(" "), text(&metadata["namespace"]));
    (key, without_idle(object))
}

/// Without what says nothing: null and an empty text.
fn without_idle(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let rest = map.into_iter().map(|(name, one)| (name, without_idle(one)));
            let rest = rest.filter(|(_, one)| !one.is_null() && one != "");
            rest.collect()
        }
        Value::Array(list) => list.into_iter().map(without_idle).collect(),
        other => other,
    }
}

/// The entries of a list, without the hashes of the manifests.
fn entries(list: &str) -> Objects {
    let mut list: Value = serde_saphyr::from_str(list).expect("a list of addons");
    let all = list["spec"]["addons"].as_array_mut().expect("addons");
    let entries = all.iter_mut().map(|entry| {
        let name = entry["name"].as_str().expect("a name").to_owned();
        entry["manifestHash"] = Value::Null;
        (
            (format!("{name} Addon {name}"), String::new()),
            entry.take(),
        )
    });
    entries.collect()
}
