//! The key of IPsec: a Secret, from the secret `ciliumpassword` of the state store. An addon of its own, so that another key changes
//! nothing of the network's: agents take it over by themselves.

use crate::FullSpec;
use crate::addons::manifest::AddonName;
use crate::addons::{Addon, Error};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node::addons::hide_secrets;
use node::secret::Secret;
use node::yaml::to_yaml;
use serde_json::json;

/// Adds the key to the addons of a cluster whose packets are encrypted with it.
pub fn add_ipsec_key(
    full: &FullSpec,
    addons: &mut Vec<Addon>,
    key: Option<&Secret>,
) -> Result<(), Error> {
    let cilium = full.addons.cilium.as_ref();
    let (true, Some(key)) = (cilium.is_some_and(|cilium| cilium.ipsec), key) else {
        return Ok(());
    };
    let named = AddonName {
        name: "ipsec.networking.cilium.io",
        id: "k8s-1.16",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cilium-ipsec-keys", "namespace": "kube-system"},
        "data": {"keys": STANDARD.encode(key.reveal())},
    });
    let addon = named.make_addon(full, &[to_yaml(&object)?])?;
    let shown = hide_secrets(&addon.manifest);
    // The agents' pods wait for it.
    let before = addons.iter().position(|one| one.name == super::NAME);
    addons.insert(before.unwrap_or_default(), Addon { shown, ..addon });
    Ok(())
}
