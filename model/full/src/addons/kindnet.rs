//! kindnet, the network between pods of different nodes of one subnet by routes, and NetworkPolicies.

use super::manifest::AddonName;
use super::permissions::turn_check_off;
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use serde::{Deserialize, Serialize};
use templates::Template;

/// Settings of kindnet: `spec.networking.kindnet`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kindnet {
    pub image: String,
    /// `None`: as kindnet does by itself.
    pub network_policies: Option<bool>,
    pub nat64: bool,
    /// Packets after which a connection takes the fast path; 0: none does.
    pub fast_path_threshold: i32,
    /// Traffic of pods to other places gets the address of their node.
    pub masquerade: bool,
    /// Those other places are outside of these ranges.
    pub non_masquerade_cidrs: Vec<String>,
    pub log_level: i32,
    /// containerd tells plugins of new pods.
    pub nri: bool,
}

#[derive(Serialize)]
struct Manifest {
    image: String,
    command: Vec<String>,
    api_host: String,
    region: String,
}

impl Template for Manifest {
    const NAME: &'static str = "kindnet/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("kindnet/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(kindnet) = &full.addons.kindnet else {
        return Ok(None);
    };
    let named = AddonName {
        name: "networking.kindnet",
        id: "k8s-1.32",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    let manifest = named.render_template(&Manifest {
        image: kindnet.image.clone(),
        command: command(kindnet),
        api_host: full.dns.api_internal_name.clone(),
        region: full.placement.region.clone(),
    })?;
    named.make_addon(full, &[manifest]).map(Some)
}

fn command(kindnet: &Kindnet) -> Vec<String> {
    let mut all = vec![
        "/bin/kindnetd".to_owned(),
        "--hostname-override=$(NODE_NAME)".to_owned(),
        format!("--v={}", kindnet.log_level),
    ];
    if let Some(enforced) = kindnet.network_policies {
        all.push(format!("--network-policy={enforced}"));
    }
    all.push("--dns-caching=false".to_owned());
    all.push(format!("--nat64={}", kindnet.nat64));
    all.push(format!(
        "--fastpath-threshold={}",
        kindnet.fast_path_threshold
    ));
    all.push(format!("--masquerading={}", kindnet.masquerade));
    if !kindnet.non_masquerade_cidrs.is_empty() {
        let ranges = kindnet.non_masquerade_cidrs.join(",");
        all.push(format!("--no-masquerade-cidr={ranges}"));
    }
    if !kindnet.nri {
        all.push("--disable-nri=true".to_owned());
    }
    all
}

pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    let kindnet = full.addons.kindnet.iter();
    kindnet.map(|_| turn_check_off(full)).collect()
}
