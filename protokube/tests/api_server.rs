//! Addons on a real API server: it accepts every object, a second round changes nothing, and an addon that leaves the list is
//! removed. Also checks what the tokens of flannel's, calico's and cilium's pods on a worker may do, and what a kubelet may.
#![cfg(test)]

#[path = "support/control_plane.rs"]
mod control_plane;
#[path = "support/signer.rs"]
mod signer;
#[path = "support/store.rs"]
mod store;

use aws_client::store::{Expect, Store};
use cloud::ObjectContent;
use control_plane::ControlPlane;
use full::addons::{Addon, make_addons};
use full::objects::addon_objects;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Node, Pod, Secret, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use protokube_role::log::RoleLog;
use protokube_role::signed_objects::SignedObjects;
use serde_json::{Value, json};
use signer::put_signed;
use std::time::Duration;
use store::store_in;
use test_support::expanded_with;

const CLUSTER: &str = "a.example.com";

fn addons_with_networking(networking: &Value) -> Vec<Addon> {
    let expanded = expanded_with(|cluster, _| {
        cluster.spec.networking = serde_json::from_value(networking.clone()).unwrap();
    });
    make_addons(&expanded.full).unwrap()
}

async fn store_addons(store: &Store, addons: &[Addon]) {
    for object in addon_objects(addons).unwrap() {
        match object.content {
            ObjectContent::Signed(text) => put_signed(store, CLUSTER, &object.key, &text).await,
            ObjectContent::Text(text) => {
                let put = store.put(&object.key, text.as_bytes().to_vec(), Expect::Any);
                put.await.unwrap();
            }
            ObjectContent::Hidden(_) | ObjectContent::Sha256(_) => panic!("{}", object.key),
        }
    }
}

/// Runs the role addons.
async fn keep_addons_forever(client: Client, store: Store) -> anyhow::Result<()> {
    let signed = SignedObjects::new(&store, CLUSTER);
    protokube::addons::keep_addons(client, signed, RoleLog::for_role("addons")).await
}

/// Waits until the record has exactly these addons as applied.
async fn wait_for_applied(client: &Client, addons: &[Addon]) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let wanted: Vec<(&str, &str)> = addons
        .iter()
        .map(|addon| (addon.name.as_str(), addon.sha256.as_str()))
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

/// Stores these addons and runs the role until all of them are applied.
async fn apply_addons(plane: &ControlPlane, admin: &Client, addons: &[Addon]) {
    let store = store_in(&plane.folder.path().join("store")).await;
    store_addons(&store, addons).await;
    let running = tokio::spawn(keep_addons_forever(admin.clone(), store));
    wait_for_applied(admin, addons).await;
    running.abort();
}

#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn a_real_api_server_takes_every_object_as_it_is() {
    let plane = ControlPlane::start();
    let client = plane.client_for_user("protokube", "system:masters");
    let store = store_in(&plane.folder.path().join("store")).await;
    let flannel = addons_with_networking(&json!({"flannel": {}}));
    store_addons(&store, &flannel).await;
    // The role starts before the API server and waits.
    let running = tokio::spawn(keep_addons_forever(client.clone(), store.clone()));
    wait_for_applied(&client, &flannel).await;

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
        [
            "kube-flannel-ds",
            "aws-cloud-controller-manager",
            "ebs-csi-node"
        ]
    );
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let before = deployments.get("coredns").await.unwrap();
    assert_eq!(
        before.spec.unwrap().replicas,
        Some(1),
        "the default: nobody of ours sets it"
    );

    // The user's own network addon replaces the built-in one. A restarted role continues from the record.
    running.abort();
    let cni = addons_with_networking(&json!({"cni": {}}));
    store_addons(&store, &cni).await;
    let running = tokio::spawn(keep_addons_forever(client.clone(), store.clone()));
    wait_for_applied(&client, &cni).await;
    assert_eq!(
        names().await,
        ["aws-cloud-controller-manager", "ebs-csi-node"]
    );
    let after = deployments.get("coredns").await.unwrap();
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );
    running.abort();

    // Each other plugin, with what only some of its settings have.
    let calico = json!({"calico": {
        "allowIPForwarding": true, "bpfEnabled": true, "prometheusMetricsEnabled": true,
        "typhaPrometheusMetricsEnabled": true, "typhaReplicas": 2,
    }});
    let plugins = [
        (calico, "calico-node"),
        (json!({"cilium": {"enableNodePort": true}}), "cilium"),
        (json!({"amazonvpc": {}}), "aws-node"),
        (json!({"kuberouter": {}}), "kube-router"),
        (json!({"kindnet": {}}), "kindnet"),
    ];
    for (networking, name) in plugins {
        let addons = addons_with_networking(&networking);
        store_addons(&store, &addons).await;
        let running = tokio::spawn(keep_addons_forever(client.clone(), store.clone()));
        wait_for_applied(&client, &addons).await;
        assert!(names().await.contains(&name.to_owned()), "{name}");
        running.abort();
    }
}

