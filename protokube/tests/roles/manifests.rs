//! Manifests are written in order, each once its dependencies are healthy.

use crate::test_host::{TestHost, node_config};
use node::manifests::{Pod, manifest_path};
use protokube::manifests::{HealthGates, write_manifests};
use protokube_role::log::RoleLog;
use protokube_role::probe::Probe;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A server that answers every request with one status; with 0 it disconnects.
struct HealthServer {
    url: String,
    status: Arc<AtomicU16>,
}

impl HealthServer {
    async fn new(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(AtomicU16::new(status));
        let status = Arc::clone(&shared);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let status = shared.load(Ordering::Relaxed);
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                if status > 0 {
                    let answer = format!(
                        "HTTP/1.1 {status} X\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody"
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            }
        });
        Self { url, status }
    }

    fn set_status(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }
}

struct FakeServices {
    kubelet: HealthServer,
    etcd: [HealthServer; 2],
    health: HealthServer,
    settled: watch::Sender<BTreeMap<String, bool>>,
}

impl FakeServices {
    /// A host on which nothing is healthy yet.
    async fn new() -> (Self, HealthGates) {
        let services = Self {
            kubelet: HealthServer::new(0).await,
            etcd: [HealthServer::new(503).await, HealthServer::new(503).await],
            health: HealthServer::new(0).await,
            settled: watch::channel(BTreeMap::new()).0,
        };
        let names = ["main", "events"].map(str::to_owned).into_iter();
        let urls = services
            .etcd
            .iter()
            .map(|server| format!("{}/health", server.url));
        let gates = HealthGates {
            kubelet: format!("{}/healthz", services.kubelet.url),
            etcd: names.zip(urls).collect(),
            settled: services.settled.subscribe(),
            health: services.health.url.clone(),
            pace: Duration::from_millis(2),
            events_patience: Duration::from_hours(1),
        };
        (services, gates)
    }
}

fn static_pods() -> BTreeMap<String, Pod> {
    let mut pods = node_config().control_plane.unwrap().static_pods;
    let mut other = pods["kube-scheduler"].clone();
    "other".clone_into(&mut other.metadata.name);
    pods.insert("other".into(), other);
    pods
}

fn present_manifests(host: &TestHost) -> Vec<String> {
    let names = static_pods().into_keys();
    let written = |name: &String| host.path(&manifest_path(name)).exists();
    names.filter(written).collect()
}

/// Gives the role enough time to do something that it must not do.
async fn wait_a_moment() {
    tokio::time::sleep(Duration::from_millis(60)).await;
}

