//! Whether the parts of a cluster can reach each other: what they need, held against security group rules, network ACLs and route
//! tables as AWS has them. No packet is sent.

use super::{Inputs, PORTS};
use crate::ui::preflight::PreflightRow;
use aws_cloud::network_state;
use cloud::reach::{
    BlockingEntry, Edge, End, Interfaces, MissingRule, NetworkState, RouteProblem, RoutedSubnet,
};
use cloud::{Kind, Vpc};
use engine::{Id, Ref};
use full::objects::{edges_behind_load_balancers, required_edges, subnets_with_routes};
use std::collections::{BTreeMap, BTreeSet};

const SECURITY_GROUPS: &str = "security groups";
const NETWORK_ACLS: &str = "network ACLs";
const ROUTES: &str = "routes";

pub(super) async fn check(inputs: &Inputs<'_>) -> Vec<PreflightRow> {
    let full = inputs.full();
    let vpc = match &full.network.shared_vpc {
        Some(id) => Ref::Given(id.clone()),
        None => Ref::own(&Id::new(Vpc::TYPE, full.name.clone())),
    };
    let Some(vpc) = inputs.physical(&vpc) else {
        let why = "the first update makes the VPC and all in it";
        return vec![PreflightRow::not_known(PORTS, "the VPC", why)];
    };
    let (edges, behind) = (required_edges(full), edges_behind_load_balancers(full));
    let groups = edges.iter().flat_map(interfaces_of);
    let groups = groups.flat_map(|one| &one.groups);
    let groups = groups.filter_map(|group| inputs.physical(group));
    let groups: BTreeSet<String> = groups.map(str::to_owned).collect();
    let clients = &inputs.observed.clients;
    let state = match network_state(clients, vpc, &groups, inputs.snapshot).await {
        Ok(state) => state,
        Err(failure) => return vec![PreflightRow::not_known(PORTS, vpc, failure.to_string())],
    };
    let routed = subnets_with_routes(full).into_iter();
    let routed = routed.filter(|one| inputs.physical(&one.subnet).is_some());
    let routed: Vec<RoutedSubnet> = routed.collect();
    [
        security_group_rows(inputs, &edges, &state),
        acl_rows(inputs, &[&edges[..], &behind].concat(), &state),
        route_rows(inputs, &routed, &state),
    ]
    .concat()
}

fn interfaces_of(edge: &Edge) -> impl Iterator<Item = &Interfaces> {
    let ends = [&edge.from, &edge.to].into_iter();
    ends.filter_map(|end| match end {
        End::Interfaces(interfaces) => Some(interfaces),
        End::Outside(_) => None,
    })
}

fn name_of(of: &Ref) -> &str {
    let (Ref::Own { name, .. } | Ref::Given(name)) = of;
    name
}

/// What it is called, and AWS' id of it.
fn name_and_id(inputs: &Inputs<'_>, of: &Ref) -> String {
    match (of, inputs.physical(of)) {
        (Ref::Own { name, .. }, Some(id)) => format!("{name} ({id})"),
        (of, _) => name_of(of).to_owned(),
    }
}

fn security_group_rows(
    inputs: &Inputs<'_>,
    edges: &[Edge],
    state: &NetworkState,
) -> Vec<PreflightRow> {
    let mut rows = Vec::new();
    let mut absent: BTreeSet<&Ref> = BTreeSet::new();
    for edge in edges {
        let groups = interfaces_of(edge).filter_map(|one| one.groups.first());
        let gone: Vec<&Ref> = groups
            .filter(|group| inputs.physical(group).is_none())
            .collect();
        if !gone.is_empty() {
            absent.extend(gone);
            continue;
        }
        let missing = edge.missing_rules(&state.rules).into_iter();
        rows.extend(missing.map(|rule| row_of_rule(inputs, edge, &rule)));
    }
    // AWS deletes none that an interface has: these were never made.
    if !absent.is_empty() {
        let names: Vec<&str> = absent.into_iter().map(name_of).collect();
        let why = format!("an update makes {}", names.join(", "));
        rows.push(PreflightRow::not_known(PORTS, SECURITY_GROUPS, why));
    }
    if rows.is_empty() {
        let message = format!("rules allow all {} connections", edges.len());
        rows.push(PreflightRow::fine(PORTS, SECURITY_GROUPS, message));
    }
    rows
}

