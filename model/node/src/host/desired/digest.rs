//! What each unit is started with, as a digest.

use crate::config::sha256;
use crate::host::{Error, HostResource, Thing};
use engine::Id;
use std::collections::BTreeMap;

/// The same with each unit's digest over its own text and the desired state of everything it reads when it
/// starts. It differs exactly when the unit has to be started again.
pub(super) fn with_digests(all: Vec<HostResource>) -> Result<Vec<HostResource>, Error> {
    let mut texts: BTreeMap<Id, String> = BTreeMap::new();
    for resource in &all {
        if resource.thing.is_read_at_start() {
            texts.insert(resource.thing.id(), serde_json::to_string(&resource.thing)?);
        }
    }
    let digest = |mut resource: HostResource| {
        if let Thing::Unit(unit) = &mut resource.thing {
            let needed = resource.needs.iter().filter_map(|need| texts.get(need));
            let own = unit.content.clone().unwrap_or_default();
            let text: Vec<&str> = needed.map(String::as_str).chain([own.as_str()]).collect();
            unit.starts_with = if unit.enabled {
                sha256(&text.join("\n"))
            } else {
                String::new()
            };
        }
        resource
    };
    Ok(all.into_iter().map(digest).collect())
}