#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn a_kubelet_makes_its_node_with_the_taint_that_the_cloud_controller_manager_takes_away() {
    let plane = ControlPlane::start();
    let admin = plane.client_for_user("protokube", "system:masters");
    let mut policy = addons_with_networking(&json!({"cni": {}}));
    policy.retain(|addon| addon.name == "node-registration.kctl.dev");
    apply_addons(&plane, &admin, &policy).await;

    let [own, other] = NODES;
    let kubelet = plane.client_for_user(&format!("system:node:{own}"), "system:nodes");
    let nodes: Api<Node> = Api::all(kubelet);
    let node = |name: &str, taints: Value| -> Node {
        let node = json!({"metadata": {"name": name}, "spec": {"taints": taints}});
        serde_json::from_value(node).unwrap()
    };
    let key = "node.cloudprovider.kubernetes.io/uninitialized";
    // The API server enforces a new policy with a delay, so dry runs are sent until then.
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let bare = node(own, json!(null));
    wait_until("a Node without the taint is refused", || async {
        nodes.create(&dry, &bare).await.is_err()
    })
    .await;
    for taints in [
        json!(null),
        json!([]),
        json!([{"key": "mine", "effect": "NoSchedule"}]),
        json!([{"key": key, "effect": "PreferNoSchedule"}]),
    ] {
        let refused = nodes
            .create(&PostParams::default(), &node(own, taints))
            .await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(key), "{refused}");
    }
    let taints = json!([{"key": "mine", "effect": "NoSchedule"}, {"key": key, "value": "true", "effect": "NoSchedule"}]);
    let made = nodes
        .create(&PostParams::default(), &node(own, taints))
        .await;
    made.unwrap();
    // Other users are not limited.
    let all: Api<Node> = Api::all(admin);
    let bare = node(other, json!(null));
    all.create(&PostParams::default(), &bare).await.unwrap();
}

/// The proxy of a node asks with kubelet's certificate (`nodeup/src/api_proxy/list.rs`).
#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn a_kubelet_may_read_who_the_api_servers_are_in_endpoints_only() {
    let plane = ControlPlane::start();
    let [own, _] = NODES;
    let kubelet = plane.client_for_user(&format!("system:node:{own}"), "system:nodes");
    let endpoints: Api<Endpoints> = Api::namespaced(kubelet.clone(), "default");
    // There are none of an API server on loopback: not to be found is not to be forbidden.
    wait_until("Endpoints may be read", || async {
        endpoints.get_opt("kubernetes").await.is_ok()
    })
    .await;
    let slices: Api<EndpointSlice> = Api::namespaced(kubelet, "default");
    let refused = slices.get_opt("kubernetes").await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.code == 403),
        "{refused:?}"
    );
}

/// Names of two workers.
const NODES: [&str; 2] = ["i-0123456789abcdef0", "i-0123456789abcdef1"];

/// Waits until the condition holds.
async fn wait_until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("it never came to that: {what}");
}

/// Creates Nodes as after joining, and a client with the token of this account's pod on the first one.
async fn client_of_pod(
    plane: &ControlPlane,
    admin: &Client,
    (namespace, account): (&str, &str),
) -> Client {
    let nodes: Api<Node> = Api::all(admin.clone());
    for name in NODES {
        let node = json!({"metadata": {"name": name, "annotations": {"mine": "kept"}}});
        let node = serde_json::from_value(node).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "172.20.1.7"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }});
        patch_node_status(&nodes, name, &status).await.unwrap();
    }
    let pods: Api<Pod> = Api::namespaced(admin.clone(), namespace);
    let pod = json!({
        "metadata": {"name": "agent"},
        "spec": {
            "serviceAccountName": account,
            "nodeName": NODES[0],
            "containers": [{"name": "a", "image": "a"}],
        },
    });
    let pod = serde_json::from_value(pod).unwrap();
    let pod = pods.create(&PostParams::default(), &pod).await.unwrap();
    let bound = json!({"spec": {"audiences": [], "boundObjectRef": {
        "apiVersion": "v1", "kind": "Pod", "name": "agent", "uid": pod.metadata.uid,
    }}});
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
    let wanted: TokenRequest = serde_json::from_value(bound).unwrap();
    let token = accounts
        .create_token_request(account, &PostParams::default(), &wanted)
        .await
        .unwrap();
    plane.client_with_token(&token.status.unwrap().token.unwrap())
}

