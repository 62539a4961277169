//! Role dns: keeps the cluster's names in its hosted zone pointed at ready API servers. All protokubes read these from the same place,
//! the API's own list, so that none undoes another's change. A protokube whose own API server is not ready writes nothing. Route 53
//! allows five calls per second and account, so it is called only when the list changes and at long intervals.

use super::records::{FollowedName, PublishedRecords, followed_names, instance_at, needed_changes};
use crate::api::ApiAccess;
use anyhow::{Context, bail};
use aws_client::Clients;
use aws_client::dns::{self, AddressRecord, RecordName};
use aws_client::ec2_query::Instance;
use aws_client::store::Store;
use engine::Failure;
use etcd_member::ec2::{Ec2, control_planes};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use node::config::NodeConfig;
use node::names::ROLLING_UPDATE_ANNOTATION;
use node::report::Status;
use node::yaml::read_as;
use protokube_role::log::RoleLog;
use protokube_role::pace::Sleep;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;
use tokio::sync::watch;

/// Timeout of a request to the API server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Label of Nodes that are control planes.
const CONTROL_PLANE_LABEL: &str = "node-role.kubernetes.io/control-plane";

/// Reads of an unchanged list between two reads of the zone.
const RECORD_ROUNDS: u32 = 24;

/// Reads of an unchanged list between two calls of EC2, which knows public addresses.
const ADDRESS_ROUNDS: u32 = 120;

/// The records of a hosted zone, as a trait that tests replace.
pub trait ZoneRecords: Send + Sync + 'static {
    /// Reads the records of these names.
    fn read_names(
        &self,
        names: &[RecordName],
    ) -> impl Future<Output = Result<PublishedRecords, Failure>> + Send;

    /// Writes addresses, all or none.
    fn write_names(
        &self,
        names: &[AddressRecord],
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A hosted zone of Route 53.
#[derive(Clone, Debug)]
pub struct Route53 {
    pub clients: Clients,
    /// Id of the zone.
    pub zone: String,
}

impl ZoneRecords for Route53 {
    async fn read_names(&self, names: &[RecordName]) -> Result<PublishedRecords, Failure> {
        dns::read_addresses(&self.clients, &self.zone, names).await
    }

    async fn write_names(&self, names: &[AddressRecord]) -> Result<(), Failure> {
        dns::publish_addresses(&self.clients, &self.zone, names).await
    }
}

/// Key of the completed spec in the state store.
const COMPLETED: &str = "cluster-completed.spec";

/// The completed spec, of which each reader names the fields that it needs.
#[derive(Deserialize)]
struct CompletedSpec<T> {
    spec: T,
}

/// The fields that determine the hosted zone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ZoneSpec {
    dns_zone: Option<String>,
    topology: TopologySpec,
}

#[derive(Deserialize)]
struct TopologySpec {
    dns: DnsSpec,
}

#[derive(Deserialize)]
struct DnsSpec {
    r#type: String,
}

/// Reads the text of the completed spec.
pub(crate) async fn read_completed_spec(store: &Store) -> anyhow::Result<String> {
    let object = store.get(COMPLETED).await?;
    let object = object.with_context(|| format!("the state store has no {COMPLETED}"))?;
    String::from_utf8(object.bytes).with_context(|| format!("{COMPLETED} is not text"))
}

/// Parses fields of `spec` in the text of the completed spec.
pub(crate) fn parse_completed_fields<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    let completed: CompletedSpec<T> = read_as(text).with_context(|| {
        format!("{COMPLETED} cannot be parsed; another release may have written it")
    })?;
    Ok(completed.spec)
}

/// Reads the id of the cluster's hosted zone from the completed spec; `None` if the cluster has none.
pub async fn read_zone_id(store: &Store) -> anyhow::Result<Option<String>> {
    parse_zone_id(&read_completed_spec(store).await?)
}

