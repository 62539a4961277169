//! A test cluster with one worker and the bootstrap endpoint.

use super::aws::{ACCOUNT, FakeAws, FakeInstance};
use super::{FakeWorker, LogLines};
use crate::store::store_in;
use aws_client::ec2_query::Ec2QueryClient;
use aws_client::store::{Expect, Store};
use aws_client::{AccessKey, AccessOptions, Clients};
use full::nodes::node_config;
use futures::FutureExt;
use futures::future::BoxFuture;
use node::config::{StoredNodeConfig, to_stored};
use node::pki::{KeyAlgorithm, Keyset, SystemKeys, mint_keyset, trust_bundle};
use protokube::bootstrap::{self, EndpointContext, NodeLookup};
use protokube::identity::{Clock, system_clock};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use test_support::{expanded_spec, made_up_agents};
use time::{Duration, OffsetDateTime};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub const NAME: &str = "a.example.com";
pub const GROUP: &str = "nodes-eu-west-1a";
pub const INSTANCE: &str = "i-0123456789abcdef0";

pub struct TestCluster {
    pub aws: FakeAws,
    pub aws_url: String,
    pub store: Store,
    pub authority: Keyset,
    pub node_config: StoredNodeConfig,
    pub address: SocketAddr,
    pub lines: LogLines,
    /// Whether the API has a Node of each instance; `None` if the API is unavailable.
    pub node: Arc<Mutex<Option<bool>>>,
    /// Whether the local API server is ready.
    pub ready: watch::Sender<bool>,
    _folder: TempDir,
}

struct FakeNodes(Arc<Mutex<Option<bool>>>);

impl NodeLookup for FakeNodes {
    fn node_exists<'a>(&'a self, _: &'a str) -> BoxFuture<'a, anyhow::Result<bool>> {
        let exists = *self.0.lock().unwrap();
        async move { exists.ok_or_else(|| anyhow::anyhow!("connection refused")) }.boxed()
    }
}

impl TestCluster {
    /// A cluster whose endpoint uses the system clock.
    pub async fn start() -> Self {
        Self::start_at(system_clock()).await
    }

    /// A cluster whose endpoint uses this clock.
    pub async fn start_at(clock: Clock) -> Self {
        let none = std::time::Duration::ZERO;
        Self::start_with(clock, none, none).await
    }

    /// A cluster with this interval between log lines of one cause and between requests of one instance.
    pub async fn start_with(
        clock: Clock,
        log_interval: std::time::Duration,
        pause: std::time::Duration,
    ) -> Self {
        let aws = FakeAws::default();
        let aws_url = aws.start().await;
        let folder = TempDir::new().unwrap();
        let now = OffsetDateTime::now_utc();
        let keys = &mut SystemKeys::issuing_at(now);
        let authority = mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, keys).unwrap();
        let trusted = trust_bundle(&authority);
        let config = node_config(&expanded_spec().full, GROUP, &trusted, &made_up_agents());
        let node_config = to_stored(&config.unwrap().unwrap()).unwrap();
        let ec2 = control_plane(&aws, &aws_url).await;
        let store = store_in(folder.path()).await;
        let text = node_config.text.clone().into_bytes();
        store
            .put(&node_config.keys[0], text, Expect::Any)
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lines = LogLines::default();
        let node = Arc::new(Mutex::new(Some(false)));
        let ready = watch::Sender::new(false);
        let context = EndpointContext {
            listen: address,
            pods: Some("127.96.0.0/16".parse().unwrap()),
            cluster: NAME.to_owned(),
            account: ACCOUNT.to_owned(),
            trust_bundle: trusted,
            authority: Arc::new(authority.clone()),
            own_keys: None,
            ec2,
            store: store.clone(),
            nodes: Arc::new(FakeNodes(Arc::clone(&node))),
            clock,
            signing: Duration::minutes(10),
            ready: ready.subscribe(),
            log: lines.new_log(),
            log_interval,
            request_interval: pause,
        };
        tokio::spawn(bootstrap::serve_endpoint_on(Arc::new(context), listener));
        let cluster = Self {
            aws,
            aws_url,
            store,
            authority,
            node_config,
            address,
            lines,
            node,
            ready,
            _folder: folder,
        };
        cluster
            .aws
            .lock_state()
            .instances
            .push(running_instance(INSTANCE));
        cluster
    }

    /// A worker of the group of nodes.
    pub async fn new_worker(&self) -> FakeWorker {
        self.worker_of("nodes.a.example.com", INSTANCE).await
    }

    /// A worker with a session of this role.
    pub async fn worker_of(&self, role: &str, session: &str) -> FakeWorker {
        let key = format!("AKIA{role}{session}")
            .replace('.', "")
            .to_uppercase();
        let instance = instance_clients(&self.aws, &self.aws_url, &key, role, session).await;
        FakeWorker::new(self, instance)
    }

    /// Changes the worker's instance in EC2.
    pub fn change_instance(&self, change: impl FnOnce(&mut FakeInstance)) {
        change(&mut self.aws.lock_state().instances[0]);
    }

    /// Sets whether the worker has a Node; `None` if the API is unavailable.
    pub fn set_node_exists(&self, exists: Option<bool>) {
        *self.node.lock().unwrap() = exists;
    }
}

/// A running instance of the group of nodes.
pub fn running_instance(id: &str) -> FakeInstance {
    let tags = [
        ("KubernetesCluster", NAME),
        ("kubernetes.io/cluster/a.example.com", "owned"),
        ("kops.k8s.io/instancegroup", GROUP),
        ("k8s.io/role/node", "1"),
        ("k8s.io/cluster-autoscaler/node-template/label/disk", "fast"),
    ];
    FakeInstance {
        id: id.to_owned(),
        state: "running".to_owned(),
        private_ip: "172.20.1.7".to_owned(),
        public_ip: "203.0.113.7".to_owned(),
        profile: "nodes.a.example.com".to_owned(),
        spot: false,
        tags: tags
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    }
}

/// Clients with the credentials of protokube's own instance.
pub async fn control_plane(aws: &FakeAws, url: &str) -> Ec2QueryClient {
    let role = "masters.a.example.com";
    instance_clients(aws, url, "AKIAPROTOKUBE", role, "i-0fedcba9876543210").await
}

/// Clients whose credentials belong to this session of this role.
async fn instance_clients(
    aws: &FakeAws,
    url: &str,
    key: &str,
    role: &str,
    session: &str,
) -> Ec2QueryClient {
    let arn = format!("arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{session}");
    let secret = format!("secret of {key}");
    let known = (secret.clone(), arn);
    aws.lock_state().keys.insert(key.to_owned(), known);
    let clients = Clients::from_access(&AccessOptions {
        region: Some("eu-west-1".to_owned()),
        keys: Some(AccessKey {
            id: key.to_owned(),
            secret,
            session: Some(format!("token of {key}")),
        }),
        ..AccessOptions::default()
    })
    .await;
    Ec2QueryClient::at_endpoint(&clients, url).unwrap()
}