/// Patches a Node's status as an agent does; returns the error message if refused.
async fn patch_node_status(nodes: &Api<Node>, name: &str, patch: &Value) -> Result<(), String> {
    let parameters = PatchParams::default();
    let answer = nodes
        .patch_status(name, &parameters, &Patch::Strategic(patch))
        .await;
    answer.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn the_token_of_a_workers_flannel_does_what_flannel_does_and_nothing_else() {
    let plane = ControlPlane::start();
    let admin = plane.client_for_user("protokube", "system:masters");
    let flannel = addons_with_networking(&json!({"flannel": {}}));
    apply_addons(&plane, &admin, &flannel).await;
    let thief = client_of_pod(&plane, &admin, ("kube-flannel", "flannel")).await;
    let nodes: Api<Node> = Api::all(thief.clone());
    let [own, other] = NODES;

    // The API server enforces a new policy with a delay. A patch without a change would be accepted.
    let mut number = 0;
    let another = || {
        number += 1;
        json!({"metadata": {"labels": {"probe": number.to_string()}}})
    };
    let mut probes = std::iter::repeat_with(another);
    wait_until("its own label is refused", || {
        let probe = probes.next().unwrap();
        let nodes = &nodes;
        async move { patch_node_status(nodes, own, &probe).await.is_err() }
    })
    .await;
    let role = json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}});
    let ip =
        |ip: &str| json!({"metadata": {"annotations": {"flannel.alpha.coreos.com/public-ip": ip}}});
    let condition = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    let address =
        json!({"status": {"addresses": [{"type": "InternalIP", "address": "172.20.1.99"}]}});
    for (node, change) in [
        (own, role.clone()),
        (other, role.clone()),
        (own, json!({"metadata": {"annotations": {"mine": "not"}}})),
        (own, json!({"metadata": {"annotations": {"mine": null}}})),
        (own, json!({"metadata": {"annotations": {"other": "new"}}})),
        (own, json!({"metadata": {"finalizers": ["a/b"]}})),
        (own, condition("Ready", "False")),
        (own, condition("MemoryPressure", "True")),
        (own, address),
        (own, json!({"status": {"capacity": {"cpu": "1000"}}})),
        (other, ip("172.20.1.7")),
        (other, condition("Ready", "False")),
        (other, condition("NetworkUnavailable", "False")),
    ] {
        let before = nodes.get(node).await.unwrap();
        let refused = patch_node_status(&nodes, node, &change).await.unwrap_err();
        assert!(
            refused.contains("flannel may change"),
            "{change}: {refused}"
        );
        assert_eq!(nodes.get(node).await.unwrap(), before);
    }
    // The patch that flanneld sends.
    patch_node_status(&nodes, own, &ip("172.20.1.7"))
        .await
        .unwrap();
    patch_node_status(&nodes, own, &condition("NetworkUnavailable", "False"))
        .await
        .unwrap();
    patch_node_status(&nodes, own, &ip("172.20.1.8"))
        .await
        .unwrap();
    // Other users are not limited.
    let all: Api<Node> = Api::all(admin.clone());
    patch_node_status(&all, other, &role).await.unwrap();

    let secrets: Api<Secret> = Api::all(thief);
    let refused = secrets.list(&ListParams::default()).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403),
        "{refused}"
    );
}

/// Patches a pod's status as the CNI plugin does; returns the error message if refused.
async fn patch_pod_status(pods: &Api<Pod>, name: &str, patch: &Value) -> Result<(), String> {
    let parameters = PatchParams::default();
    let answer = pods
        .patch_status(name, &parameters, &Patch::Strategic(patch))
        .await;
    answer.map(drop).map_err(|error| error.to_string())
}

/// Requests a token for calico's CNI plugin as calico-node does; returns the error message if refused.
async fn request_plugin_token(client: &Client, wanted: &Value) -> Result<String, String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "kube-system");
    let wanted: TokenRequest = serde_json::from_value(json!({ "spec": wanted })).unwrap();
    let answer = accounts
        .create_token_request("calico-cni-plugin", &PostParams::default(), &wanted)
        .await;
    let token = answer.map_err(|error| error.to_string())?;
    Ok(token.status.unwrap().token.unwrap())
}

/// An API server with calico's objects, an administrator's client, and one with the token of calico's agent on the first Node.
async fn plane_with_calico() -> (ControlPlane, Client, Client) {
    let plane = ControlPlane::start();
    let admin = plane.client_for_user("protokube", "system:masters");
    let calico = addons_with_networking(&json!({"calico": {}}));
    apply_addons(&plane, &admin, &calico).await;
    let thief = client_of_pod(&plane, &admin, ("kube-system", "calico-node")).await;
    (plane, admin, thief)
}

