//! What the instances of a warm pool do before they stop: the images that every node of the group needs.

use crate::addons::make_addons;
use crate::images::first_images;
use crate::{FullSpec, Group, NodeSettings};
use node::config::{Error, WarmPool};
use serde_json::Value;

/// The label by which pods choose control planes.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The label by which pods choose nodes with a GPU.
const GPU: &str = "kops.k8s.io/gpu";

/// The settings of a group's warm pool; `None`: it has none.
pub(super) fn warm_pool(
    full: &FullSpec,
    group: &Group,
    node: &NodeSettings,
) -> Result<Option<WarmPool>, Error> {
    let Some(pool) = &group.warm_pool else {
        return Ok(None);
    };
    let addons = make_addons(full).map_err(|error| Error::Images {
        group: group.name.clone(),
        source: error.into(),
    })?;
    let objects = addons.iter().flat_map(|addon| &addon.objects);
    let on_nodes = objects.filter(|object| {
        let chosen = object.pointer("/spec/template/spec/nodeSelector");
        let for_gpus = chosen.is_some_and(|labels| labels.get(GPU).is_some());
        !for_gpus || group.node_labels.contains_key(GPU)
    });
    let of_addons = on_nodes.flat_map(images_on_every_node);
    let mut images = first_images(full, group, node);
    images.extend(pool.images.iter().cloned().chain(of_addons));
    // What instances import, they have already, and a registry that they do not reach would be asked nevertheless.
    if !full.image_archives.is_empty() {
        images.clear();
    }
    images.sort();
    images.dedup();
    Ok(Some(WarmPool {
        hook_seconds: pool.hook_seconds.map(i32::unsigned_abs).map(u64::from),
        images,
    }))
}

/// The images of a DaemonSet that is not for control planes alone.
fn images_on_every_node(object: &Value) -> Vec<String> {
    let in_pod = |field: &str| object.pointer(&format!("/spec/template/spec/{field}"));
    let chosen = ["nodeSelector", "affinity"].map(in_pod);
    let for_control_planes = |of: &Value| of.to_string().contains(CONTROL_PLANE);
    let is_daemon_set = object.get("kind").is_some_and(|kind| kind == "DaemonSet");
    if !is_daemon_set || chosen.into_iter().flatten().any(for_control_planes) {
        return Vec::new();
    }
    let lists = ["initContainers", "containers"].map(in_pod);
    let containers = lists.into_iter().flatten().filter_map(Value::as_array);
    let images = containers
        .flatten()
        .filter_map(|one| one.get("image")?.as_str());
    images.map(str::to_owned).collect()
}
