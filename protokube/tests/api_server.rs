//! The addons against a real API server: every object is taken as it is, a second look changes nothing, and an addon that leaves the
//! list is removed.
#![cfg(test)]

#[path = "support/control_plane.rs"]
mod control_plane;
#[path = "support/store.rs"]
mod store;
#[path = "../../model/tests/support/mod.rs"]
mod support;

use aws::store::{Expect, Store};
use control_plane::ControlPlane;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams};
use model::addons::{Addon, addons};
use model::cloud::ObjectContent;
use model::cloud::build::addon_objects;
use serde_json::{Value, json};
use std::time::Duration;
use store::store_in;
use support::expanded_with;

fn with(networking: &Value) -> Vec<Addon> {
    let expanded = expanded_with(|cluster, _| {
        cluster.spec.networking = serde_json::from_value(networking.clone()).unwrap();
    });
    addons(&expanded).unwrap()
}

async fn want(store: &Store, addons: &[Addon]) {
    for object in addon_objects(addons).unwrap() {
        let ObjectContent::Text(text) = object.content else {
            panic!("{}", object.key);
        };
        store
            .put(&object.key, text.into_bytes(), Expect::Any)
            .await
            .unwrap();
    }
}

/// Waits until the record says that exactly these addons are applied.
async fn applied(client: &Client, addons: &[Addon]) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let wanted: Vec<(&str, &str)> = addons
        .iter()
        .map(|addon| (addon.name, addon.sha256.as_str()))
        .collect();
    let wait = async {
        loop {
            let record = maps
                .get("kctl-addons")
                .await
                .ok()
                .and_then(|map| map.data)
                .unwrap_or_default();
            let done = record.len() == wanted.len()
                && wanted.iter().all(|(name, sha256)| {
                    record
                        .get(*name)
                        .is_some_and(|entry| entry.contains(sha256))
                });
            if done {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(5), wait)
        .await
        .expect("applied addons");
}

#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn a_real_api_server_takes_every_object_as_it_is() {
    let plane = ControlPlane::start();
    let client = plane.client("protokube", "system:masters");
    let store = store_in(&plane.folder.path().join("store")).await;
    let flannel = with(&json!({"flannel": {}}));
    want(&store, &flannel).await;
    // It is there before the API server is, and waits.
    let running = tokio::spawn(protokube::addons::run(client.clone(), store.clone()));
    applied(&client, &flannel).await;

    let sets: Api<DaemonSet> = Api::all(client.clone());
    let names = async || -> Vec<String> {
        let found = sets.list(&ListParams::default()).await.unwrap();
        found
            .items
            .into_iter()
            .filter_map(|one| one.metadata.name)
            .collect()
    };
    assert_eq!(
        names().await,
        ["kube-flannel-ds", "aws-cloud-controller-manager"]
    );
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let before = deployments.get("coredns").await.unwrap();
    assert_eq!(
        before.spec.unwrap().replicas,
        Some(1),
        "the default: nobody of ours sets it"
    );

    // The network is the user's own now. Who starts anew goes on from the record.
    running.abort();
    let cni = with(&json!({"cni": {}}));
    want(&store, &cni).await;
    let running = tokio::spawn(protokube::addons::run(client.clone(), store));
    applied(&client, &cni).await;
    assert_eq!(names().await, ["aws-cloud-controller-manager"]);
    let after = deployments.get("coredns").await.unwrap();
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );
    running.abort();
}
