//! The images that pods of an instance need first.

use crate::{FullSpec, Group, NodeSettings};
use node::config::Role;
use std::collections::BTreeSet;

/// In the order in which pods need them. Only images whose change replaces instances anyway: with those of agents that are replaced on
/// running nodes, as calico's and kindnet's, every instance would be out of date. The VPC CNI's registry wants a password.
pub(super) fn first_images(full: &FullSpec, group: &Group, node: &NodeSettings) -> Vec<String> {
    let pause = node.containerd.sandbox_image.iter();
    let proxy = full.kube_proxy.iter().map(|proxy| &proxy.image);
    let components = &full.control_plane;
    let pods = [
        &components.api_server.image,
        &components.controller_manager.image,
        &components.scheduler.image,
    ];
    let etcd = full.etcd.iter().map(|etcd| &etcd.image);
    let is_control_plane = group.role == Role::ControlPlane;
    let of_control_plane = etcd.chain(pods).filter(|_| is_control_plane);
    let addons = &full.addons;
    let flannel = addons.flannel.iter();
    let flannel = flannel.flat_map(|flannel| [&flannel.plugin_image, &flannel.image]);
    let cilium = addons.cilium.iter().map(|cilium| &cilium.image);
    let router = addons.kube_router.iter().map(|router| &router.image);
    let agents = flannel.chain(cilium).chain(router);
    let agents = agents.map(|image| full.images.remap(image));
    let all = pause.chain(proxy).chain(of_control_plane).cloned();
    let mut seen = BTreeSet::new();
    let each = all.chain(agents);
    each.filter(|image| seen.insert(image.clone())).collect()
}