async fn wait_for_manifests(host: &TestHost, names: &[&str]) {
    while present_manifests(host) != names {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn each_manifest_waits_for_what_it_needs() {
    let host = TestHost::new().await;
    let (services, gates) = FakeServices::new().await;
    let (pods, probe, role_log) = (
        static_pods(),
        Probe::new().unwrap(),
        RoleLog::for_role("manifests"),
    );
    let opened = async {
        let all = |settled| {
            let names = ["main", "events"].map(str::to_owned);
            names.map(|name| (name, settled)).into()
        };
        // Everything is healthy except the next dependency.
        services.settled.send_replace(all(true));
        services.etcd.iter().for_each(|etcd| etcd.set_status(200));
        services.health.set_status(200);
        wait_a_moment().await;
        assert_eq!(present_manifests(&host), [""; 0], "without kubelet");

        services.etcd[0].set_status(503);
        services.kubelet.set_status(200);
        wait_a_moment().await;
        assert_eq!(present_manifests(&host), [""; 0], "with one etcd only");

        services.settled.send_replace(all(false));
        services.etcd[0].set_status(200);
        wait_a_moment().await;
        // The role may have passed the first etcd before; the second one was never healthy.
        assert_eq!(
            present_manifests(&host),
            [""; 0],
            "before etcd was started again"
        );

        services.health.set_status(0);
        services.settled.send_replace(all(true));
        wait_a_moment().await;
        assert_eq!(
            present_manifests(&host),
            [""; 0],
            "without who answers its probes"
        );

        services.health.set_status(503);
        wait_for_manifests(&host, &["kube-apiserver"]).await;
        wait_a_moment().await;
        assert_eq!(
            present_manifests(&host),
            ["kube-apiserver"],
            "before it is ready"
        );

        services.health.set_status(200);
        let all = [
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "other",
        ];
        wait_for_manifests(&host, &all).await;
    };
    tokio::select! {
        ended = write_manifests(&host.host, &pods, &gates, &probe, &role_log) => panic!("{ended:?}"),
        () = opened => {}
    }
}

#[tokio::test]
async fn manifests_that_are_right_are_left_alone_and_others_come_back_behind_their_gates() {
    let host = TestHost::new().await;
    let (services, gates) = FakeServices::new().await;
    let (pods, probe, role_log) = (
        static_pods(),
        Probe::new().unwrap(),
        RoleLog::for_role("manifests"),
    );
    for (name, pod) in &pods {
        let text = node::yaml::to_yaml(pod).unwrap();
        host.host
            .write_changed(&manifest_path(name), &text, 0o440)
            .unwrap();
    }
    let before = |name: &str| {
        let data = host.path(&manifest_path(name)).metadata().unwrap();
        (
            data.modified().unwrap(),
            std::os::unix::fs::MetadataExt::ino(&data),
        )
    };
    let written: Vec<_> = pods.keys().map(|name| before(name)).collect();
    let role = write_manifests(&host.host, &pods, &gates, &probe, &role_log);
    let watched = async {
        wait_a_moment().await;
        let now: Vec<_> = pods.keys().map(|name| before(name)).collect();
        assert_eq!(now, written, "nothing is healthy, and nothing needs to be");
        host.host
            .remove_file(&manifest_path("kube-scheduler"))
            .unwrap();
        wait_a_moment().await;
        wait_a_moment().await;
        wait_a_moment().await;
        assert!(!present_manifests(&host).contains(&"kube-scheduler".to_owned()));
        services.kubelet.set_status(200);
        services.etcd.iter().for_each(|etcd| etcd.set_status(200));
        services.health.set_status(200);
        let names = ["main", "events"].map(str::to_owned);
        services
            .settled
            .send_replace(names.map(|name| (name, true)).into());
        while present_manifests(&host).len() < pods.len() {
            wait_a_moment().await;
        }
    };
    tokio::select! {
        ended = role => panic!("{ended:?}"),
        () = watched => {}
    }
}

/// etcd-events runs without a quorum: the API server starts without it, but not before the process is there to connect to.
#[tokio::test]
async fn events_without_a_quorum_do_not_hold_up_the_api_server_for_ever() {
    let host = TestHost::new().await;
    let (services, gates) = FakeServices::new().await;
    let gates = HealthGates {
        events_patience: Duration::from_millis(20),
        ..gates
    };
    let (pods, probe, role_log) = (
        static_pods(),
        Probe::new().unwrap(),
        RoleLog::for_role("manifests"),
    );
    let opened = async {
        services.kubelet.set_status(200);
        services.etcd[1].set_status(0);
        services.health.set_status(503);
        wait_a_moment().await;
        assert_eq!(present_manifests(&host), [""; 0], "without main");
        services.etcd[0].set_status(200);
        let settled = [("main".to_owned(), true), ("events".to_owned(), false)];
        services.settled.send_replace(settled.into());
        wait_a_moment().await;
        assert_eq!(present_manifests(&host), [""; 0], "events does not run");
        services.etcd[1].set_status(503);
        wait_for_manifests(&host, &["kube-apiserver"]).await;
    };
    tokio::select! {
        error = write_manifests(&host.host, &pods, &gates, &probe, &role_log) => panic!("{error:?}"),
        () = opened => {}
    }
}

/// A recovery of etcd takes manifests away one after the other, at any moment, also while the role waits for the API server.
#[tokio::test]
async fn manifests_that_are_taken_away_come_back_whenever_that_happens() {
    let host = TestHost::new().await;
    let (services, gates) = FakeServices::new().await;
    let all_well = |are: bool| {
        for server in [&services.kubelet, &services.health] {
            server.set_status(200);
        }
        services.etcd.iter().for_each(|etcd| etcd.set_status(200));
        let names = ["main", "events"].map(str::to_owned);
        services
            .settled
            .send_replace(names.map(|name| (name, are)).into());
    };
    let pods = static_pods();
    let names: Vec<&str> = pods.keys().map(String::as_str).collect();
    let fenced = [
        "kube-controller-manager",
        "kube-scheduler",
        "kube-apiserver",
    ];
    let probe = Probe::new().unwrap();
    let role_log = RoleLog::for_role("manifests");
    let story = async {
        all_well(true);
        wait_for_manifests(&host, &names).await;
        for taken_first in 0..=fenced.len() {
            all_well(false);
            for (index, name) in fenced.iter().enumerate() {
                if index == taken_first {
                    wait_a_moment().await;
                }
                host.host.remove_file(&manifest_path(name)).unwrap();
            }
            wait_a_moment().await;
            all_well(true);
            wait_for_manifests(&host, &names).await;
            // Again, while the role waits for the API server.
            all_well(false);
            for name in fenced {
                host.host.remove_file(&manifest_path(name)).unwrap();
            }
            wait_a_moment().await;
            all_well(true);
            services.health.set_status(503);
            while !host.path(&manifest_path("kube-apiserver")).exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            all_well(false);
            host.host
                .remove_file(&manifest_path("kube-apiserver"))
                .unwrap();
            wait_a_moment().await;
            all_well(true);
            wait_for_manifests(&host, &names).await;
        }
    };
    tokio::select! {
        ended = write_manifests(&host.host, &pods, &gates, &probe, &role_log) => panic!("{ended:?}"),
        () = story => {}
    }
}
