//! Which keys the instances of a cluster have: by the NodeConfig that each was launched with, and that its group would launch the next one with.

use super::super::existing_cluster::ExistingCluster;
use super::super::node_configs::{find_node_config, read_node_config};
use super::super::observe::aws_error;
use super::super::session::Session;
use crate::error::CommandError;
use aws_cloud::fleet::{UsedUserData, observe_fleet, user_data_of_groups, user_data_of_instances};
use fleet::{AwsFleet, KeyHolder};
use node::config::{NodeConfig, read_newest_node_config};
use spec::api::enums::InstanceGroupRole;
use std::collections::BTreeMap;

/// Reads what every instance and every group has of keys. Bastions have none.
pub async fn read_key_holders(
    cluster: &ExistingCluster,
    session: &Session<'_>,
) -> Result<Vec<KeyHolder>, CommandError> {
    let fleet = observe_fleet(&cluster.clients, cluster.state.name()).await;
    let mut fleet = fleet.map_err(aws_error)?;
    drop_bastions(cluster, &mut fleet);
    let (instances, groups) = tokio::try_join!(
        user_data_of_instances(&cluster.clients, &fleet),
        user_data_of_groups(&cluster.clients, &fleet),
    )
    .map_err(aws_error)?;
    let mut configs = Configs::default();
    let mut holders = Vec::new();
    for used in instances {
        let of = fleet.instances.iter().find(|one| one.id == used.name);
        holders.push(KeyHolder {
            config: configs.find(cluster, &used, session).await?,
            group: of.and_then(|one| one.instance_group.clone()),
            launched: of.and_then(|one| one.launched),
            name: used.name,
            is_next: false,
        });
    }
    for used in groups {
        let of = fleet
            .scaling_groups
            .iter()
            .find(|one| one.name == used.name);
        holders.push(KeyHolder {
            config: configs.find(cluster, &used, session).await?,
            group: of.and_then(|one| one.instance_group.clone()),
            launched: None,
            name: used.name,
            is_next: true,
        });
    }
    Ok(holders)
}

fn drop_bastions(cluster: &ExistingCluster, fleet: &mut AwsFleet) {
    let groups = &cluster.state.groups;
    let is_bastion = |name: &Option<String>| {
        groups.iter().any(|group| {
            Some(group.object.name()) == name.as_deref()
                && group.object.spec.role == Some(InstanceGroupRole::Bastion)
        })
    };
    fleet
        .instances
        .retain(|one| !is_bastion(&one.instance_group));
    fleet
        .scaling_groups
        .retain(|one| !is_bastion(&one.instance_group));
}

/// NodeConfigs that were read, by key.
#[derive(Default)]
struct Configs(BTreeMap<String, Option<NodeConfig>>);

impl Configs {
    async fn find(
        &mut self,
        cluster: &ExistingCluster,
        used: &UsedUserData,
        session: &Session<'_>,
    ) -> Result<Option<NodeConfig>, CommandError> {
        let text = used.user_data.as_deref();
        let Some(key) = text.and_then(|text| find_node_config(&cluster.state, text)) else {
            return Ok(None);
        };
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        // One that this release cannot read is not known, which is said of the instance.
        let text = read_node_config(&key, session).await?;
        let config = text.and_then(|text| read_newest_node_config(&text).ok());
        self.0.insert(key, config.clone());
        Ok(config)
    }
}
