//! Configuration and clients of this control plane, which all roles share.

use crate::api::{ApiAccess, api_server_url};
use crate::arguments::Arguments;
use crate::identity::system_clock;
use crate::readiness::ApiReadiness;
use anyhow::{Context, bail};
use aws_client::ec2_query::Ec2QueryClient;
use aws_client::store::{Owner, Store};
use aws_client::{Clients, Imds};
use etcd_member::backup::ObservedByEtcd;
use etcd_member::{ListedRecords, SettledClusters};
use host::{Host, LocalSystem};
use node::config::{BootConfig, NodeConfig, read_boot_config, read_node_config};
use node::pki::certificate_id;
use protokube_role::current_waits::CurrentWaits;
use protokube_role::probe::Probe;
use protokube_role::signed_objects::SignedObjects;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// Search path for programs, independent of the service's environment: the tools of this release first, so that `ctr` is of the
/// containerd that nodeup installed. An image that brings its own containerd has its own ctr.
const PROGRAMS: &str =
    "/opt/kctl/tools/current/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// State that all roles share.
#[derive(Debug)]
pub struct DaemonState {
    /// NodeConfig of this instance.
    pub config: Arc<NodeConfig>,
    /// Id of the cluster's certificate authority.
    pub incarnation: String,
    /// Instance id, `i-...`.
    pub instance: String,
    pub zone: String,
    /// Address of the instance in the family of the cluster: its private one, or its IPv6 address.
    pub address: IpAddr,
    pub clients: Clients,
    /// The metadata service.
    pub imds: Imds,
    /// Client of EC2 and STS.
    pub ec2: Arc<Ec2QueryClient>,
    /// State store at the cluster's base.
    pub store: Store,
    /// Signed objects of the state store.
    pub signed: SignedObjects,
    /// Access to this instance's API server.
    pub api: ApiAccess,
    /// Access to the instance.
    pub host: Host,
    /// Client for health checks.
    pub probe: Probe,
    /// Which etcd clusters are settled.
    pub settled: Arc<SettledClusters>,
    /// Versions of the formation records.
    pub records: Arc<ListedRecords>,
    /// Whether the API server is ready.
    pub ready: Arc<ApiReadiness>,
    /// What the roles wait for or refuse.
    pub current_waits: Arc<CurrentWaits>,
    /// What is known of the backups of etcd.
    pub backups: Arc<ObservedByEtcd>,
}

/// Reads both configurations, and verifies NodeConfig by its sha256 in BootConfig.
pub(crate) fn read_configuration(
    arguments: &Arguments,
) -> anyhow::Result<(BootConfig, NodeConfig)> {
    let text = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
    };
    let boot = read_boot_config(&text(&arguments.boot_config)?)?;
    let config =
        read_node_config(&text(&arguments.node_config)?, &boot.node_config).with_context(|| {
            format!(
                "{} is not the NodeConfig of this instance",
                arguments.node_config.display()
            )
        })?;
    if config.control_plane.is_none() {
        bail!(
            "this instance belongs to the instance group {}, which is not a control plane",
            config.group
        );
    }
    Ok((boot, config))
}

/// Collects the facts of this instance from the metadata service and creates clients. `attempt_log` receives the cause of each
/// failed attempt to reach the service.
pub(crate) async fn identify_instance(
    boot: &BootConfig,
    config: NodeConfig,
    attempt_log: &dyn Fn(&str),
) -> anyhow::Result<DaemonState> {
    let imds = Imds::find(attempt_log).await?;
    let get = async |path: &str| {
        let value = imds.get(path).await?;
        value.with_context(|| format!("the metadata service returned no {path}"))
    };
    let instance = get("meta-data/instance-id").await?;
    let zone = get("meta-data/placement/availability-zone").await?;
    let family = if config.ipv6 { "ipv6" } else { "local-ipv4" };
    let address = get(&format!("meta-data/{family}")).await?;
    let region = imds.region().await?;
    let clients = Clients::on_instance(region.as_deref(), &imds).await;
    let base = boot.config_base.as_ref();
    let base = base.context("BootConfig has no state store (configBase)")?;
    let store = Store::open(base, &clients)?.owned_by(Owner::from(boot.state_owner.clone()));
    let url = api_server_url(&config);
    Ok(DaemonState {
        signed: SignedObjects::new(&store, &config.cluster),
        incarnation: certificate_id(&config.ca_certificates)
            .context("NodeConfig has no certificate authority that can be read")?,
        config: Arc::new(config),
        instance,
        zone,
        address: address
            .trim()
            .parse()
            .with_context(|| format!("{address} is not a valid IP address"))?,
        ec2: Arc::new(Ec2QueryClient::new(&clients, &imds).await?),
        api: ApiAccess::issuing(&store, url, system_clock()),
        store,
        clients,
        imds,
        host: Host::new("/", Arc::new(LocalSystem::with_programs(PROGRAMS))),
        probe: Probe::new()?,
        settled: Arc::default(),
        records: Arc::default(),
        ready: Arc::default(),
        current_waits: Arc::default(),
        backups: Arc::default(),
    })
}

#[cfg(test)]
mod tests {
    use node::components::TOOLS;

    #[test]
    fn programs_are_first_those_of_the_release() {
        assert!(super::PROGRAMS.starts_with(&format!("{TOOLS}/bin:")));
    }
}
