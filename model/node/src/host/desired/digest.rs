//! Digests of what units read at start.

use crate::digest::sha256_hex;
use crate::host::{Error, HostObject, HostResource};
use engine::Id;
use std::collections::BTreeMap;

/// Sets the digest of each unit: over its own text and the desired state of everything that it reads at start. The digest changes
/// exactly when the unit must be restarted.
pub(super) fn with_digests(all: Vec<HostResource>) -> Result<Vec<HostResource>, Error> {
    let mut texts: BTreeMap<Id, String> = BTreeMap::new();
    for resource in &all {
        if resource.thing.is_read_at_start() {
            texts.insert(resource.thing.id(), serde_json::to_string(&resource.thing)?);
        }
    }
    let digest = |mut resource: HostResource| {
        if let HostObject::Unit(unit) = &mut resource.thing {
            let needed = resource.needs.iter().filter_map(|need| texts.get(need));
            let own = unit.content.clone().unwrap_or_default();
            let text: Vec<&str> = needed.map(String::as_str).chain([own.as_str()]).collect();
            unit.starts_with = if unit.enabled {
                sha256_hex(text.join("\n"))
            } else {
                String::new()
            };
        }
        resource
    };
    Ok(all.into_iter().map(digest).collect())
}
