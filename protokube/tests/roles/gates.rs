//! Manifests appear one after the other, each once what it needs is healthy.

use crate::machine::{Machine, config};
use node::manifests::{Pod, manifest_path};
use protokube::log::RoleLog;
use protokube::manifests::{Gates, write_manifests};
use protokube::probe::Probe;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A server that answers everything with one status; 0: it hangs up.
struct Server {
    url: String,
    status: Arc<AtomicU16>,
}

impl Server {
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

    fn answers(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }
}

struct Outside {
    kubelet: Server,
    etcd: [Server; 2],
    health: Server,
    settled: watch::Sender<BTreeMap<String, bool>>,
}

impl Outside {
    /// Nothing is healthy.
    async fn new() -> (Self, Gates) {
        let outside = Self {
            kubelet: Server::new(0).await,
            etcd: [Server::new(503).await, Server::new(503).await],
            health: Server::new(0).await,
            settled: watch::channel(BTreeMap::new()).0,
        };
        let names = ["main", "events"].map(str::to_owned).into_iter();
        let urls = outside
            .etcd
            .iter()
            .map(|server| format!("{}/health", server.url));
        let gates = Gates {
            kubelet: format!("{}/healthz", outside.kubelet.url),
            etcd: names.zip(urls).collect(),
            settled: outside.settled.subscribe(),
            health: outside.health.url.clone(),
            pace: Duration::from_millis(2),
        };
        (outside, gates)
    }
}

fn pods() -> BTreeMap<String, Pod> {
    let mut pods = config().control_plane.unwrap().static_pods;
    let mut other = pods["kube-scheduler"].clone();
    "other".clone_into(&mut other.metadata.name);
    pods.insert("other".into(), other);
    pods
}

fn there(machine: &Machine) -> Vec<String> {
    let names = pods().into_keys();
    let written = |name: &String| machine.path(&manifest_path(name)).exists();
    names.filter(written).collect()
}

/// Gives the role time: what it must not do, it would have done by then.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(60)).await;
}

async fn until(machine: &Machine, names: &[&str]) {
    while there(machine) != names {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn each_manifest_waits_for_what_it_needs() {
    let machine = Machine::new().await;
    let (outside, gates) = Outside::new().await;
    let (pods, probe, voice) = (
        pods(),
        Probe::new().unwrap(),
        RoleLog::for_role("manifests"),
    );
    let opened = async {
        let all = |settled| {
            let names = ["main", "events"].map(str::to_owned);
            names.map(|name| (name, settled)).into()
        };
        // Everything but the one that comes first, each time.
        outside.settled.send_replace(all(true));
        outside.etcd.iter().for_each(|etcd| etcd.answers(200));
        outside.health.answers(200);
        a_moment().await;
        assert_eq!(there(&machine), [""; 0], "without kubelet");

        outside.etcd[1].answers(503);
        outside.kubelet.answers(200);
        a_moment().await;
        assert_eq!(there(&machine), [""; 0], "with one etcd only");

        outside.settled.send_replace(all(false));
        outside.etcd[1].answers(200);
        a_moment().await;
        // The role may have passed the first etcd's gate before; the second one's was closed all the time.
        assert_eq!(there(&machine), [""; 0], "before etcd was started again");

        outside.health.answers(0);
        outside.settled.send_replace(all(true));
        a_moment().await;
        assert_eq!(there(&machine), [""; 0], "without who answers its probes");

        outside.health.answers(503);
        until(&machine, &["kube-apiserver"]).await;
        a_moment().await;
        assert_eq!(there(&machine), ["kube-apiserver"], "before it is ready");

        outside.health.answers(200);
        let all = [
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "other",
        ];
        until(&machine, &all).await;
    };
    tokio::select! {
        ended = write_manifests(&machine.host, &pods, &gates, &probe, &voice) => panic!("{ended:?}"),
        () = opened => {}
    }
}

#[tokio::test]
async fn manifests_that_are_right_are_left_alone_and_others_come_back_behind_their_gates() {
    let machine = Machine::new().await;
    let (outside, gates) = Outside::new().await;
    let (pods, probe, voice) = (
        pods(),
        Probe::new().unwrap(),
        RoleLog::for_role("manifests"),
    );
    for (name, pod) in &pods {
        let text = node::yaml::to_yaml(pod).unwrap();
        machine
            .host
            .write_changed(&manifest_path(name), &text, 0o440)
            .unwrap();
    }
    let before = |name: &str| {
        let data = machine.path(&manifest_path(name)).metadata().unwrap();
        (
            data.modified().unwrap(),
            std::os::unix::fs::MetadataExt::ino(&data),
        )
    };
    let written: Vec<_> = pods.keys().map(|name| before(name)).collect();
    let role = write_manifests(&machine.host, &pods, &gates, &probe, &voice);
    let watched = async {
        a_moment().await;
        let now: Vec<_> = pods.keys().map(|name| before(name)).collect();
        assert_eq!(now, written, "nothing is healthy, and nothing needs to be");
        machine
            .host
            .remove_file(&manifest_path("kube-scheduler"))
            .unwrap();
        a_moment().await;
        a_moment().await;
        a_moment().await;
        assert!(!there(&machine).contains(&"kube-scheduler".to_owned()));
        outside.kubelet.answers(200);
        outside.etcd.iter().for_each(|etcd| etcd.answers(200));
        outside.health.answers(200);
        let names = ["main", "events"].map(str::to_owned);
        outside
            .settled
            .send_replace(names.map(|name| (name, true)).into());
        while there(&machine).len() < pods.len() {
            a_moment().await;
        }
    };
    tokio::select! {
        ended = role => panic!("{ended:?}"),
        () = watched => {}
    }
}