fn row_of_rule(inputs: &Inputs<'_>, edge: &Edge, rule: &MissingRule) -> PreflightRow {
    let group = name_and_id(inputs, &rule.group);
    let subject = format!("{} to {}, {}", edge.from, edge.to, edge.traffic);
    let message = format!("{}: no rule of {group} allows {rule}", edge.why);
    if !rule.is_certain {
        let why = match edge.is_vague {
            true => {
                "endpoints of AWS' services suffice with a bundle, and where they are is not known"
            }
            false => "a rule has a prefix list, whose ranges were not read",
        };
        return PreflightRow::not_known(PORTS, subject, format!("{message}; {why}"));
    }
    PreflightRow::problem(
        PORTS,
        subject,
        message,
        format!(
            "run `kctl update {} --yes` if {group} is kctl's; in a group of yours add: {rule}",
            inputs.full().name
        ),
    )
}

/// A row for each entry: one is often in the way of many edges.
fn acl_rows(inputs: &Inputs<'_>, edges: &[Edge], state: &NetworkState) -> Vec<PreflightRow> {
    type Place = (String, i32, bool);
    let mut blocked: BTreeMap<Place, (BlockingEntry, Vec<&Edge>)> = BTreeMap::new();
    for edge in edges {
        for entry in edge.blocking_entries(&state.acls) {
            let place = (entry.acl.clone(), entry.number, entry.is_egress);
            let (_, of_edges) = blocked.entry(place).or_insert((entry, Vec::new()));
            if !of_edges.contains(&edge) {
                of_edges.push(edge);
            }
        }
    }
    let unseen = edges
        .iter()
        .flat_map(|edge| edge.unseen_subnets(&state.acls));
    // An update makes the others.
    let unseen = unseen.filter_map(|subnet| inputs.physical(subnet));
    let unseen: BTreeSet<&str> = unseen.collect();
    let unseen: Vec<&str> = unseen.into_iter().collect();
    let not_known = (!unseen.is_empty()).then(|| {
        let why = format!("AWS does not show those of {}", unseen.join(", "));
        PreflightRow::not_known(PORTS, NETWORK_ACLS, why)
    });
    if blocked.is_empty() {
        let message = "none is in the way (IPv4)";
        let fine = || PreflightRow::fine(PORTS, NETWORK_ACLS, message);
        return vec![not_known.unwrap_or_else(fine)];
    }
    let rows = blocked.into_values().map(|(entry, of_edges)| {
        let first = of_edges.first().map(ToString::to_string);
        let more = match of_edges.len() {
            0 | 1 => String::new(),
            count => format!("; and {} more", count - 1),
        };
        let direction = if entry.is_egress { "egress" } else { "ingress" };
        PreflightRow::problem(
            PORTS,
            format!("{} {direction}", entry.acl),
            format!(
                "{entry}. In the way of: {}{more}",
                first.unwrap_or_default()
            ),
            format!(
                "allow {direction} {} with {} in {}, by an entry with a lower number",
                entry.traffic, entry.other, entry.acl
            ),
        )
    });
    rows.chain(not_known).collect()
}

fn route_rows(
    inputs: &Inputs<'_>,
    routed: &[RoutedSubnet],
    state: &NetworkState,
) -> Vec<PreflightRow> {
    let problems = RouteProblem::find_all(&state.route_tables, routed);
    if problems.is_empty() {
        let message = match routed.len() {
            0 => "there are no subnets yet".to_owned(),
            1 => "1 subnet has its way out (IPv4)".to_owned(),
            count => format!("{count} subnets reach each other and have their way out (IPv4)"),
        };
        return vec![PreflightRow::fine(PORTS, ROUTES, message)];
    }
    let rows = problems.iter().map(|problem| {
        let subject = name_and_id(inputs, &problem.subnet);
        if !problem.is_certain() {
            let why = format!("{problem}: whether packets arrive all the same is not known");
            return PreflightRow::not_known(PORTS, subject, why);
        }
        let of_kctl = routed
            .iter()
            .any(|one| one.subnet == problem.subnet && one.is_routed);
        let next = if of_kctl {
            format!(
                "see what `kctl update {}` would change, and correct routes in {} that are not kctl's",
                inputs.full().name,
                problem.table
            )
        } else {
            format!("correct the routes in {}", problem.table)
        };
        PreflightRow::problem(PORTS, subject, problem.to_string(), next)
    });
    rows.collect()
}
