//! Reads from the completed spec whether names of objects are published, where, and of which. A change of these settings needs no new
//! instance: the role reads them at each start and at intervals.

use crate::names::{followed_names, parse_completed_fields, parse_zone_id, read_completed_spec};
use aws_client::store::Store;
use node::components::EtcdMemberNames;
use node::config::NodeConfig;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The provider of `spec.externalDns` that is protokube: kOps' default.
const PROVIDER: &str = "dns-controller";

/// What to publish, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectNamesSettings {
    /// Id of the hosted zone.
    pub zone: String,
    /// Set identifier of the cluster's records.
    pub identifier: String,
    /// Hosts in the rules of Ingresses are published too.
    pub watch_ingress: bool,
    /// The one namespace whose objects count; `None`: all.
    pub namespace: Option<String>,
    /// Names that kctl and protokube publish, in lower case.
    pub reserved: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    #[serde(default)]
    external_dns: Option<ExternalDns>,
    #[serde(default)]
    master_public_name: Option<String>,
    #[serde(default)]
    master_internal_name: Option<String>,
    #[serde(default)]
    topology: Topology,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Topology {
    bastion: Bastion,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Bastion {
    bastion_public_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExternalDns {
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    disable: Option<bool>,
    #[serde(default)]
    watch_ingress: Option<bool>,
    #[serde(default)]
    watch_namespace: Option<String>,
}

/// The settings of the cluster; `None`: it has no hosted zone, another provider, or names of objects are off.
pub async fn read_settings(
    store: &Store,
    config: &NodeConfig,
) -> anyhow::Result<Option<ObjectNamesSettings>> {
    let completed = read_completed_spec(store).await?;
    let Some(zone) = parse_zone_id(&completed)? else {
        return Ok(None);
    };
    let names: Names = parse_completed_fields(&completed)?;
    let Some(dns) = names.external_dns else {
        return Ok(None);
    };
    if dns.provider.as_deref() != Some(PROVIDER) || dns.disable == Some(true) {
        return Ok(None);
    }
    let of_api = names.master_public_name.into_iter();
    let of_api = of_api.chain(names.master_internal_name);
    // Also before there are bastions.
    let of_bastions = names.topology.bastion.bastion_public_name.into_iter();
    let of_bastions = of_bastions.chain([node::names::dns::bastion_name(&config.cluster)]);
    let reserved = of_api
        .chain(of_bastions)
        .chain(
            followed_names(config)
                .into_iter()
                .map(|one| one.record.name),
        )
        .chain(member_hosts(config));
    Ok(Some(ObjectNamesSettings {
        zone,
        identifier: node::names::dns::record_identifier(&config.cluster),
        // As dns-controller's argument in kOps.
        watch_ingress: dns.watch_ingress == Some(true),
        namespace: dns.watch_namespace.filter(|one| !one.is_empty()),
        reserved: reserved
            .map(|name| name.trim_end_matches('.').to_lowercase())
            .collect(),
    }))
}

/// The names of all members of etcd.
fn member_hosts(config: &NodeConfig) -> Vec<String> {
    let etcd = config.control_plane.iter().flat_map(|own| &own.etcd);
    etcd.flat_map(|etcd| {
        let names = EtcdMemberNames::from_config(etcd, &config.cluster);
        names.member_hosts().collect::<Vec<_>>()
    })
    .collect()
}
