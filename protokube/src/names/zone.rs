//! The cluster's names in its hosted zone: they lead to the API servers that are ready. Which those are, all protokubes read in one place,
//! the API's own list of its servers, so that none undoes what another wrote; a protokube whose own API server is not ready writes nothing.
//! Route 53 answers five calls a second for a whole account, so it is asked only when that list changed, and now and then.

use super::records::{Published, Wanted, changes, machine_at, wanted};
use crate::ec2::{Ec2, control_planes};
use crate::log::Voice;
use crate::pace::Sleep;
use anyhow::{Context, bail};
use aws_client::Clients;
use aws_client::dns::{self, Addresses};
use aws_client::machine::Instance;
use aws_client::store::Store;
use engine::Failure;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client};
use node::config::NodeConfig;
use node::report::Status;
use node::yaml::read_as;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::future::Future;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::sync::watch;

/// An answer of the API server that takes longer is given up.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Looks at the list between two looks at the zone, if the list stays as it is.
const LOOKS: u32 = 24;

/// Looks at the list between two looks at EC2, which knows public addresses, if the list stays as it is.
const MACHINE_LOOKS: u32 = 120;

/// The records of a zone, as a trait: tests have a zone of their own.
pub trait Records: Send + Sync + 'static {
    /// What the zone says of these names.
    fn read(&self, names: &[String]) -> impl Future<Output = Result<Published, Failure>> + Send;

    /// Replaces addresses, all or none.
    fn write(&self, names: &[Addresses]) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A hosted zone of Route 53.
#[derive(Clone, Debug)]
pub struct Route53 {
    /// Clients.
    pub clients: Clients,
    /// The zone's id.
    pub zone: String,
}

impl Records for Route53 {
    async fn read(&self, names: &[String]) -> Result<Published, Failure> {
        dns::addresses(&self.clients, &self.zone, names).await
    }

    async fn write(&self, names: &[Addresses]) -> Result<(), Failure> {
        dns::publish(&self.clients, &self.zone, names).await
    }
}

/// What of the completed spec says where names are published.
#[derive(Deserialize)]
struct Completed {
    spec: Names,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    dns_zone: Option<String>,
    topology: Topology,
}

#[derive(Deserialize)]
struct Topology {
    dns: Dns,
}

#[derive(Deserialize)]
struct Dns {
    r#type: String,
}

/// The id of the cluster's hosted zone, as its completed spec in the store says; `None`: the cluster has none.
pub async fn zone_of(store: &Store) -> anyhow::Result<Option<String>> {
    const KEY: &str = "cluster-completed.spec";
    let object = store.get(KEY).await?;
    let object = object.with_context(|| format!("the state store has no {KEY}"))?;
    let text = String::from_utf8(object.bytes).with_context(|| format!("{KEY} is not text"))?;
    let completed: Completed = read_as(&text)
        .with_context(|| format!("{KEY} cannot be read: another release wrote it"))?;
    let Names { dns_zone, topology } = completed.spec;
    let zone = dns_zone.filter(|_| topology.dns.r#type != "None");
    if let Some(name) = zone.as_ref().filter(|zone| zone.contains('.')) {
        bail!(
            "{KEY} names the hosted zone {name}, not its id: another release wrote it: run kctl update"
        );
    }
    Ok(zone)
}

/// Who knows which API servers are ready, as a trait: tests have some of their own.
pub trait ApiServers: Send + Sync + 'static {
    /// Their private addresses; `None` while this machine's own is not ready and so may not know.
    fn ready(&self) -> impl Future<Output = anyhow::Result<Option<BTreeSet<Ipv4Addr>>>> + Send;
}

/// The API's list of its own servers: the addresses of the Service `kubernetes`. Each API server puts itself there once its `/readyz` is
/// well, renews that every ten seconds under a lease of etcd's of fifteen, and takes itself out when it ends; the others drop one whose
/// lease is over (<https://github.com/kubernetes/kubernetes/tree/master/pkg/controlplane/controller/kubernetesservice> and
/// `pkg/controlplane/reconcilers/lease.go`). So the time is etcd's, and no machine's clock counts.
pub struct Endpoints {
    /// Of this machine's API server.
    pub client: Client,
    /// Whether that is ready.
    pub ready: watch::Receiver<bool>,
}

