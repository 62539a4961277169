//! A cluster with one worker, and its bootstrap endpoint.

use super::aws::{ACCOUNT, FakeAws, Instance};
use super::{Lines, Worker};
use crate::store::store_in;
use aws_client::machine::Machine;
use aws_client::store::{Expect, Store};
use aws_client::{Access, Clients, Keys};
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
use test_support::{agents, expanded};
use time::{Duration, OffsetDateTime};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub const NAME: &str = "a.example.com";
pub const GROUP: &str = "nodes-eu-west-1a";
pub const INSTANCE: &str = "i-0123456789abcdef0";

pub struct Cluster {
    pub aws: FakeAws,
    pub aws_url: String,
    pub store: Store,
    pub authority: Keyset,
    pub node_config: StoredNodeConfig,
    pub address: SocketAddr,
    pub lines: Lines,
    /// Whether the API says that there are Nodes; `None`: it says nothing.
    pub node: Arc<Mutex<Option<bool>>>,
    /// Whether its API server is ready.
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

impl Cluster {
    /// With protokube's endpoint at the machine's time.
    pub async fn start() -> Self {
        Self::start_at(system_clock()).await
    }

    /// With another clock.
    pub async fn start_at(clock: Clock) -> Self {
        let none = std::time::Duration::ZERO;
        Self::start_with(clock, none, none).await
    }

    /// Where lines of one cause, and requests of one instance, are that far apart too.
    pub async fn start_with(
        clock: Clock,
        told: std::time::Duration,
        pause: std::time::Duration,
    ) -> Self {
        let aws = FakeAws::default();
        let aws_url = aws.start().await;
        let folder = TempDir::new().unwrap();
        let now = OffsetDateTime::now_utc();
        let keys = &mut SystemKeys::at(now);
        let authority = mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, keys).unwrap();
        let trusted = trust_bundle(&authority);
        let config = node_config(&expanded().full, GROUP, &trusted, &agents());
        let node_config = to_stored(&config.unwrap().unwrap()).unwrap();
        let machine = control_plane(&aws, &aws_url).await;
        let store = store_in(folder.path()).await;
        let text = node_config.text.clone().into_bytes();
        store
            .put(&node_config.keys[0], text, Expect::Any)
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lines = Lines::default();
        let node = Arc::new(Mutex::new(Some(false)));
        let ready = watch::Sender::new(false);
        let context = EndpointContext {
            listen: address,
            cluster: NAME.to_owned(),
            account: ACCOUNT.to_owned(),
            trust_bundle: trusted,
            authority: Arc::new(authority.clone()),
            machine,
            store: store.clone(),
            nodes: Arc::new(FakeNodes(Arc::clone(&node))),
            clock,
            signing: Duration::minutes(10),
            ready: ready.subscribe(),
            log: lines.log(),
            told,
            pause,
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
        cluster.aws.state().instances.push(instance(INSTANCE));
        cluster
    }

    /// A worker of the group that runs.
    pub async fn worker(&self) -> Worker {
        self.worker_of("nodes.a.example.com", INSTANCE).await
    }

    /// A machine with a session of that role, named as that.
    pub async fn worker_of(&self, role: &str, session: &str) -> Worker {
        let key = format!("AKIA{}", session.to_uppercase());
        let machine = machine(&self.aws, &self.aws_url, &key, role, session).await;
        Worker::new(self, machine)
    }

    /// Changes the worker's instance.
    pub fn change_instance(&self, change: impl FnOnce(&mut Instance)) {
        change(&mut self.aws.state().instances[0]);
    }

    /// Whether it has a Node from now on; `None`: the API does not answer.
    pub fn has_node(&self, exists: Option<bool>) {
        *self.node.lock().unwrap() = exists;
    }
}

/// A running instance of the group.
pub fn instance(id: &str) -> Instance {
    let tags = [
        ("KubernetesCluster", NAME),
        ("kubernetes.io/cluster/a.example.com", "owned"),
        ("kops.k8s.io/instancegroup", GROUP),
        ("k8s.io/role/node", "1"),
        ("k8s.io/cluster-autoscaler/node-template/label/disk", "fast"),
    ];
    Instance {
        id: id.to_owned(),
        state: "running".to_owned(),
        private_ip: "172.20.1.7".to_owned(),
        public_ip: "203.0.113.7".to_owned(),
        profile: "nodes.a.example.com".to_owned(),
        tags: tags
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    }
}

/// protokube's own machine.
pub async fn control_plane(aws: &FakeAws, url: &str) -> Machine {
    let role = "masters.a.example.com";
    machine(aws, url, "AKIAPROTOKUBE", role, "i-0fedcba9876543210").await
}

/// A machine whose credentials AWS knows as that session of that role.
async fn machine(aws: &FakeAws, url: &str, key: &str, role: &str, session: &str) -> Machine {
    let arn = format!("arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{session}");
    let secret = format!("secret of {key}");
    let known = (secret.clone(), arn);
    aws.state().keys.insert(key.to_owned(), known);
    let clients = Clients::reach(&Access {
        region: Some("eu-west-1".to_owned()),
        keys: Some(Keys {
            id: key.to_owned(),
            secret,
            session: Some(format!("token of {key}")),
        }),
        ..Access::default()
    })
    .await;
    Machine::at(&clients, url).unwrap()
}
