//! The lab's network: one namespace that is every VPC's router, one per host, security groups and balancers as packet
//! filters between them. `Router::apply` makes it match a world; the rest runs beside it (health checks, DHCP).

pub mod advertise;
pub mod attach;
pub mod balancing;
pub mod commands;
pub mod dhcp;
pub mod dhcp6;
pub mod error;
pub mod family;
pub mod faults;
pub mod health;
pub mod names;
pub mod netns;
pub mod routing;
pub mod ruleset;
pub mod snapshot;
pub mod topology;

pub use attach::{attach_host, attach_machine, detach_host};
pub use balancing::TargetHealth;
pub use error::{Error, Result};

use crate::aws_state::AwsState;
use crate::lab_paths::LabPaths;
use crate::ledger::Ledger;
use family::Family;
use names::INTERNET_LINK;
use topology::Topology;

/// A lab's router: its namespace, and the ruleset that it loaded last.
#[derive(Debug)]
pub struct Router {
    place: LabPaths,
    loaded: Option<String>,
}

/// What an application changed; nothing when the world was applied before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AppliedState {
    /// Lines of `ip -batch`.
    pub routing: Vec<String>,
    pub ruleset: bool,
    /// What of the world the lab does not do.
    pub warnings: Vec<String>,
}

impl Router {
    /// Makes the router's namespace, or takes it over from a daemon that died. Until a world is applied nothing passes.
    pub fn set_up(place: &LabPaths, ledger: &Ledger) -> Result<Self> {
        let netns = place.router_netns();
        netns::add_netns(ledger, &netns)?;
        let set = |name: &str, value| (name.to_owned(), value);
        let settings = [
            set("ipv4/ip_forward", "1"),
            // Sources are checked by security groups' rules, per interface, as `source_dest_check` says.
            set("ipv4/conf/all/rp_filter", "0"),
            set("ipv4/conf/default/rp_filter", "0"),
            set("ipv4/conf/default/proxy_arp", "1"),
            set("ipv4/conf/all/send_redirects", "0"),
            set("ipv4/conf/default/send_redirects", "0"),
            set("ipv6/conf/all/forwarding", "1"),
            // Link-local addresses of the router's links are there at once.
            set("ipv6/conf/default/accept_dad", "0"),
        ];
        netns::write_settings(&netns, &settings)?;
        let links = routing::observe_links(&netns)?;
        if !links.contains(INTERNET_LINK) {
            // Not every kernel has dummy devices; a pair whose other end nobody reads swallows as well.
            let peer = format!("{INTERNET_LINK}0");
            netns::run_ip(
                &netns,
                &[
                    "link",
                    "add",
                    INTERNET_LINK,
                    "type",
                    "veth",
                    "peer",
                    "name",
                    &peer,
                ],
            )?;
            netns::run_ip(&netns, &["link", "set", &peer, "arp", "off", "up"])?;
        }
        netns::run_ip(&netns, &["link", "set", INTERNET_LINK, "arp", "off", "up"])?;
        netns::run_ip(&netns, &["link", "set", "lo", "up"])?;
        // Conntrack's settings exist once a ruleset tracks connections.
        netns::load_ruleset(
            &netns,
            &ruleset::router_ruleset(
                &Topology::from_world(&AwsState::default())?,
                &TargetHealth::new(),
            ),
        )?;
        // What a lost packet makes look out of window still belongs to its connection.
        netns::write_settings(&netns, &[set("netfilter/nf_conntrack_tcp_be_liberal", "1")])?;
        Ok(Self {
            place: place.clone(),
            loaded: None,
        })
    }

    /// Makes filters, routes and addresses match the world. Hosts not attached yet get their routes once they are and
    /// this is called again. Filters change atomically; established connections live on.
    pub fn apply_world(&mut self, world: &AwsState, health: &TargetHealth) -> Result<AppliedState> {
        let topology = Topology::from_world(world)?;
        let netns = self.place.router_netns();
        let text = ruleset::router_ruleset(&topology, health);
        let ruleset = self.loaded.as_ref() != Some(&text);
        if ruleset {
            netns::load_ruleset(&netns, &text)?;
            self.loaded = Some(text);
        }
        let routing = apply_routes(&netns, &topology)?;
        snapshot::write_snapshot(&self.place, world, health, &topology.warnings)?;
        if ruleset || !routing.is_empty() {
            faults::reload_tables(&self.place)?;
        }
        Ok(AppliedState {
            routing,
            ruleset,
            warnings: topology.warnings,
        })
    }
}

fn apply_routes(netns: &str, topology: &Topology<'_>) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for family in Family::BOTH {
        all.extend(netns::retry_until_settled(|| {
            let links = routing::observe_links(netns)?;
            let found = routing::observe_routing(netns, family)?;
            let desired = routing::desired_routing(topology, &links, family);
            let lines = routing::plan_changes(&found, &desired);
            netns::ip_batch(netns, family, &lines)?;
            Ok(lines)
        })?);
    }
    Ok(all)
}
