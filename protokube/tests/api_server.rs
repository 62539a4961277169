//! The addons against a real API server: every object is taken as it is, a second look changes nothing, and an addon that leaves the
//! list is removed. Runs where `KCTL_KUBERNETES` names a folder with `etcd` and `kube-apiserver`.
#![cfg(test)]
#![allow(clippy::print_stderr, reason = "a test that did not run says so")]

#[path = "../../model/tests/support/mod.rs"]
mod support;

use aws::store::{Expect, Store};
use aws::{Access, Clients, Keys};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube::{Client, Config};
use model::addons::{Addon, addons};
use model::cloud::ObjectContent;
use model::cloud::build::addon_objects;
use model::pki::{KeyAlgorithm, Keyset, Leaf, SystemKeys, Usage, issue, mint};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::expanded_with;
use time::OffsetDateTime;
use x509_parser::pem::Pem;

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(binary: &Path, arguments: &[String], log: &Path) -> Running {
    let log = std::fs::File::create(log).unwrap();
    let mut command = Command::new(binary);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    Running(command.spawn().unwrap())
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// An API server with its etcd.
struct Cluster {
    folder: tempfile::TempDir,
    url: String,
    authority: Keyset,
    _processes: [Running; 2],
}

fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

fn leaf(common_name: &str, usage: Usage) -> Leaf {
    Leaf {
        common_name: common_name.to_owned(),
        organization: Some("system:masters".to_owned()),
        usage,
        names: vec!["127.0.0.1".to_owned()],
        validity: time::Duration::days(1),
    }
}

impl Cluster {
    fn start(binaries: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let path = |name: &str| file(name).display().to_string();
        let [etcd, peers, port] = [(); 3].map(|()| free_port());
        let endpoint = format!("http://127.0.0.1:{etcd}");
        let first = start(
            &binaries.join("etcd"),
            &[
                format!("--data-dir={}", path("etcd")),
                format!("--listen-client-urls={endpoint}"),
                format!("--advertise-client-urls={endpoint}"),
                format!("--listen-peer-urls=http://127.0.0.1:{peers}"),
            ],
            &file("etcd.log"),
        );
        let authority = mint(
            "kubernetes-ca",
            KeyAlgorithm::EcdsaP256,
            &mut SystemKeys::at(now()),
        )
        .unwrap();
        let issued = issue(
            &authority,
            &leaf("kubernetes", Usage::Server),
            &mut SystemKeys::at(now()),
        )
        .unwrap();
        std::fs::write(file("ca.crt"), &authority.items[0].certificate).unwrap();
        std::fs::write(file("server.crt"), &issued.certificate).unwrap();
        std::fs::write(file("server.key"), issued.key.reveal()).unwrap();
        let accounts = mint(
            "service-account",
            KeyAlgorithm::Rsa2048,
            &mut SystemKeys::at(now()),
        )
        .unwrap();
        std::fs::write(
            file("accounts.key"),
            accounts.items[0].key.as_ref().unwrap().reveal(),
        )
        .unwrap();
        let second = start(
            &binaries.join("kube-apiserver"),
            &[
                "--bind-address=127.0.0.1".to_owned(),
                "--advertise-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                format!("--etcd-servers={endpoint}"),
                format!("--client-ca-file={}", path("ca.crt")),
                format!("--tls-cert-file={}", path("server.crt")),
                format!("--tls-private-key-file={}", path("server.key")),
                format!("--service-account-key-file={}", path("accounts.key")),
                format!(
                    "--service-account-signing-key-file={}",
                    path("accounts.key")
                ),
                "--service-account-issuer=https://127.0.0.1".to_owned(),
                "--service-cluster-ip-range=100.64.0.0/13".to_owned(),
                "--authorization-mode=Node,RBAC".to_owned(),
                "--allow-privileged=true".to_owned(),
            ],
            &file("kube-apiserver.log"),
        );
        Self {
            folder,
            url: format!("https://127.0.0.1:{port}"),
            authority,
            _processes: [first, second],
        }
    }

    fn client(&self) -> Client {
        let issued = issue(
            &self.authority,
            &leaf("protokube", Usage::Client),
            &mut SystemKeys::at(now()),
        )
        .unwrap();
        let mut config = Config::new(self.url.parse().unwrap());
        let pem = Pem::iter_from_buffer(self.authority.items[0].certificate.as_bytes());
        config.root_cert = Some(pem.map(|pem| pem.unwrap().contents).collect());
        config.auth_info.client_certificate_data = Some(STANDARD.encode(&issued.certificate));
        config.auth_info.client_key_data = Some(STANDARD.encode(issued.key.reveal()).into());
        Client::try_from(config).unwrap()
    }

    async fn store(&self) -> Store {
        let access = Access {
            region: Some("eu-west-1".into()),
            keys: Some(Keys {
                id: "id".into(),
                secret: "secret".into(),
                session: None,
            }),
            ..Access::default()
        };
        let url = format!("file://{}", self.folder.path().join("store").display());
        Store::open(&url, &Clients::reach(&access).await).unwrap()
    }
}

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
async fn a_real_api_server_takes_every_object_as_it_is() {
    let Some(binaries) = std::env::var_os("KCTL_KUBERNETES").map(PathBuf::from) else {
        eprintln!("skipped: KCTL_KUBERNETES is not set");
        return;
    };
    let cluster = Cluster::start(&binaries);
    let (client, store) = (cluster.client(), cluster.store().await);
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
