//! The NodeConfigs in the state store that instances were launched with.

use super::session::Session;
use crate::error::CommandError;
use crate::state::{ClusterState, store_error};
use aws_client::store::Entry;

/// Key of the NodeConfig to which user data refers, by its hash.
pub fn find_node_config(state: &ClusterState, user_data: &str) -> Option<String> {
    let folder = state.keys.key_below("igconfig/");
    let named = |entry: &&Entry| {
        let hash = entry.key.strip_prefix(&folder).and_then(|rest| {
            let (_, hash) = rest.rsplit_once("/nodeupconfig-")?;
            hash.strip_suffix(".yaml")
        });
        hash.is_some_and(|hash| user_data.contains(hash))
    };
    let entry = state.entries.iter().find(named)?;
    Some(entry.key.clone())
}

/// Reads a stored NodeConfig.
pub async fn read_node_config(
    key: &str,
    session: &Session<'_>,
) -> Result<Option<String>, CommandError> {
    let object = session.store.get(key).await.map_err(store_error)?;
    Ok(object.map(|object| String::from_utf8_lossy(&object.bytes).into_owned()))
}
