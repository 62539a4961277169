//! `kctl get addons`: what was applied, what works, and what somebody has changed.

use crate::api_server::ApiServer;
use crate::instances::Cluster;
use node::addons::{CHANNEL_KEY, ChannelAddon, read_channel, read_manifest};
use node::protokube::ADDON_RECORD;
use serde_json::{Map, Value, json};

/// The addons in the store, with their objects.
fn stored_addons(cluster: &Cluster) -> Vec<(ChannelAddon, Vec<Value>)> {
    let list = read_channel(&cluster.stored_text(CHANNEL_KEY)).expect("a list");
    let read = |addon: ChannelAddon| {
        let key = addon.manifest_key();
        let objects = read_manifest(&key, &cluster.stored_text(&key)).expect("objects");
        (addon, objects)
    };
    list.spec.addons.into_iter().map(read).collect()
}

fn plural(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

fn serve(api: &ApiServer, mut object: Value) {
    object["metadata"]["generation"] = json!(1);
    object["status"] = json!({
        "observedGeneration": 1, "updatedReplicas": 9, "availableReplicas": 9,
        "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2,
    });
    let kind = plural(object["kind"].as_str().expect("a kind"));
    api.put_object(&kind, &object);
}

/// The record of protokube, with these addons as applied.
fn serve_record<'a>(api: &ApiServer, addons: impl Iterator<Item = &'a ChannelAddon>) {
    let entry = |addon: &ChannelAddon| {
        let entry = json!({"sha256": addon.manifest_hash, "objects": []});
        (addon.name.clone(), json!(entry.to_string()))
    };
    let data: Map<String, Value> = addons.map(entry).collect();
    api.put_object(
        "configmaps",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ADDON_RECORD, "namespace": "kube-system"}, "data": data}),
    );
}

#[test]
fn addons_are_shown_with_what_does_not_work_and_what_was_changed() {
    let cluster = Cluster::new_cluster(1);
    let addons = stored_addons(&cluster);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[]);
    for object in addons.iter().flat_map(|(_, objects)| objects) {
        serve(&api, object.clone());
    }
    serve_record(&api, addons.iter().map(|(addon, _)| addon));
    let get = |more: &[&str]| {
        let words = ["get", "addons", "--api-server", &api.url];
        cluster.kctl.run(&[&words[..], more].concat())
    };
    let shown = get(&["-o", "json"]).expect_success();
    let shown: Vec<Value> = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown.len(), addons.len());
    for (one, (addon, _)) in shown.iter().zip(&addons) {
        assert_eq!(one["name"], json!(addon.name));
        assert_eq!(one["state"], "healthy", "{one}");
        assert_eq!(one["differs"], json!([]), "{one}");
    }

    // CoreDNS loses its pods and is changed by hand; an addon is not applied yet; an object is gone.
    let all = addons.iter().flat_map(|(_, objects)| objects);
    let mut core_dns = all
        .clone()
        .find(|one| one["kind"] == "Deployment" && one["metadata"]["name"] == "coredns")
        .expect("CoreDNS")
        .clone();
    core_dns["spec"]["template"]["spec"]["priorityClassName"] = json!("none");
    core_dns["metadata"]["generation"] = json!(2);
    core_dns["status"] = json!({"observedGeneration": 2, "updatedReplicas": 1});
    api.put_object("deployments", &core_dns);
    let late = "aws-cloud-controller.addons.k8s.io";
    let rest = addons.iter().map(|(addon, _)| addon);
    serve_record(&api, rest.filter(|addon| addon.name != late));
    let table = get(&[]);
    let said = table.err.clone();
    let output = table.expect_success();
    let row = |name: &str| {
        let line = output.lines().find(|line| line.starts_with(name));
        let cells = line.expect("a row").split_whitespace();
        cells.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        row("coredns.addons"),
        "coredns.addons.k8s.io v1.14.2 unhealthy 1 field"
    );
    assert_eq!(row(late), format!("{late} v1.36.1 pending -"));
    for part in [
        "coredns.addons.k8s.io: Deployment kube-system/coredns: 0 of 1 pods are up to date and available",
        "changed: Deployment kube-system/coredns: spec.template.spec.priorityClassName",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }

    api.set_failure(500);
    let failed = get(&[]);
    assert!(failed.err.contains("hint:"), "{}", failed.err);
}
