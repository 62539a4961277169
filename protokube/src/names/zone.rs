//! The cluster's names in its hosted zone: compared every few seconds, written only on change. Route 53 answers five calls a second for a
//! whole account, so it is asked only when machines changed, and now and then.

use super::records::{Published, Wanted, changes, wanted};
use crate::ec2::{Ec2, control_planes};
use crate::log::Voice;
use anyhow::{Context, bail};
use aws::Clients;
use aws::dns::{self, Addresses};
use aws::machine::Instance;
use aws::store::Store;
use model::api::cluster::ClusterSpec;
use model::api::{DnsType, Object};
use model::engine::Failure;
use model::node::NodeConfig;
use model::read::read_documents;
use model::report::Status;
use std::future::Future;
use std::time::Duration;

/// Looks at the machines between two looks at the zone, if no machine changes.
const LOOKS: u32 = 24;

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

/// The id of the cluster's hosted zone, as its completed spec in the store says; `None`: the cluster has none.
pub async fn zone_of(store: &Store, clients: &Clients) -> anyhow::Result<Option<String>> {
    const KEY: &str = "cluster-completed.spec";
    let object = store.get(KEY).await?;
    let object = object.with_context(|| format!("the state store has no {KEY}"))?;
    let text = String::from_utf8(object.bytes).with_context(|| format!("{KEY} is not text"))?;
    let documents = read_documents(KEY, &text)
        .ok()
        .with_context(|| format!("{KEY} cannot be read: another release wrote it"))?;
    let spec = documents.into_iter().find_map(|one| match one.object {
        Object::Cluster(cluster) => Some(cluster.spec),
        _ => None,
    });
    let spec = spec.with_context(|| format!("{KEY} holds no Cluster"))?;
    let Some((said, private)) = said(&spec) else {
        return Ok(None);
    };
    if !said.contains('.') {
        return Ok(Some(said));
    }
    match dns::zone_id(clients, &said, private).await? {
        Some(id) => Ok(Some(id)),
        None => bail!("there is no hosted zone {said}, which spec.dnsZone names"),
    }
}

/// The zone that a spec names, by id or by name, and whether it is a private one.
fn said(spec: &ClusterSpec) -> Option<(String, bool)> {
    let topology = spec.topology.as_ref();
    let kind = topology
        .and_then(|of| of.dns.as_ref())
        .and_then(|dns| dns.type_);
    let zone = spec
        .dns_zone
        .as_deref()
        .filter(|_| kind != Some(DnsType::None))?;
    let zone = zone
        .trim_start_matches("/hostedzone/")
        .trim_end_matches('.');
    Some((zone.to_owned(), kind == Some(DnsType::Private)))
}

/// Keeps the names in the zone.
pub async fn publish(
    ec2: &impl Ec2,
    records: &impl Records,
    config: &NodeConfig,
    pace: Duration,
) -> anyhow::Result<()> {
    let voice = Voice::of("dns");
    let wanted = wanted(config);
    let mut before: Option<Vec<Instance>> = None;
    let mut looks = 0;
    loop {
        let mut machines = control_planes(ec2, &config.cluster).await?;
        machines.sort_by(|one, other| one.id.cmp(&other.id));
        looks += 1;
        if before.as_ref() != Some(&machines) || looks >= LOOKS {
            compare(records, &wanted, &machines, &voice).await?;
            before = Some(machines);
            looks = 0;
        }
        tokio::time::sleep(pace).await;
    }
}

/// One look at the zone, and what it needs.
async fn compare(
    records: &impl Records,
    wanted: &[Wanted],
    machines: &[Instance],
    voice: &Voice,
) -> anyhow::Result<()> {
    let names: Vec<String> = wanted.iter().map(|one| one.name.clone()).collect();
    let published = records.read(&names).await?;
    let changes = changes(wanted, machines, &published);
    if changes.is_empty() {
        return Ok(());
    }
    records.write(&changes).await?;
    let said = changes.iter().map(|one| {
        let addresses: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
        format!("{} {}", one.name, addresses.join(" "))
    });
    voice.say(Status::Finished, &said.collect::<Vec<_>>().join(", "));
    Ok(())
}