/// The id of the cluster's hosted zone in the text of the completed spec; `None` if the cluster has none.
pub(crate) fn parse_zone_id(text: &str) -> anyhow::Result<Option<String>> {
    let ZoneSpec { dns_zone, topology } = parse_completed_fields(text)?;
    let zone = dns_zone.filter(|_| topology.dns.r#type != "None");
    if let Some(name) = zone.as_ref().filter(|zone| zone.contains('.')) {
        bail!(
            "{COMPLETED} has the name {name} of the hosted zone in place of its id, because another release wrote it: run `kctl update --yes`"
        );
    }
    Ok(zone)
}

/// The list of ready API servers, as a trait that tests replace.
pub trait ApiServers: Send + Sync + 'static {
    /// Addresses of ready API servers, in the family of the cluster; `None` while the local one is not ready, because its list may be old.
    fn ready_addresses(
        &self,
    ) -> impl Future<Output = anyhow::Result<Option<BTreeSet<IpAddr>>>> + Send;
}

/// The API's list of its own servers: the endpoints of the Service `kubernetes`. Each API server adds itself once its `/readyz`
/// succeeds, renews the entry every ten seconds under an etcd lease of fifteen seconds, and removes itself when it ends. The others
/// remove entries whose lease has expired
/// (<https://github.com/kubernetes/kubernetes/tree/master/pkg/controlplane/controller/kubernetesservice> and
/// `pkg/controlplane/reconcilers/lease.go`). etcd measures the time, so clocks of instances do not matter.
pub struct ApiEndpoints {
    /// Access to the local API server.
    pub access: ApiAccess,
    /// Whether the local API server is ready.
    pub ready: watch::Receiver<bool>,
}

impl ApiServers for ApiEndpoints {
    async fn ready_addresses(&self) -> anyhow::Result<Option<BTreeSet<IpAddr>>> {
        if !*self.ready.borrow() {
            return Ok(None);
        }
        let client = tokio::time::timeout(TIMEOUT, self.access.client()).await;
        let client = client.context("the API server timed out")??.client;
        let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), "default");
        let reply = tokio::time::timeout(TIMEOUT, slices.get_opt("kubernetes")).await;
        let slice = reply
            .context("the API server timed out on the list of ready API servers")?
            .context("could not read the list of ready API servers")?;
        let Some(slice) = slice else { return Ok(None) };
        let nodes: Api<Node> = Api::all(client);
        let control_planes = ListParams::default().labels(CONTROL_PLANE_LABEL);
        let reply = tokio::time::timeout(TIMEOUT, nodes.list(&control_planes)).await;
        let nodes = reply
            .context("the API server timed out on the list of control planes")?
            .context("could not read the list of control planes")?;
        Ok(Some(without_replaced(
            ready_endpoints(&slice),
            &nodes.items,
        )))
    }
}

/// The addresses but those of control planes that a rolling update replaces, so that clients leave them before they end. All, if
/// no other one is ready.
fn without_replaced(ready: BTreeSet<IpAddr>, control_planes: &[Node]) -> BTreeSet<IpAddr> {
    let is_replaced = |node: &&Node| {
        let annotations = node.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(ROLLING_UPDATE_ANNOTATION))
    };
    let replaced: BTreeSet<IpAddr> = control_planes
        .iter()
        .filter(is_replaced)
        .flat_map(|node| node.status.iter().flat_map(|status| &status.addresses))
        .flatten()
        .filter_map(|address| address.address.parse().ok())
        .collect();
    let staying: BTreeSet<IpAddr> = ready.difference(&replaced).copied().collect();
    if staying.is_empty() { ready } else { staying }
}

/// The addresses of ready endpoints.
fn ready_endpoints(slice: &EndpointSlice) -> BTreeSet<IpAddr> {
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

/// Inputs of the role.
#[derive(Debug)]
pub struct ZonePublisher<'a, E, R, A> {
    pub ec2: &'a E,
    /// Records of the zone.
    pub records: &'a R,
    /// List of ready API servers.
    pub servers: &'a A,
    /// NodeConfig of this instance.
    pub config: &'a NodeConfig,
    /// Time between reads of the list, and the sleep function.
    pub pace: (Duration, Sleep),
}