impl ApiServers for Endpoints {
    async fn ready(&self) -> anyhow::Result<Option<BTreeSet<Ipv4Addr>>> {
        if !*self.ready.borrow() {
            return Ok(None);
        }
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), "default");
        let asked = tokio::time::timeout(TIMEOUT, slices.get_opt("kubernetes")).await;
        let slice = asked
            .context("the API server takes too long to say which API servers are ready")?
            .context("could not ask the API server which API servers are ready")?;
        Ok(slice.as_ref().map(listed))
    }
}

/// The addresses in the list.
fn listed(slice: &EndpointSlice) -> BTreeSet<Ipv4Addr> {
    let ready = |one: &&k8s_openapi::api::discovery::v1::Endpoint| {
        let conditions = one.conditions.as_ref();
        conditions.and_then(|conditions| conditions.ready) != Some(false)
    };
    let addresses = slice.endpoints.iter().flatten().filter(ready);
    let addresses = addresses.flat_map(|endpoint| &endpoint.addresses);
    addresses
        .filter_map(|address| address.parse().ok())
        .collect()
}

/// Who keeps the names in the zone.
#[derive(Debug)]
pub struct Zone<'a, E, R, A> {
    /// EC2.
    pub ec2: &'a E,
    /// The zone.
    pub records: &'a R,
    /// Who knows which API servers are ready.
    pub servers: &'a A,
    /// NodeConfig.
    pub config: &'a NodeConfig,
    /// Time between looks at that list, and how it passes.
    pub pace: (Duration, Sleep),
}

impl<E: Ec2, R: Records, A: ApiServers> Zone<'_, E, R, A> {
    /// Keeps them.
    pub async fn keep(&self) -> anyhow::Result<()> {
        let voice = Voice::of("dns");
        let wanted = wanted(self.config);
        let mut before = BTreeSet::new();
        let mut machines: Vec<Instance> = Vec::new();
        let (mut looks, mut machine_looks, mut patience) = (0, 0, 1);
        loop {
            let ready = self.servers.ready().await?.unwrap_or_default();
            if !ready.is_empty() {
                (looks, machine_looks) = (looks + 1, machine_looks + 1);
                if ready != before {
                    (looks, machine_looks, patience) = (LOOKS, MACHINE_LOOKS, 1);
                }
                let known = |address: &Ipv4Addr| machine_at(*address, &machines).is_some();
                let due = machine_looks >= MACHINE_LOOKS;
                if due || (!ready.iter().all(known) && machine_looks >= patience) {
                    machines = control_planes(self.ec2, &self.config.cluster).await?;
                    // One that EC2 does not show is asked for later and later.
                    patience = (patience * 2).min(LOOKS);
                    (looks, machine_looks) = (LOOKS, 0);
                }
                if looks >= LOOKS {
                    self.compare(&wanted, &ready, &machines, &voice).await?;
                    before = ready;
                    looks = 0;
                }
            }
            let (pause, sleep) = self.pace;
            sleep(pause).await;
        }
    }

    /// One look at the zone, and what it needs.
    async fn compare(
        &self,
        wanted: &[Wanted],
        ready: &BTreeSet<Ipv4Addr>,
        machines: &[Instance],
        voice: &Voice,
    ) -> anyhow::Result<()> {
        let names: Vec<String> = wanted.iter().map(|one| one.name.clone()).collect();
        let published = self.records.read(&names).await?;
        let changes = changes(wanted, ready, machines, &published);
        if changes.is_empty() {
            return Ok(());
        }
        self.records.write(&changes).await?;
        let said = changes.iter().map(|one| {
            let addresses: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
            format!("{} {}", one.name, addresses.join(" "))
        });
        voice.say(Status::Finished, &said.collect::<Vec<_>>().join(", "));
        Ok(())
    }
}
