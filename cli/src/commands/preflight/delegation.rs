//! Whether the name servers of a public hosted zone are those that its parent names: else nobody outside resolves its names.

use super::{DELEGATION, Inputs};
use crate::delegation::{find_delegation, find_same_servers};
use crate::ui::preflight::PreflightRow;
use aws_cloud::zone_name_servers;
use full::DnsKind;
use std::collections::BTreeSet;
use std::net::SocketAddr;

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
    let others: BTreeSet<String> = named.difference(&own).cloned().collect();
    let same = match find_same_servers(&others, &own, name_server).await {
        Ok(same) => same,
        Err(error) => return not_known(format!("{error:#}")),
    };
    vec![row_of_zone(&zone.name, &zone.id, &own, &named, &same)]
}

/// `named`: the name servers by the zone's parent; `own`: those of the hosted zone; `same`: names of these that are not AWS'.
fn row_of_zone(
    zone: &str,
    id: &str,
    own: &BTreeSet<String>,
    named: &BTreeSet<String>,
    same: &BTreeSet<String>,
) -> PreflightRow {
    let words = |servers: &BTreeSet<String>| {
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        servers.join(", ")
    };
    let is_own = |server: &String| own.contains(server) || same.contains(server);
    // Any of them answers, whether the parent has all or not.
    if !named.is_empty() && named.iter().all(is_own) {
        let mut message = format!("its parent names servers of {id}");
        if !same.is_empty() {
            message += &format!(": by their addresses, {} are some", words(same));
        }
        return PreflightRow::fine(DELEGATION, zone, message);
    }
    let message = if named.is_empty() {
        format!(
            "its parent names no servers of it; those of {id} are {}",
            words(own)
        )
    } else {
        let (named, own) = (words(named), words(own));
        format!("its parent names {named}, and the servers of {id} are {own}")
    };
    if named.iter().any(is_own) {
        let why = format!("{message}: whether the others serve the zone is not known");
        return PreflightRow::not_known(DELEGATION, zone, why);
    }
    let next = format!(
        "set the NS record of {zone} in its parent zone, or the name servers at the registrar, to {}",
        words(own)
    );
    PreflightRow::problem(DELEGATION, zone, message, next)
}
