//! What changes on the instances that are to be replaced: the NodeConfig, image and instance type that each was launched with,
//! compared with those that its group launches.

use super::watch::View;
use crate::commands::existing_cluster::ExistingCluster;
use crate::commands::node_configs::{find_node_config, read_node_config};
use crate::commands::observe::aws_error;
use crate::commands::session::Session;
use crate::error::CommandError;
use aws_cloud::fleet::{UsedUserData, user_data_of_groups, user_data_of_instances};
use engine::{FieldChange, changes};
use fleet::{AwsFleet, InstanceStatus};
use node::yaml::read_as;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The changes by instance. Instances of which too little is known are left out.
pub type Differences = BTreeMap<String, Vec<FieldChange>>;

/// Reads what changes on the outdated instances: a paged call per launch template, and each NodeConfig once.
pub async fn read_differences(
    cluster: &ExistingCluster,
    view: &View,
    session: &Session<'_>,
) -> Result<Differences, CommandError> {
    let outdated = |id: &str| {
        let mut all = view.observed.instances.iter();
        let mut warm = view.observed.warm.iter();
        all.any(|one| one.id == id && one.is_outdated())
            || warm.any(|one| one.id == id && one.is_outdated())
    };
    let all = view.fleet.instances.iter();
    let instances: Vec<&InstanceStatus> = all.filter(|one| outdated(&one.instance.id)).collect();
    if instances.is_empty() {
        return Ok(Differences::new());
    }
    let fleet = AwsFleet {
        scaling_groups: view.fleet.scaling_groups.clone(),
        instances: instances.iter().map(|one| one.instance.clone()).collect(),
    };
    let of_instances = user_data_of_instances(&cluster.clients, &fleet).await;
    let of_groups = user_data_of_groups(&cluster.clients, &fleet).await;
    let (of_instances, of_groups) = (
        of_instances.map_err(aws_error)?,
        of_groups.map_err(aws_error)?,
    );
    let mut configs = NodeConfigs::default();
    let mut found = Differences::new();
    for status in instances {
        let group = view.fleet.scaling_group(status.group());
        let old = of_instances
            .iter()
            .find(|one| one.name == status.instance.id);
        let new = of_groups
            .iter()
            .find(|one| group.is_some_and(|group| group.name == one.name));
        let (Some(old), Some(new)) = (old, new) else {
            continue;
        };
        let old = describe_launch(old, cluster, &mut configs, session).await?;
        let new = describe_launch(new, cluster, &mut configs, session).await?;
        found.insert(status.instance.id.clone(), changes(&old, &new));
    }
    Ok(found)
}

/// NodeConfigs by their key, with lists of named objects as maps, so that a new element does not shift the others.
type NodeConfigs = BTreeMap<String, Value>;

/// What an instance is launched with. A NodeConfig that is gone or unreadable counts as empty.
async fn describe_launch(
    used: &UsedUserData,
    cluster: &ExistingCluster,
    configs: &mut NodeConfigs,
    session: &Session<'_>,
) -> Result<Value, CommandError> {
    let user_data = used.user_data.as_deref().unwrap_or_default();
    let config = match find_node_config(&cluster.state, user_data) {
        Some(key) => match configs.get(&key) {
            Some(known) => known.clone(),
            None => {
                let text = read_node_config(&key, session).await?;
                let config = text.and_then(|text| read_as::<Value>(&text).ok());
                let config = config.map_or(Value::Null, name_elements);
                configs.insert(key, config.clone());
                config
            }
        },
        None => Value::Null,
    };
    let mut all = match config {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    all.insert("image".to_owned(), json!(used.image));
    all.insert("instanceType".to_owned(), json!(used.instance_type));
    Ok(Value::Object(all))
}

/// Turns every list whose elements have a name or a path into a map by it.
fn name_elements(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, name_elements(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(elements) => {
            let name = |element: &Value| {
                let name = element.get("name").or_else(|| element.get("path"))?;
                Some(name.as_str()?.to_owned())
            };
            let names: Option<Vec<String>> = elements.iter().map(name).collect();
            match names.filter(|names| !names.is_empty()) {
                Some(names) => names
                    .into_iter()
                    .zip(elements.into_iter().map(name_elements))
                    .collect::<Map<_, _>>()
                    .into(),
                None => Value::Array(elements),
            }
        }
        other => other,
    }
}
