//! The packet filter and address translation of the whole lab as one nft ruleset, with a table of each address family: a pure
//! function of the world.
//!
//! A packet between two hosts meets, in this order: `arrive` (may this source speak here, does a route lead there),
//! `translate_*` (a balancer's or public address becomes a host's), `forward` (the sender's egress rules), `leave` (its
//! source becomes public), `balancer_*` (a balancer's own groups), `ingress` (the receiver's groups). Each is stateful.

mod balancers;
mod groups;
mod services;
mod translation;

use super::balancing::TargetHealth;
use super::family::Family;
use super::topology::Topology;
use std::fmt::Display;

/// Name of the router's nft tables.
pub const TABLE: &str = "lab";

/// The ruleset as `nft -f` reads it; loading replaces the whole of the one before, atomically, and keeps connections.
pub fn router_ruleset(topology: &Topology<'_>, health: &TargetHealth) -> String {
    let tables = Family::BOTH.map(|family| {
        let mut table = Table::new(family);
        groups::write_membership(topology, &mut table);
        balancers::write_balancers(topology, health, &mut table);
        groups::write_groups(topology, &mut table);
        translation::write_translation(topology, &mut table);
        services::write_services(topology, &mut table);
        table.to_text()
    });
    tables.concat()
}

/// What a table is put together from; nft wants sets before the chains that use them, chains before those that jump.
struct Table {
    family: Family,
    sets: Vec<String>,
    chains: Vec<String>,
    hooks: Vec<String>,
}

impl Table {
    fn new(family: Family) -> Self {
        Self {
            family,
            sets: Vec::new(),
            chains: Vec::new(),
            hooks: Vec::new(),
        }
    }

    fn add_set(&mut self, name: &str, of: &str, elements: impl IntoIterator<Item = impl Display>) {
        self.sets.push(collection_text("set", name, of, elements));
    }

    fn add_map(&mut self, name: &str, of: &str, elements: impl IntoIterator<Item = impl Display>) {
        self.sets.push(collection_text("map", name, of, elements));
    }

    fn add_chain(&mut self, name: &str, rules: impl IntoIterator<Item = impl Display>) {
        self.chains
            .push(block_text(&format!("chain {name}"), rules));
    }

    /// A chain that the kernel calls, as `filter hook input priority 0; policy drop`.
    fn add_hook(&mut self, name: &str, hook: &str, rules: impl IntoIterator<Item = impl Display>) {
        let head = format!("type {hook};");
        let rules = rules.into_iter().map(|rule| rule.to_string());
        self.hooks.push(block_text(
            &format!("chain {name}"),
            std::iter::once(head).chain(rules),
        ));
    }

    fn to_text(&self) -> String {
        let parts = [&self.sets, &self.chains, &self.hooks].map(|part| part.concat());
        let name = format!("table {} {TABLE}", self.family.word());
        format!(
            "{name} {{}}\ndelete {name}\n{name} {{\n{}}}\n",
            parts.concat()
        )
    }
}

fn collection_text(
    kind: &str,
    name: &str,
    of: &str,
    elements: impl IntoIterator<Item = impl Display>,
) -> String {
    let mut elements: Vec<_> = elements
        .into_iter()
        .map(|element| element.to_string())
        .collect();
    elements.sort();
    elements.dedup();
    let mut lines = vec![format!("type {of};")];
    if !elements.is_empty() {
        lines.push(format!("elements = {{ {} }};", elements.join(", ")));
    }
    block_text(&format!("{kind} {name}"), lines)
}

/// `HEAD { LINES }` as a table's part.
pub(super) fn block_text(head: &str, lines: impl IntoIterator<Item = impl Display>) -> String {
    let mut text = format!("  {head} {{\n");
    for line in lines {
        text.push_str("    ");
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text.push_str("  }\n");
    text
}

/// `NAME KEY : goto CHAIN` maps dispatch to a chain of one's own.
fn goto_element(key: impl Display, chain: impl Display) -> String {
    format!("{key} : goto {chain}")
}

fn quote_link(link: &str) -> String {
    format!("\"{link}\"")
}
