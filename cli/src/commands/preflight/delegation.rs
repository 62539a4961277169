//! Whether the name servers of a public hosted zone are those that its parent names: else nobody outside resolves its names.

use super::{DELEGATION, Inputs};
use crate::delegation::{NamedServers, OtherServers, compare_servers, find_delegation};
use crate::ui::preflight::PreflightRow;
use aws_cloud::zone_name_servers;
use full::DnsKind;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

pub(super) async fn check(
    inputs: &Inputs<'_>,
    name_server: Option<SocketAddr>,
) -> Vec<PreflightRow> {
    let dns = &inputs.full().dns;
    // Names of a private zone are resolved in its VPCs only, without a parent.
    let Some(zone) = dns.zone.as_ref().filter(|_| dns.kind == DnsKind::Public) else {
        return Vec::new();
    };
    let not_known = |why: String| vec![PreflightRow::not_known(DELEGATION, &zone.name, why)];
    let own = match zone_name_servers(&inputs.observed.clients, &zone.id).await {
        Ok(own) => own,
        Err(failure) => return not_known(failure.to_string()),
    };
    let named = match find_delegation(&zone.name, name_server).await {
        Ok(named) => named,
        Err(error) => return not_known(format!("{error:#}")),
    };
    let others = match compare_servers(&named, &own, name_server).await {
        Ok(others) => others,
        Err(error) => return not_known(format!("{error:#}")),
    };
    vec![row_of_zone(&zone.name, &zone.id, &own, &named, &others)]
}

/// `named`: the name servers by the zone's parent; `own`: those of the hosted zone; `others`: what is known of the rest of `named`.
fn row_of_zone(
    zone: &str,
    id: &str,
    own: &BTreeSet<String>,
    named: &NamedServers,
    others: &OtherServers,
) -> PreflightRow {
    let is_own = |server: &String| own.contains(server) || others.same.contains(server);
    // Any of them answers, whether the parent has all or not.
    if !named.is_empty() && named.keys().all(is_own) {
        let mut message = format!("its parent names servers of {id}");
        if !others.same.is_empty() {
            let same = list_names(&others.same);
            message += &format!(": by their addresses, {same} are some");
        }
        return PreflightRow::fine(DELEGATION, zone, message);
    }
    let message = if named.is_empty() {
        format!(
            "its parent names no servers of it; those of {id} are {}",
            list_names(own)
        )
    } else {
        let (named, own) = (list_named(named), list_names(own));
        format!("its parent names {named}, and the servers of {id} are {own}")
    };
    if named.keys().any(is_own) {
        let why = format!("{message}: whether the others serve the zone is not known");
        return PreflightRow::not_known(DELEGATION, zone, why);
    }
    if !named.is_empty() && named.keys().all(|name| others.unknown.contains_key(name)) {
        let whys: Vec<&str> = others.unknown.values().map(String::as_str).collect();
        let whys = whys.join("; ");
        let why = format!("{message}: whether these are the same is not known: {whys}");
        return PreflightRow::not_known(DELEGATION, zone, why);
    }
    let mut next = format!(
        "set the NS record of {zone} in its parent zone, or the name servers at the registrar, to {}",
        list_names(own)
    );
    if named.values().any(|glue| !glue.is_empty()) {
        next +=
            "; or, if the names are yours, their addresses there (glue) to those of these servers";
    }
    PreflightRow::problem(DELEGATION, zone, message, next)
}

fn list_names(servers: &BTreeSet<String>) -> String {
    let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
    servers.join(", ")
}

/// With the addresses that the parent has.
fn list_named(named: &NamedServers) -> String {
    let words = named.iter().map(|(name, glue)| {
        let glue: Vec<String> = glue.iter().map(IpAddr::to_string).collect();
        match glue.is_empty() {
            true => name.clone(),
            false => format!("{name} ({})", glue.join(", ")),
        }
    });
    words.collect::<Vec<String>>().join(", ")
}