#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn the_token_of_a_workers_calico_changes_of_nodes_what_calico_does_and_nothing_else() {
    let (_plane, _, thief) = plane_with_calico().await;
    let nodes: Api<Node> = Api::all(thief.clone());
    let [own, other] = NODES;

    // The API server enforces a new policy with a delay. A patch without a change would be accepted.
    let mut number = 0;
    let another = || {
        number += 1;
        json!({"metadata": {"annotations": {"probe": number.to_string()}}})
    };
    let mut probes = std::iter::repeat_with(another);
    wait_until("another Node's annotation is refused", || {
        let probe = probes.next().unwrap();
        let nodes = &nodes;
        async move { patch_node_status(nodes, other, &probe).await.is_err() }
    })
    .await;
    let condition = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    let label = json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}});
    let address =
        json!({"status": {"addresses": [{"type": "InternalIP", "address": "172.20.1.99"}]}});
    let own_address =
        json!({"metadata": {"annotations": {"projectcalico.org/IPv4Address": "172.20.1.9/19"}}});
    for (node, change) in [
        (own, label.clone()),
        (own, json!({"metadata": {"annotations": {"mine": "not"}}})),
        (own, json!({"metadata": {"annotations": {"mine": null}}})),
        (own, json!({"metadata": {"annotations": {"other": "new"}}})),
        (own, json!({"metadata": {"finalizers": ["a/b"]}})),
        (own, condition("Ready", "False")),
        (own, condition("MemoryPressure", "True")),
        (own, address),
        (own, json!({"status": {"capacity": {"cpu": "1000"}}})),
        (other, label),
        (other, own_address),
        (other, condition("NetworkUnavailable", "False")),
    ] {
        let before = nodes.get(node).await.unwrap();
        let refused = patch_node_status(&nodes, node, &change).await.unwrap_err();
        assert!(
            refused.contains("calico-node may change"),
            "{change}: {refused}"
        );
        assert_eq!(nodes.get(node).await.unwrap(), before);
    }
    // What an agent writes: the condition, and, with the Node as it was read, its address.
    let reachable = condition("NetworkUnavailable", "False");
    patch_node_status(&nodes, own, &reachable).await.unwrap();
    let mut node = nodes.get(own).await.unwrap();
    let annotations = node.metadata.annotations.get_or_insert_default();
    let name = "projectcalico.org/IPv4Address";
    annotations.insert(name.to_owned(), "172.20.1.7/19".to_owned());
    let parameters = PostParams::default();
    let written = nodes.replace_status(own, &parameters, &node).await.unwrap();
    assert!(written.metadata.annotations.unwrap().contains_key(name));

    let forbidden = |error: kube::Error| match error {
        kube::Error::Api(status) => status.code == 403,
        _ => false,
    };
    let secrets: Api<Secret> = Api::all(thief.clone());
    let refused = secrets.list(&ListParams::default()).await.unwrap_err();
    assert!(forbidden(refused));
    let maps: Api<ConfigMap> = Api::namespaced(thief, "kube-system");
    assert!(forbidden(maps.get("calico-config").await.unwrap_err()));
    // There is none: an agent looks for it.
    assert!(maps.get_opt("kubeadm-config").await.unwrap().is_none());
}

#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn the_tokens_of_a_workers_calico_change_of_pods_their_addresses_and_last_a_day() {
    let (plane, admin, thief) = plane_with_calico().await;
    let day = json!({"audiences": [], "expirationSeconds": 86_400});
    let week = json!({"audiences": [], "expirationSeconds": 604_800});
    let elsewhere = json!({"audiences": ["sts.amazonaws.com"], "expirationSeconds": 3600});
    wait_until("a token for a week is refused", || async {
        request_plugin_token(&thief, &week).await.is_err()
    })
    .await;
    for wanted in [week, elsewhere] {
        let refused = request_plugin_token(&thief, &wanted).await.unwrap_err();
        assert!(
            refused.contains("calico-node may request tokens for"),
            "{refused}"
        );
    }
    let token = request_plugin_token(&thief, &day).await.unwrap();
    let plugin = plane.client_with_token(&token);

    let all: Api<Pod> = Api::namespaced(admin, "kube-system");
    let foreign = json!({
        "metadata": {"name": "foreign", "annotations": {"mine": "kept"}},
        "spec": {"nodeName": NODES[1], "serviceAccountName": "calico-node", "containers": [{"name": "a", "image": "a"}]},
    });
    let foreign: Pod = serde_json::from_value(foreign).unwrap();
    all.create(&PostParams::default(), &foreign).await.unwrap();
    let [agents, plugins] =
        [thief, plugin].map(|client| Api::<Pod>::namespaced(client, "kube-system"));
    let address = |address: &str| {
        let name = "cni.projectcalico.org/podIP";
        json!({"metadata": {"annotations": {name: address}}})
    };
    let mut number = 0;
    let another = || {
        number += 1;
        json!({"metadata": {"labels": {"probe": number.to_string()}}})
    };
    let mut probes = std::iter::repeat_with(another);
    wait_until("a label of a pod is refused", || {
        let probe = probes.next().unwrap();
        let plugins = &plugins;
        async move { patch_pod_status(plugins, "agent", &probe).await.is_err() }
    })
    .await;
    for change in [
        json!({"metadata": {"labels": {"app": "database"}}}),
        json!({"metadata": {"finalizers": ["a/b"]}}),
        json!({"metadata": {"annotations": {"mine": "not"}}}),
        json!({"metadata": {"annotations": {"cni.projectcalico.org/allowedSourcePrefixes": "[\"10.0.0.0/8\"]"}}}),
        json!({"status": {"podIP": "100.96.0.9"}}),
        json!({"status": {"phase": "Succeeded"}}),
    ] {
        for pods in [&agents, &plugins] {
            for pod in ["agent", "foreign"] {
                let refused = patch_pod_status(pods, pod, &change).await.unwrap_err();
                assert!(refused.contains("may change"), "{change}: {refused}");
            }
        }
    }
    // What the CNI plugin writes. Its token is of no node.
    patch_pod_status(&agents, "agent", &address("100.96.0.7/32"))
        .await
        .unwrap();
    for pod in ["agent", "foreign"] {
        for written in ["100.96.0.8/32", ""] {
            patch_pod_status(&plugins, pod, &address(written))
                .await
                .unwrap();
        }
    }
    let refused = patch_pod_status(&agents, "foreign", &address("100.96.0.9/32")).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("calico-node may change only"), "{refused}");
}

