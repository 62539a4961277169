//! A network plugin, a way between nodes, or a family of addresses, other than the one that a cluster runs: instances with the old one and
//! with the new one would not reach each other.

use crate::api::Cluster;
use crate::read::Problem;
use serde_json::Value;

/// Fields by which all instances send packets to each other at once, and what they are if they are not set.
const WAYS: [(&str, &str, &str); 3] = [
    ("calico", "encapsulationMode", "ipip"),
    ("cilium", "tunnel", "vxlan"),
    ("flannel", "backend", "vxlan"),
];

/// A problem if the completed spec `wanted` has another network than that of the last update.
pub fn find_network_change(wanted: &Cluster, last: &Cluster) -> Option<Problem> {
    let networks = [
        ("spec.nonMasqueradeCIDR", family(wanted), family(last)),
        ("spec.networking", describe(wanted), describe(last)),
    ];
    let mut networks = networks.into_iter();
    let (path, wanted, last) = networks.find(|(_, wanted, last)| wanted != last)?;
    let problem = Problem::error(
        path,
        format!(
            "the cluster runs {last}: its instances and new ones with {wanted} would not reach each other"
        ),
    );
    Some(problem.hint(
        "set it back; for another network, make a new cluster and move there what runs in this one",
    ))
}

/// Of the addresses of Nodes, pods and Services.
fn family(cluster: &Cluster) -> String {
    if cluster.spec.is_ipv6() {
        "IPv6"
    } else {
        "IPv4"
    }
    .to_owned()
}

/// The plugins that are set, each with its way between nodes: `flannel (vxlan)`.
fn describe(cluster: &Cluster) -> String {
    // A type of the API has a JSON form.
    let networking = serde_json::to_value(&cluster.spec.networking).unwrap_or_default();
    let mut chosen = Vec::new();
    for (name, settings) in networking.as_object().into_iter().flatten() {
        if settings.is_null() {
            continue;
        }
        let way = WAYS.iter().find(|(plugin, ..)| plugin == name);
        let way = way.map(|(_, field, usual)| {
            let said = settings.get(*field).and_then(Value::as_str);
            said.unwrap_or(usual)
        });
        chosen.push(way.map_or_else(|| name.clone(), |way| format!("{name} ({way})")));
    }
    chosen.join(" and ")
}
