//! Tests against a real etcd and kube-apiserver: patches, watches and probes work with them as with the fake
//! API server.

use crate::approval::{double_requests, renewal_request, serving_request};
use crate::control_plane::ControlPlane;
use crate::fakes::aws::FakeAws;
use crate::fakes::{INSTANCE, LogLines, NAME, control_plane, running_instance};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::api::PostParams;
use kube::{Api, Client};
use node::pki::trust_bundle;
use protokube::bootstrap::{ApiNodes, NodeLookup};
use protokube::identity::system_clock;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use time::Duration;

/// Waits until the answer is as expected; panics after two minutes.
async fn wait_until<T, F: Future<Output = T>>(
    mut ask: impl FnMut() -> F,
    good: impl Fn(&T) -> bool,
) -> T {
    for _ in 0..600 {
        let answer = ask().await;
        if good(&answer) {
            return answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    panic!("it never came to that");
}

async fn start_health(plane: &ControlPlane) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = listener.local_addr().unwrap();
    let context = protokube::health::HealthContext {
        listen,
        server: plane.url.clone(),
        trust_bundle: trust_bundle(&plane.authority),
        authority: Arc::new(plane.authority.clone()),
        clock: system_clock(),
        validity: Duration::DAY,
        metrics: Arc::new(|| "kctl_metric 1\n".to_owned()),
    };
    tokio::spawn(protokube::health::serve_health_on(context, listener));
    listen
}

#[tokio::test]
#[ignore = "needs a real etcd and kube-apiserver"]
async fn a_real_api_server_takes_approvals_labels_and_probes() {
    let plane = ControlPlane::start();
    let probe = format!("http://{}/readyz", start_health(&plane).await);
    let ask = async || reqwest::get(&probe).await.unwrap().status().as_u16();
    wait_until(ask, |status| *status == 200).await;
    let verbose = probe.replace("readyz", "livez?verbose");
    assert_eq!(reqwest::get(verbose).await.unwrap().status(), 200);

    let (aws, lines) = (FakeAws::default(), LogLines::default());
    aws.lock_state().instances.push(running_instance(INSTANCE));
    let url = aws.start().await;
    let instance = control_plane(&aws, &url).await;
    let admin = plane.client_for_user("protokube", "system:masters");
    let (client, of, log) = (admin.clone(), instance.clone(), lines.new_log());
    tokio::spawn(async move {
        let ended = protokube::approval::approve_requests(client, of, NAME, &log).await;
        panic!("{ended:?}");
    });
    let (client, log) = (admin.clone(), lines.new_log());
    tokio::spawn(async move {
        let ended = protokube::labels::label_nodes(client, instance, NAME, &log).await;
        panic!("{ended:?}");
    });
    let kubelet = plane.client_for_user(&format!("system:node:{INSTANCE}"), "system:nodes");
    check_nodes(&ApiNodes::new(admin.clone()), kubelet.clone()).await;
    check_requests(&Api::all(admin.clone()), &Api::all(kubelet.clone()), &lines).await;
    check_double_requests(&Api::all(admin), &Api::all(kubelet)).await;
}

/// The API server accepts requests that parsers read differently; protokube leaves them pending.
async fn check_double_requests(
    admin: &Api<CertificateSigningRequest>,
    kubelet: &Api<CertificateSigningRequest>,
) {
    let attacks = double_requests(INSTANCE, &["172.20.1.7"], &["kubernetes.default.svc"]);
    for (index, spec) in attacks.iter().enumerate() {
        create_request(kubelet, &format!("csr-attack-{index}"), spec).await;
    }
    create_request(kubelet, "csr-renewal", &renewal_request(INSTANCE)).await;
    let conditions = async |name: &str| {
        let request = admin.get(name).await.unwrap();
        request.status.and_then(|status| status.conditions)
    };
    wait_until(|| conditions("csr-renewal"), Option::is_some).await;
    for index in 0..attacks.len() {
        let name = format!("csr-attack-{index}");
        assert_eq!(conditions(&name).await, None, "{name}");
    }
}

/// Creates a request as kubelet does; the API server adds the user.
async fn create_request(kubelet: &Api<CertificateSigningRequest>, name: &str, spec: &Value) {
    let mut spec = spec.clone();
    let fields = spec.as_object_mut().unwrap();
    fields.retain(|key, _| key != "username" && key != "groups");
    let request = json!({ "metadata": { "name": name }, "spec": spec });
    let request = serde_json::from_value(request).unwrap();
    let parameters = PostParams::default();
    kubelet.create(&parameters, &request).await.unwrap();
}

/// A Node that kubelet creates is labelled and found.
async fn check_nodes(known: &ApiNodes, kubelet: Client) {
    assert!(!known.node_exists(INSTANCE).await.unwrap());
    let nodes: Api<Node> = Api::all(kubelet);
    let node = serde_json::from_value(json!({ "metadata": { "name": INSTANCE } })).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    assert!(known.node_exists(INSTANCE).await.unwrap());
    let labels = async || nodes.get(INSTANCE).await.unwrap().metadata.labels;
    let all = |labels: &Option<BTreeMap<String, String>>| {
        labels.as_ref().is_some_and(|labels| labels.len() == 3)
    };
    assert_eq!(wait_until(labels, all).await.unwrap()["disk"], "fast");
}

/// Of two requests of kubelets only the one that EC2 confirms is approved.
async fn check_requests(
    admin: &Api<CertificateSigningRequest>,
    kubelet: &Api<CertificateSigningRequest>,
    lines: &LogLines,
) {
    for (name, address) in [("csr-good", "172.20.1.7"), ("csr-bad", "172.20.1.8")] {
        create_request(kubelet, name, &serving_request(INSTANCE, &[address])).await;
    }
    let conditions = async |name: &str| {
        let request = admin.get(name).await.unwrap();
        request.status.and_then(|status| status.conditions)
    };
    let approved = wait_until(|| conditions("csr-good"), Option::is_some).await;
    assert_eq!(approved.unwrap()[0].type_, "Approved");
    let read_log = async || lines.all_text();
    wait_until(read_log, |text| text.contains("csr-bad of")).await;
    assert_eq!(conditions("csr-bad").await, None);
}
