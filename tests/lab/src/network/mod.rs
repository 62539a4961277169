//! The lab's network: one namespace that is every VPC's router, one per host, security groups and balancers as packet
//! filters between them. `Router::apply` makes it match a world; the rest runs beside it (health checks, DHCP).

pub mod attach;
pub mod balancing;
pub mod commands;
pub mod dhcp;
pub mod error;
pub mod faults;
pub mod health;
pub mod names;
pub mod netns;
pub mod routing;
pub mod ruleset;
pub mod snapshot;
pub mod topology;

pub use attach::{attach_host, detach_host};
pub use balancing::Health;
pub use error::{Error, Result};

use crate::ledger::Ledger;
use crate::place::Place;
use crate::world::World;
use names::INTERNET_LINK;
use topology::Topology;

/// A lab's router: its namespace, and the ruleset that it loaded last.
#[derive(Debug)]
pub struct Router {
    place: Place,
    loaded: Option<String>,
}

/// What an application changed; nothing when the world was applied before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Lines of `ip -batch`.
    pub routing: Vec<String>,
    pub ruleset: bool,
    /// What of the world the lab does not do.
    pub warnings: Vec<String>,
}

impl Router {
    /// Makes the router's namespace, or takes it over from a daemon that died. Until a world is applied nothing passes.
    pub fn up(place: &Place, ledger: &Ledger) -> Result<Self> {
        let netns = place.router_netns();
        netns::add(ledger, &netns)?;
        let set = |name: &str, value| (name.to_owned(), value);
        let settings = [
            set("ipv4/ip_forward", "1"),
            // Sources are checked by security groups' rules, per interface, as `source_dest_check` says.
            set("ipv4/conf/all/rp_filter", "0"),
            set("ipv4/conf/default/rp_filter", "0"),
            set("ipv4/conf/default/proxy_arp", "1"),
            set("ipv4/conf/all/send_redirects", "0"),
            set("ipv4/conf/default/send_redirects", "0"),
            set("ipv6/conf/all/disable_ipv6", "1"),
            set("ipv6/conf/default/disable_ipv6", "1"),
        ];
        netns::set(&netns, &settings)?;
        let (links, _) = routing::observe(&netns)?;
        if !links.contains(INTERNET_LINK) {
            // Not every kernel has dummy devices; a pair whose other end nobody reads swallows as well.
            let peer = format!("{INTERNET_LINK}0");
            netns::ip(
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
            netns::ip(&netns, &["link", "set", &peer, "arp", "off", "up"])?;
        }
        netns::ip(&netns, &["link", "set", INTERNET_LINK, "arp", "off", "up"])?;
        netns::ip(&netns, &["link", "set", "lo", "up"])?;
        // Conntrack's settings exist once a ruleset tracks connections.
        netns::nft(
            &netns,
            &ruleset::ruleset(&Topology::of(&World::default())?, &Health::new()),
        )?;
        // What a lost packet makes look out of window still belongs to its connection.
        netns::set(&netns, &[set("netfilter/nf_conntrack_tcp_be_liberal", "1")])?;
        Ok(Self {
            place: place.clone(),
            loaded: None,
        })
    }

    /// Makes filters, routes and addresses match the world. Hosts not attached yet get their routes once they are and
    /// this is called again. Filters change atomically; established connections live on.
    pub fn apply(&mut self, world: &World, health: &Health) -> Result<Applied> {
        let topology = Topology::of(world)?;
        let netns = self.place.router_netns();
        let text = ruleset::ruleset(&topology, health);
        let ruleset = self.loaded.as_ref() != Some(&text);
        if ruleset {
            netns::nft(&netns, &text)?;
            self.loaded = Some(text);
        }
        let routing = route(&netns, &topology)?;
        snapshot::write(&self.place, world, health, &topology.warnings)?;
        if ruleset || !routing.is_empty() {
            faults::reload(&self.place)?;
        }
        Ok(Applied {
            routing,
            ruleset,
            warnings: topology.warnings,
        })
    }
}

fn route(netns: &str, topology: &Topology<'_>) -> Result<Vec<String>> {
    netns::settle(|| {
        let (links, found) = routing::observe(netns)?;
        let lines = routing::plan(&found, &routing::desired(topology, &links));
        netns::ip_batch(netns, &lines)?;
        Ok(lines)
    })
}