impl<E: Ec2, R: ZoneRecords, A: ApiServers> ZonePublisher<'_, E, R, A> {
    /// Keeps the names up to date until a call fails.
    pub async fn keep_published(&self) -> anyhow::Result<()> {
        let role_log = RoleLog::for_role("dns");
        let wanted = followed_names(self.config);
        let mut before = BTreeSet::new();
        let mut instances: Vec<Instance> = Vec::new();
        let (mut record_rounds, mut address_rounds, mut patience) = (0, 0, 1);
        loop {
            let ready = self.servers.ready_addresses().await?.unwrap_or_default();
            if !ready.is_empty() {
                (record_rounds, address_rounds) = (record_rounds + 1, address_rounds + 1);
                if ready != before {
                    (record_rounds, address_rounds, patience) = (RECORD_ROUNDS, ADDRESS_ROUNDS, 1);
                }
                let known = |address: &IpAddr| instance_at(*address, &instances).is_some();
                let due = address_rounds >= ADDRESS_ROUNDS;
                if due || (!ready.iter().all(known) && address_rounds >= patience) {
                    instances = control_planes(self.ec2, &self.config.cluster).await?;
                    // The pause doubles while EC2 does not show an instance.
                    patience = (patience * 2).min(RECORD_ROUNDS);
                    (record_rounds, address_rounds) = (RECORD_ROUNDS, 0);
                }
                if record_rounds >= RECORD_ROUNDS {
                    let published = self.read_zone(&wanted).await?;
                    let mut changes = needed_changes(&wanted, &ready, &instances, &published);
                    if !changes.is_empty() && address_rounds > 0 {
                        // What another protokube wrote may come from a newer answer of EC2.
                        instances = control_planes(self.ec2, &self.config.cluster).await?;
                        address_rounds = 0;
                        changes = needed_changes(&wanted, &ready, &instances, &published);
                    }
                    write_changes(self.records, &changes, &role_log).await?;
                    before = ready;
                    record_rounds = 0;
                }
            }
            let (pause, sleep) = self.pace;
            sleep(pause).await;
        }
    }

    async fn read_zone(&self, wanted: &[FollowedName]) -> Result<PublishedRecords, Failure> {
        let names: Vec<RecordName> = wanted.iter().map(|one| one.record.clone()).collect();
        self.records.read_names(&names).await
    }
}

/// Writes changes, if there are any, and reports them.
pub(super) async fn write_changes(
    records: &impl ZoneRecords,
    changes: &[AddressRecord],
    role_log: &RoleLog,
) -> anyhow::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    records.write_names(changes).await?;
    let descriptions = changes.iter().map(|one| {
        let addresses: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
        format!("{} {}", one.name, addresses.join(" "))
    });
    role_log.report_status(
        Status::Finished,
        &descriptions.collect::<Vec<_>>().join(", "),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(address: &str, annotations: &Value) -> Node {
        serde_json::from_value(json!({
            "metadata": {"annotations": annotations},
            "status": {"addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": "a"}]},
        }))
        .unwrap()
    }

    #[test]
    fn names_leave_a_control_plane_that_is_replaced_unless_it_is_the_only_one() {
        let ready = |all: &[&str]| -> BTreeSet<IpAddr> {
            all.iter().map(|one| one.parse().unwrap()).collect()
        };
        let marked = json!({ROLLING_UPDATE_ANNOTATION: "{}"});
        let nodes = [node("10.0.0.1", &marked), node("10.0.0.2", &json!({}))];
        assert_eq!(
            without_replaced(ready(&["10.0.0.1", "10.0.0.2"]), &nodes),
            ready(&["10.0.0.2"])
        );
        assert_eq!(
            without_replaced(ready(&["10.0.0.1"]), &nodes),
            ready(&["10.0.0.1"])
        );
    }
}
