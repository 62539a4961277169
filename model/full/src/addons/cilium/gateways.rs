//! cilium's class of Gateways. An addon of its own, because the user installs the CustomResourceDefinitions of the Gateway API, as in kOps,
//! and the network must not wait for them.

use crate::FullSpec;
use crate::addons::manifest::AddonName;
use crate::addons::{Addon, Error};

const MANIFEST: &str = include_str!("gateways.yaml");

pub(in crate::addons) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let cilium = full.addons.cilium.as_ref();
    if !cilium.is_some_and(|cilium| cilium.gateways) {
        return Ok(None);
    }
    let named = AddonName {
        name: "gateway.networking.cilium.io",
        id: "k8s-1.16",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    named.make_addon(full, &[MANIFEST.to_owned()]).map(Some)
}
