//! `spec.clusterAutoscaler`, and what instance groups say of it.

use super::Context;
use super::assets::registry_image;
use super::fill::fill;
use crate::api::addons::ClusterAutoscalerConfig;
use crate::api::cluster::ClusterSpec;
use crate::api::{Cluster, InstanceGroup, InstanceGroupRole};
use full::ClusterAutoscaler;
use node::config::Role;
use node::names;
use std::collections::BTreeMap;

/// The expander that asks for priorities.
pub(crate) const BY_PRIORITY: &str = "priority";

/// Fills in the defaults of kOps, if it is on.
pub(super) fn complete_cluster_autoscaler(spec: &mut ClusterSpec, context: &Context) {
    let Some(config) = &mut spec.cluster_autoscaler else {
        return;
    };
    if config.enabled != Some(true) {
        return;
    }
    let image = || registry_image("autoscaling/cluster-autoscaler", release(context));
    config.image.get_or_insert_with(image);
    fill(&mut config.expander, "random");
    fill(&mut config.ignore_daemon_sets_utilization, false);
    fill(&mut config.scale_down_utilization_threshold, "0.5");
    fill(&mut config.skip_nodes_with_custom_controller_pods, true);
    fill(&mut config.skip_nodes_with_local_storage, true);
    fill(&mut config.skip_nodes_with_system_pods, true);
    fill(&mut config.balance_similar_node_groups, false);
    fill(&mut config.emit_per_nodegroup_metrics, false);
    fill(&mut config.aws_use_static_instance_list, false);
    fill(&mut config.new_pod_scale_up_delay, "0s");
    fill(&mut config.scale_down_delay_after_add, "10m0s");
    fill(&mut config.scale_down_unneeded_time, "10m0s");
    fill(&mut config.scale_down_unready_time, "20m0s");
    fill(&mut config.max_node_provision_time, "15m0s");
    if config.expander.as_deref() == Some(BY_PRIORITY) {
        fill(&mut config.create_priority_expander_config, true);
    }
}

/// The release for this minor of Kubernetes, whose scheduler it contains. As in kOps, 1.37 has that of 1.36 until there is another.
fn release(context: &Context) -> &'static str {
    match context.version.minor {
        32 => "v1.32.7",
        33 => "v1.33.5",
        34 => "v1.34.4",
        35 => "v1.35.1",
        _ => "v1.36.0",
    }
}

/// The autoscaler of a completed spec; `None` if it is off.
pub(super) fn full_cluster_autoscaler(
    cluster: &Cluster,
    groups: &[InstanceGroup],
) -> Option<ClusterAutoscaler> {
    let config = cluster.spec.cluster_autoscaler.clone()?;
    if config.enabled != Some(true) {
        return None;
    }
    let by_priority = config.expander.as_deref() == Some(BY_PRIORITY);
    let makes_priorities = by_priority && config.create_priority_expander_config == Some(true);
    Some(ClusterAutoscaler {
        command: command(cluster.name(), &config, groups),
        by_priority,
        priorities: makes_priorities.then(|| priorities(cluster.name(), &config, groups)),
        image: config.image.unwrap_or_default(),
        cpu_request: config.cpu_request,
        memory_request: config.memory_request,
        pod_annotations: config.pod_annotations,
    })
}

/// True if the autoscaler, where it is on, scales the group.
pub(crate) fn is_scaled(group: &InstanceGroup) -> bool {
    group.spec.role == Some(InstanceGroupRole::Node) && group.spec.autoscale != Some(false)
}

fn command(
    cluster: &str,
    config: &ClusterAutoscalerConfig,
    groups: &[InstanceGroup],
) -> Vec<String> {
    let text = |name: &str, value: &Option<String>| {
        format!("--{name}={}", value.as_deref().unwrap_or_default())
    };
    let switch = |name: &str, value: Option<bool>| format!("--{name}={}", value == Some(true));
    let mut all = vec![
        "./cluster-autoscaler".to_owned(),
        switch(
            "balance-similar-node-groups",
            config.balance_similar_node_groups,
        ),
        switch(
            "emit-per-nodegroup-metrics",
            config.emit_per_nodegroup_metrics,
        ),
        "--cloud-provider=aws".to_owned(),
        switch(
            "aws-use-static-instance-list",
            config.aws_use_static_instance_list,
        ),
        text("expander", &config.expander),
    ];
    all.extend(groups.iter().filter(|group| is_scaled(group)).map(|group| {
        let size = |size: Option<i32>| size.unwrap_or_default();
        let (min, max) = (size(group.spec.min_size), size(group.spec.max_size));
        format!("--nodes={min}:{max}:{}", scaling_group(cluster, group))
    }));
    all.extend([
        switch(
            "ignore-daemonsets-utilization",
            config.ignore_daemon_sets_utilization,
        ),
        text(
            "scale-down-utilization-threshold",
            &config.scale_down_utilization_threshold,
        ),
        switch(
            "skip-nodes-with-custom-controller-pods",
            config.skip_nodes_with_custom_controller_pods,
        ),
        switch(
            "skip-nodes-with-local-storage",
            config.skip_nodes_with_local_storage,
        ),
        switch(
            "skip-nodes-with-system-pods",
            config.skip_nodes_with_system_pods,
        ),
        text(
            "scale-down-delay-after-add",
            &config.scale_down_delay_after_add,
        ),
        text("scale-down-unneeded-time", &config.scale_down_unneeded_time),
        text("scale-down-unready-time", &config.scale_down_unready_time),
        text("new-pod-scale-up-delay", &config.new_pod_scale_up_delay),
        text("max-node-provision-time", &config.max_node_provision_time),
        switch(
            "cordon-node-before-terminating",
            config.cordon_node_before_terminating.or(Some(true)),
        ),
        "--logtostderr=true".to_owned(),
        "--stderrthreshold=info".to_owned(),
        "--v=4".to_owned(),
    ]);
    all
}

fn scaling_group(cluster: &str, group: &InstanceGroup) -> String {
    names::autoscaling_group(cluster, group.name(), Role::Node)
}

/// Those of the spec, or one for each group that is scaled. The autoscaler looks for the expressions anywhere in a name: those of groups are
/// whole names, so that `nodes` does not speak of `spot-nodes`.
fn priorities(
    cluster: &str,
    config: &ClusterAutoscalerConfig,
    groups: &[InstanceGroup],
) -> BTreeMap<String, Vec<String>> {
    if !config.custom_priority_expander_config.is_empty() {
        return config.custom_priority_expander_config.clone();
    }
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for group in groups.iter().filter(|group| is_scaled(group)) {
        let priority = group.spec.autoscale_priority.unwrap_or_default();
        let name = scaling_group(cluster, group).replace('.', r"\.");
        let names = all.entry(priority.to_string()).or_default();
        names.push(format!("^{name}$"));
    }
    all
}