#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn the_token_of_a_workers_vpc_cni_annotates_pods_of_its_node_only() {
    let plane = ControlPlane::start();
    let admin = plane.client_for_user("protokube", "system:masters");
    let settings = json!([{"name": "ANNOTATE_POD_IP", "value": "true"}]);
    let plugin = addons_with_networking(&json!({"amazonvpc": {"env": settings}}));
    apply_addons(&plane, &admin, &plugin).await;
    let thief = client_of_pod(&plane, &admin, ("kube-system", "aws-node")).await;
    let all: Api<Pod> = Api::namespaced(admin.clone(), "kube-system");
    for (name, node) in ["own", "other"].into_iter().zip(NODES) {
        let pod = json!({
            "metadata": {"name": name, "annotations": {"mine": "kept"}},
            "spec": {
                "nodeName": node,
                "serviceAccountName": "aws-node",
                "containers": [{"name": "a", "image": "a"}],
            },
        });
        let pod = serde_json::from_value(pod).unwrap();
        all.create(&PostParams::default(), &pod).await.unwrap();
    }
    let pods: Api<Pod> = Api::namespaced(thief, "kube-system");
    let patch = |name: &'static str, change: Value| {
        let pods = &pods;
        async move {
            let change = Patch::Strategic(&change);
            let answer = pods.patch(name, &PatchParams::default(), &change).await;
            answer.map(drop).map_err(|error| error.to_string())
        }
    };
    let annotation = |name: &str, value: &str| json!({"metadata": {"annotations": {name: value}}});
    let address = |value: &str| annotation("vpc.amazonaws.com/pod-ips", value);
    // The API server enforces a new policy with a delay. A patch without a change would be accepted.
    let mut number = 0;
    wait_until("a pod of another node is refused", || {
        number += 1;
        let refused = patch("other", address(&format!("172.20.1.{number}")));
        async { refused.await.is_err() }
    })
    .await;
    for change in [
        annotation("mine", "stolen"),
        json!({"metadata": {"labels": {"app": "victim"}}}),
        json!({"spec": {"containers": [{"name": "a", "image": "b"}]}}),
    ] {
        let refused = patch("own", change).await.unwrap_err();
        assert!(
            refused.contains("may change only the annotation"),
            "{refused}"
        );
    }
    patch("own", address("172.20.1.9")).await.unwrap();
    patch(
        "own",
        json!({"metadata": {"annotations": {"vpc.amazonaws.com/pod-ips": null}}}),
    )
    .await
    .unwrap();
}

