//! Edges and security group rules belong together: the rules let every edge pass, and each rule is there for one.

use super::{desired_of, every_shape, spec};
use crate::FullSpec;
use crate::objects::{edges_behind_load_balancers, groups_at, required_edges};
use cloud::reach::MissingRule;
use cloud::{Cloud, RuleSource, SecurityGroupRule};
use node::config::{Networking, Role};
use std::collections::BTreeSet;

fn rules_of(full: &FullSpec) -> Vec<SecurityGroupRule> {
    let all = desired_of(full).into_iter();
    all.filter_map(|one| match one {
        Cloud::SecurityGroupRule(rule) => Some(rule),
        _ => None,
    })
    .collect()
}

fn missing_of(full: &FullSpec, rules: &[SecurityGroupRule]) -> Vec<MissingRule> {
    let edges = required_edges(full);
    let missing = edges.iter().flat_map(|edge| edge.missing_rules(rules));
    missing.collect()
}

#[test]
fn the_rules_let_every_edge_pass() {
    let mut all = every_shape();
    let cilium = |in_vpc| Networking::Cilium {
        digest: String::new(),
        in_vpc,
    };
    for networking in [
        Networking::Flannel("vxlan".into()),
        Networking::Flannel("udp".into()),
        Networking::KubeRouter,
        Networking::Kindnet,
        Networking::AmazonVpc,
        cilium(true),
        cilium(false),
    ] {
        let mut full = spec::ha_spec();
        full.pods.networking = networking;
        // Where etcd's ports are too, which stay shut.
        full.node_port_range = (2000, 4500);
        full.node_port_access = vec!["192.0.2.0/24".into()];
        all.push(("with another network", full));
    }
    for (shape, full) in all {
        let networking = &full.pods.networking;
        let missing = missing_of(&full, &rules_of(&full));
        assert!(missing.is_empty(), "{shape}, {networking:?}: {missing:#?}");
    }
}

#[test]
fn every_instance_group_is_at_an_end_of_its_role_and_of_no_other() {
    for (shape, full) in every_shape() {
        let edges = required_edges(&full);
        let ends = edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
        let mut seen = BTreeSet::new();
        for end in ends {
            let at = groups_at(&full, end);
            let text = end.to_string();
            let of_end = full.groups.iter();
            for group in of_end.filter(|one| at.contains(&one.name.as_str())) {
                let role = match group.role {
                    Role::ControlPlane => "control planes",
                    Role::Node => "nodes",
                    Role::Bastion => "bastions",
                };
                assert!(text.starts_with(role), "{shape}: {} at {text}", group.name);
                seen.insert(group.name.as_str());
            }
            let is_instances = ["control planes", "nodes", "bastions"]
                .iter()
                .any(|role| text.starts_with(role));
            assert_eq!(!at.is_empty(), is_instances, "{shape}: {text}");
        }
        let all: BTreeSet<&str> = full.groups.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(seen, all, "{shape}");
    }
}

/// Load balancers keep the addresses of their clients, which network ACLs of the targets see.
#[test]
fn clients_reach_what_is_behind_a_load_balancer() {
    for (shape, full) in every_shape() {
        let edges = edges_behind_load_balancers(&full);
        let texts: Vec<String> = edges.iter().map(ToString::to_string).collect();
        let leads_to = |target: &str| texts.iter().any(|text| text.contains(target));
        assert_eq!(
            leads_to(" to control planes"),
            full.api.load_balancer.is_some() && !full.api.access.is_empty(),
            "{shape}: {texts:?}"
        );
        let has_bastions = full.groups.iter().any(|group| group.role == Role::Bastion);
        assert_eq!(
            leads_to(" to bastions"),
            has_bastions && !full.ssh_access.is_empty(),
            "{shape}: {texts:?}"
        );
    }
}

/// What another rule allows too, and a rule of kOps' for a port at which nothing listens.
fn is_idle(rule: &SecurityGroupRule, others: &[SecurityGroupRule]) -> bool {
    let allows = |other: &SecurityGroupRule| {
        let ports = other.ip_protocol == rule.ip_protocol
            && other.from_port <= rule.from_port
            && rule.to_port <= other.to_port;
        (&other.group_id, other.is_egress) == (&rule.group_id, rule.is_egress)
            && (other.ip_protocol == "-1" || ports)
            && other.source == RuleSource::CidrIpv4("0.0.0.0/0".into())
    };
    rule.name.starts_with("tcp-api-cp") || others.iter().any(allows)
}

#[test]
fn a_rule_that_is_gone_is_missed_where_it_was() {
    for (shape, mut full) in every_shape() {
        // Everybody's way to the API would be the nodes' too.
        full.api.access = vec!["192.0.2.0/24".into()];
        let rules = rules_of(&full);
        for (index, gone) in rules.iter().enumerate() {
            let mut rest = rules.clone();
            rest.remove(index);
            let missing = missing_of(&full, &rest);
            assert!(
                !missing.is_empty() || is_idle(gone, &rest),
                "{shape}: nobody misses {}",
                gone.name
            );
            let elsewhere = missing
                .iter()
                .find(|one| (&one.group, one.is_egress) != (&gone.group_id, gone.is_egress));
            assert_eq!(elsewhere, None, "{shape}: {}", gone.name);
        }
    }
}
