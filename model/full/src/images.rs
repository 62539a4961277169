//! The container images of a cluster: those that instances run, those in the pods of addons, and those that pods need first. Their order
//! does not depend on where images come from.

use crate::addons::Addon;
use crate::{FullSpec, Group, NodeSettings, manifests};
use node::config::Role;
use node::values::parse_image;
use serde_json::Value;
use std::collections::BTreeSet;

/// Lists of containers in a pod.
const CONTAINERS: [&str; 3] = ["containers", "ephemeralContainers", "initContainers"];

/// How controllers are told of images that they start: an argument of cert-manager's, a variable of helm-controller's.
const SOLVER: &str = "--acme-http01-solver-image=";
const JOB: &str = "DEFAULT_JOB_IMAGE";

/// The full names of all images, as [`parse_image`] writes them. Some stand there more than once.
pub fn cluster_images(full: &FullSpec, addons: &[Addon]) -> Vec<String> {
    let of_instances = [
        control_plane_images(full),
        etcd_images(full),
        node_images(full),
    ];
    let mut images = of_instances.concat();
    let objects = addons.iter().flat_map(|addon| &addon.objects);
    objects.for_each(|object| collect_images(object, &mut images));
    images
}

/// The full names of the images that workers run without addons.
pub fn node_images(full: &FullSpec) -> Vec<String> {
    let mut images: Vec<String> = full.kube_proxy.iter().map(|of| name(&of.image)).collect();
    for group in &full.groups {
        let node = group.node.iter();
        images.extend(node.filter_map(|node| node.containerd.sandbox_image.as_deref().map(name)));
        let pool = group.warm_pool.iter();
        images.extend(pool.flat_map(|pool| pool.images.iter().map(|image| name(image))));
    }
    images
}

/// The full names of the images of API server, controller manager and scheduler. No worker has a use for them; for etcd's, pods of a user may
/// have.
pub fn control_plane_images(full: &FullSpec) -> Vec<String> {
    let pods = [
        manifests::api_server_pod(full),
        manifests::controller_manager_pod(full),
        manifests::scheduler_pod(full),
    ];
    let containers = pods.iter().flat_map(|pod| &pod.spec.containers);
    containers.map(|container| name(&container.image)).collect()
}

fn etcd_images(full: &FullSpec) -> Vec<String> {
    full.etcd.iter().map(|etcd| name(&etcd.image)).collect()
}

/// The full names of the images that pods of a group's instances need first, in that order. Only those whose change replaces instances
/// anyway: with those of agents that are replaced on running nodes, as calico's and kindnet's, every instance would be out of date. None
/// that instances import, and none that only kubelet has a password for.
pub(crate) fn first_images(full: &FullSpec, group: &Group, node: &NodeSettings) -> Vec<String> {
    if !full.image_archives.is_empty() {
        return Vec::new();
    }
    let proxy = full.kube_proxy.iter().map(|proxy| &proxy.image);
    let on_all = node.containerd.sandbox_image.iter().chain(proxy);
    let mut images: Vec<String> = on_all.map(|image| name(image)).collect();
    if group.role == Role::ControlPlane {
        images.extend(etcd_images(full));
        images.extend(control_plane_images(full));
    }
    let addons = &full.addons;
    let flannel = addons.flannel.iter();
    let flannel = flannel.flat_map(|flannel| [&flannel.plugin_image, &flannel.image]);
    let cilium = addons.cilium.iter().map(|cilium| &cilium.image);
    let router = addons.kube_router.iter().map(|router| &router.image);
    let agents = flannel.chain(cilium).chain(router);
    images.extend(agents.map(|image| name(&full.images.remap(image))));
    let mut seen = BTreeSet::new();
    images.retain(|image| {
        let registry = image.split('/').next().unwrap_or_default();
        !node.containerd.wants_ecr_password(registry) && seen.insert(image.clone())
    });
    images
}

/// Whatever kubelet makes of a text that is no name of an image, it finds no image under it.
fn name(image: &str) -> String {
    parse_image(image).unwrap_or_else(|_| image.to_owned())
}

/// The images in an object, wherever in it pods are described: of containers, of volumes, and of the jobs of a HelmChart.
fn collect_images(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("jobImage", Value::String(image)) => into.push(name(image)),
                    ("image", Value::Object(volume)) => {
                        let image = volume.get("reference").and_then(Value::as_str);
                        into.extend(image.map(name));
                    }
                    (key, Value::Array(containers)) if CONTAINERS.contains(&key) => {
                        let all = containers.iter();
                        all.for_each(|one| collect_of_container(one, into));
                    }
                    _ => collect_images(value, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_images(item, into)),
        _ => {}
    }
}

fn collect_of_container(container: &Value, into: &mut Vec<String>) {
    let items = |list: &str| container.get(list).and_then(Value::as_array);
    let texts = ["command", "args"].into_iter().filter_map(items).flatten();
    let solvers = texts.filter_map(|text| text.as_str()?.strip_prefix(SOLVER));
    let variables = items("env").into_iter().flatten();
    let jobs = variables.filter(|variable| variable.get("name").is_some_and(|name| name == JOB));
    let jobs = jobs.filter_map(|variable| variable.get("value")?.as_str());
    let own = container.get("image").and_then(Value::as_str);
    into.extend(own.into_iter().chain(solvers).chain(jobs).map(name));
}

#[cfg(test)]
mod tests {
    use super::collect_images;
    use serde_json::json;

    #[test]
    fn images_are_found_wherever_pods_are_described() {
        let pod = |image: &str| json!({"containers": [{"image": image}], "initContainers": [{"image": "init"}]});
        for object in [
            json!({"kind": "Pod", "spec": pod("a/b:1")}),
            json!({"kind": "Deployment", "spec": {"template": {"spec": pod("a/b:1")}}}),
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": pod("a/b:1")}}}}}),
            json!({"kind": "List", "items": [{"kind": "Pod", "spec": pod("a/b:1")}]}),
        ] {
            let mut found = Vec::new();
            collect_images(&object, &mut found);
            assert_eq!(
                found,
                ["docker.io/a/b:1", "docker.io/library/init:latest"],
                "{object}"
            );
        }
        let mut found = Vec::new();
        let others = json!([
            {"kind": "Pod", "spec": {"volumes": [{"name": "a", "image": {"reference": "r.example.com/v:1"}}]}},
            {"kind": "HelmChart", "spec": {"jobImage": "r.example.com/helm:1"}},
            {"containers": [{"name": "no image", "args": ["--acme-http01-solver-image=r.example.com/solver:1"]}]},
            {"containers": [{"env": [{"name": "DEFAULT_JOB_IMAGE", "value": "r.example.com/job:1"}, {"name": "x", "value": "y:1"}]}]},
            {"kind": "CustomResourceDefinition", "spec": {"properties": {"image": {"type": "string"}, "containers": {"type": "array"}}}},
        ]);
        collect_images(&others, &mut found);
        assert_eq!(
            found,
            ["v:1", "helm:1", "solver:1", "job:1"].map(|name| format!("r.example.com/{name}"))
        );
    }
}