/// Defines a kind of cilium's, with whatever fields, and waits until it is served.
async fn define_cilium_kind(
    admin: &Client,
    (kind, plural, scope): (&str, &str, &str),
    subresources: Value,
) -> ApiResource {
    let definition = json!({
        "metadata": {"name": format!("{plural}.cilium.io")},
        "spec": {
            "group": "cilium.io",
            "names": {"kind": kind, "plural": plural},
            "scope": scope,
            "versions": [{
                "name": "v2", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let definition = serde_json::from_value(definition).unwrap();
    let all: Api<CustomResourceDefinition> = Api::all(admin.clone());
    all.create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let named = GroupVersionKind::gvk("cilium.io", "v2", kind);
    let resource = ApiResource::from_gvk_with_plural(&named, plural);
    let objects: Api<DynamicObject> = Api::all_with(admin.clone(), &resource);
    wait_until("the kind is served", || async {
        objects.list(&ListParams::default()).await.is_ok()
    })
    .await;
    resource
}

/// An object with these fields of the resource's kind.
fn object(resource: &ApiResource, name: &str, fields: Value) -> DynamicObject {
    let object = DynamicObject::new(name, resource);
    DynamicObject {
        data: fields,
        ..object
    }
}

/// Sets a field at a JSON pointer, with what is missing on the way.
fn with_field(object: &DynamicObject, pointer: &str, value: &Value) -> DynamicObject {
    let mut object = object.clone();
    let mut at = &mut object.data;
    for name in pointer.split('/') {
        at = &mut at[name];
    }
    *at = value.clone();
    object
}

/// The ranges that an agent uses.
fn allocated(ranges: &[&str]) -> Value {
    json!([{"pool": "default", "cidrs": ranges}])
}

/// The addresses of a CiliumNode.
fn node_addresses(internal: &str) -> Value {
    json!([{"type": "InternalIP", "ip": "172.20.1.7"}, {"type": "CiliumInternalIP", "ip": internal}])
}

/// What an agent asks the operator for or says of addresses, in its own CiliumNode.
async fn expect_fields_refused(nodes: &Api<DynamicObject>, mine: &DynamicObject) {
    let [own, other] = NODES;
    let create = PostParams::default();
    for (field, value) in [
        ("spec/instance-id", json!(other)),
        ("spec/eni/security-groups", json!(["sg-1"])),
        ("spec/eni/security-group-tags", json!({"Name": "masters"})),
        ("spec/eni/subnet-ids", json!(["subnet-2"])),
        ("spec/eni/subnet-tags", json!({"Name": "databases"})),
        ("spec/eni/node-subnet-id", json!("subnet-2")),
        ("spec/eni/vpc-id", json!("vpc-2")),
        ("spec/eni/availability-zone", json!("eu-west-1b")),
        ("spec/ipam/static-ip-tags", json!({"Name": "front"})),
        ("spec/ipam/podCIDRs", json!(["172.20.1.20/32"])),
        ("spec/ipam/pools/allocated", allocated(&["172.20.1.20/32"])),
        ("spec/ipam/pools/allocated", allocated(&["172.20.0.0/16"])),
        ("spec/addresses", node_addresses("172.20.1.20")),
        (
            "spec/addresses",
            json!([{"type": "InternalIP", "ip": "172.20.1.20"}]),
        ),
        ("spec/health/ipv4", json!("172.20.1.20")),
        ("spec/ingress", json!({"ipv4": "172.20.1.20"})),
    ] {
        let wrong = with_field(mine, field, &value);
        let refused = nodes.replace(own, &create, &wrong).await;
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("cilium.networking.kctl.dev"),
            "{field}: {refused}"
        );
    }
}

/// Of CiliumEndpoints, the agent writes those with addresses that the operator gave its instance.
async fn expect_own_endpoints_only(admin: Client, agent: Client, endpoint_kind: &ApiResource) {
    let create = PostParams::default();
    let all_endpoints: Api<DynamicObject> = Api::namespaced_with(admin, "default", endpoint_kind);
    let endpoints: Api<DynamicObject> = Api::namespaced_with(agent, "default", endpoint_kind);
    let endpoint = |name: &str, pair: Value| {
        let networking = json!({"addressing": [pair], "node": "172.20.1.7"});
        let status = json!({"status": {"networking": networking}});
        object(endpoint_kind, name, status)
    };
    let mine = endpoint("mine", json!({"ipv4": "172.20.1.11"}));
    wait_until("a pod of its own is told", || async {
        endpoints.create(&create, &mine).await.is_ok()
    })
    .await;
    for pair in [
        json!({"ipv4": "172.20.1.20"}),
        json!({"ipv4": "172.20.1.7"}),
        json!({"ipv4": "10.9.9.9"}),
        json!({"ipv6": "fd00::1"}),
    ] {
        let refused = endpoints.create(&create, &endpoint("wrong", pair)).await;
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("endpoints.cilium.networking.kctl.dev"),
            "{refused}"
        );
    }
    let theirs = endpoint("theirs", json!({"ipv4": "172.20.1.20"}));
    all_endpoints.create(&create, &theirs).await.unwrap();
    let taken = json!({"status": {"networking": {"addressing": [{"ipv4": "172.20.1.11"}]}}});
    let merge = Patch::Merge(&taken);
    let parameters = PatchParams::default();
    let patched = endpoints.patch("theirs", &parameters, &merge).await;
    let deleted = endpoints.delete("theirs", &DeleteParams::default()).await;
    for refused in [
        patched.map(drop).unwrap_err(),
        deleted.map(drop).unwrap_err(),
    ] {
        let refused = refused.to_string();
        assert!(refused.contains("network interfaces"), "{refused}");
    }
    endpoints
        .delete("mine", &DeleteParams::default())
        .await
        .unwrap();
}

/// The addon cilium with these settings in a new control plane; the administrator, the agent of a worker, and the kinds CiliumNode and
/// CiliumEndpoint.
async fn start_cilium(settings: &Value) -> (ControlPlane, [Client; 2], [ApiResource; 2]) {
    let plane = ControlPlane::start();
    let admin = plane.client_for_user("protokube", "system:masters");
    let nodes: Api<Node> = Api::all(admin.clone());
    wait_until("the API server answers", || async {
        nodes.list(&ListParams::default()).await.is_ok()
    })
    .await;
    let with_status = json!({"status": {}});
    let kind = ("CiliumNode", "ciliumnodes", "Cluster");
    let node_kind = define_cilium_kind(&admin, kind, with_status).await;
    let kind = ("CiliumEndpoint", "ciliumendpoints", "Namespaced");
    let endpoint_kind = define_cilium_kind(&admin, kind, Value::Null).await;
    let mut cilium = addons_with_networking(&json!({"cilium": settings}));
    cilium.retain(|addon| addon.name == "networking.cilium.io");
    apply_addons(&plane, &admin, &cilium).await;
    let agent = client_of_pod(&plane, &admin, ("kube-system", "cilium")).await;
    (plane, [admin, agent], [node_kind, endpoint_kind])
}

/// Where pods have addresses of the VPC: what the operator acts on in EC2, and which addresses are whose.
#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn the_token_of_a_workers_cilium_asks_for_interfaces_of_its_own_instance_only() {
    let settings = json!({"ipam": "eni"});
    let (_plane, [admin, agent], [node_kind, endpoint_kind]) = start_cilium(&settings).await;
    let [own, other] = NODES;
    let create = PostParams::default();

    // What the operator says of another Node.
    let all_nodes: Api<DynamicObject> = Api::all_with(admin.clone(), &node_kind);
    let nodes: Api<DynamicObject> = Api::all_with(agent.clone(), &node_kind);
    let interfaces = |id: &str, addresses: &[&str], prefixes: &[&str]| json!({"eni": {"enis": {id: {"addresses": addresses, "prefixes": prefixes}}}});
    let theirs = object(&node_kind, other, json!({"spec": {"instance-id": other}}));
    let theirs = all_nodes.create(&create, &theirs).await.unwrap();
    let said = interfaces("eni-2", &["172.20.1.20"], &[]);
    let theirs = with_field(&theirs, "status", &said);
    all_nodes
        .replace_status(other, &create, &theirs)
        .await
        .unwrap();

    // An agent makes its CiliumNode when it starts.
    let spec = json!({
        "instance-id": own,
        "addresses": [{"type": "InternalIP", "ip": "172.20.1.7"}],
        "eni": {
            "vpc-id": "vpc-1", "availability-zone": "eu-west-1a", "node-subnet-id": "subnet-1", "first-interface-index": 0,
        },
        "ipam": {"pools": {"requested": [{"pool": "default", "needed": {"ipv4-addrs": 8}}]}},
    });
    let mine = object(&node_kind, own, json!({"spec": spec}));
    let of_other = with_field(&mine, "spec/instance-id", &json!(other));
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    wait_until("another instance is refused", || async {
        let answer = nodes.create(&dry, &of_other).await;
        answer.is_err_and(|error| error.to_string().contains("of the instance"))
    })
    .await;
    let early = with_field(
        &mine,
        "spec/ipam/pools/allocated",
        &allocated(&["172.20.1.10/32"]),
    );
    nodes.create(&dry, &early).await.unwrap_err();
    let mine = nodes.create(&create, &mine).await.unwrap();

    // Then it says that it uses what the operator gave it.
    let addresses = ["172.20.1.10", "172.20.1.11", "172.20.2.1"];
    let said = interfaces("eni-1", &addresses, &["172.20.2.0/28"]);
    let mine = with_field(&mine, "status", &said);
    let refused = nodes.replace_status(own, &create, &mine).await;
    assert!(matches!(refused.unwrap_err(), kube::Error::Api(status) if status.code == 403));
    let mine = all_nodes.replace_status(own, &create, &mine).await.unwrap();
    let used = allocated(&["172.20.1.10/32", "172.20.2.0/28"]);
    let mine = with_field(&mine, "spec/ipam/pools/allocated", &used);
    let mine = with_field(&mine, "spec/health", &json!({"ipv4": "172.20.1.11"}));
    let mine = with_field(&mine, "spec/addresses", &node_addresses("172.20.1.10"));
    let mine = nodes.replace(own, &create, &mine).await.unwrap();

    expect_fields_refused(&nodes, &mine).await;
    let theirs = all_nodes.get(other).await.unwrap();
    let refused = nodes.replace(other, &create, &theirs).await;
    assert!(refused.unwrap_err().to_string().contains("its pod runs on"));
    // Nothing of it has changed since.
    nodes.replace(own, &create, &mine).await.unwrap();

    expect_own_endpoints_only(admin, agent, &endpoint_kind).await;
}

/// Of CiliumEndpoints, the agent writes those with addresses of its Node's ranges.
async fn expect_endpoints_of_the_range_only(agent: Client, endpoint_kind: &ApiResource) {
    let create = PostParams::default();
    let endpoints: Api<DynamicObject> = Api::namespaced_with(agent, "default", endpoint_kind);
    let endpoint = |name: &str, pair: Value| {
        let status = json!({"status": {"networking": {"addressing": [pair]}}});
        object(endpoint_kind, name, status)
    };
    for (name, pair) in [
        ("six", json!({"ipv6": "fd00:1::5"})),
        ("four", json!({"ipv4": "100.96.1.5"})),
        ("both", json!({"ipv6": "fd00:1::6", "ipv4": "100.96.1.6"})),
    ] {
        let made = endpoints.create(&create, &endpoint(name, pair)).await;
        made.unwrap();
    }
    for pair in [
        json!({"ipv6": "fd00:2::5"}),
        json!({"ipv4": "100.96.2.5"}),
        json!({"ipv6": "fd00:1::7", "ipv4": "100.96.2.7"}),
    ] {
        let refused = endpoints.create(&create, &endpoint("wrong", pair)).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("ranges.cilium"), "{refused}");
    }
}

/// Where pods have addresses of their Node's range, of either family.
#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn the_token_of_a_workers_cilium_says_addresses_of_its_nodes_range_only() {
    let (_plane, [admin, agent], [node_kind, endpoint_kind]) = start_cilium(&json!({})).await;
    let create = PostParams::default();
    let all: Api<Node> = Api::all(admin.clone());
    let of_nodes = [
        ["fd00:1::/80", "100.96.1.0/24"],
        ["fd00:2::/80", "100.96.2.0/24"],
    ];
    for (name, ranges) in NODES.into_iter().zip(of_nodes) {
        let ranges = json!({"spec": {"podCIDR": ranges[0], "podCIDRs": ranges}});
        let merge = Patch::Merge(&ranges);
        let patched = all.patch(name, &PatchParams::default(), &merge).await;
        patched.unwrap();
    }

    let nodes: Api<DynamicObject> = Api::all_with(agent.clone(), &node_kind);
    let addresses = |instance: &str, internal: &str| {
        json!([
            {"type": "InternalIP", "ip": "172.20.1.7"},
            {"type": "InternalIP", "ip": instance},
            {"type": "CiliumInternalIP", "ip": internal},
        ])
    };
    let spec = json!({
        "addresses": addresses("2600:1::7", "fd00:1::1"),
        "health": {"ipv4": "100.96.1.9", "ipv6": "fd00:1::9"},
        "ipam": {"podCIDRs": of_nodes[0]},
    });
    let mine = object(&node_kind, NODES[0], json!({"spec": spec}));
    let of_other = with_field(&mine, "spec/health/ipv6", &json!("fd00:2::9"));
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    wait_until("addresses of another range are refused", || async {
        let answer = nodes.create(&dry, &of_other).await;
        answer.is_err_and(|error| error.to_string().contains("of the range of its Node"))
    })
    .await;
    let mine = nodes.create(&create, &mine).await.unwrap();
    for (field, value) in [
        ("spec/health/ipv4", "100.96.2.9"),
        ("spec/health/ipv6", "fd00:2::9"),
        ("spec/ingress/ipv6", "fd00:2::9"),
    ] {
        let wrong = with_field(&mine, field, &json!(value));
        nodes
            .replace(NODES[0], &create, &wrong)
            .await
            .expect_err(field);
    }
    for (instance, internal) in [
        ("fd00:2::5", "fd00:1::1"),
        ("100.96.2.5", "fd00:1::1"),
        ("2600:1::7", "fd00:2::1"),
    ] {
        let wrong = with_field(&mine, "spec/addresses", &addresses(instance, internal));
        let refused = nodes.replace(NODES[0], &create, &wrong).await;
        refused.expect_err(&format!("{instance} and {internal}"));
    }

    expect_endpoints_of_the_range_only(agent, &endpoint_kind).await;
}
