//! What must reach what in a cluster: from whom, to whom, protocol, ports and why, as data. The security group rules of this folder
//! let each of these pass; what AWS has is held against them.

use crate::objects::ports_between::{KUBELETS, Need, node_to_control_plane_needs, plugin_needs};
use crate::objects::rules::{self, PATH_MTU, tcp_ports, udp_ports};
use crate::objects::{bastion, launch_templates, load_balancer, routing};
use crate::{ApiLoadBalancer, DnsKind, FullSpec, Subnet};
use cloud::RuleSource;
use cloud::reach::{Edge, End, Interfaces, Place, RoutedSubnet, Traffic};
use engine::Ref;
use node::components::etcd_ports;
use node::config::Role;
use node::ports::{API, API_BESIDE_ACM_CERTIFICATE, BOOTSTRAP};
use std::collections::BTreeMap;

const HTTPS: u16 = 443;

/// Where AWS' services, registries and downloads are.
const EVERYWHERE: &str = "0.0.0.0/0";
const EVERYWHERE_V6: &str = "::/0";
const INTERNET: &str = "AWS' services, registries, downloads";
const PATH_MTU_DISCOVERY: &str = "path MTU discovery";

/// Every edge of the cluster.
pub fn required_edges(full: &FullSpec) -> Vec<Edge> {
    let control_planes = instances(full, Role::ControlPlane);
    let nodes = instances(full, Role::Node);
    let all: Vec<End> = control_planes.iter().chain(&nodes).cloned().collect();
    let mut edges = Vec::new();
    for one in etcd_needs(full).iter().chain([&KUBELETS]) {
        connect(&mut edges, &control_planes, &control_planes, *one);
    }
    connect(&mut edges, &control_planes, &nodes, KUBELETS);
    // Until here: members of etcd and API servers, which are in the network of their instances.
    edges.iter_mut().for_each(|edge| edge.is_of_hosts = true);
    connect(&mut edges, &nodes, &nodes, KUBELETS);
    for one in node_to_control_plane_needs(full) {
        connect(&mut edges, &nodes, &control_planes, one);
    }
    for one in plugin_needs(full) {
        connect(&mut edges, &control_planes, &all, one);
        connect(&mut edges, &nodes, &nodes, one);
    }
    let internet = if full.is_ipv6() {
        vec![outside(EVERYWHERE), outside(EVERYWHERE_V6)]
    } else {
        vec![outside(EVERYWHERE)]
    };
    let before = edges.len();
    connect(&mut edges, &all, &internet, tcp(HTTPS, INTERNET));
    // With a bundle, endpoints of AWS' services in the VPC suffice.
    let has_bundle = !full.image_archives.is_empty();
    for edge in edges.iter_mut().skip(before) {
        edge.is_vague = has_bundle;
    }
    for source in &full.node_port_access {
        let (first, last) = full.node_port_range;
        for traffic in [tcp_ports(first, last), udp_ports(first, last)] {
            let why = "node ports for clients outside";
            connect(
                &mut edges,
                &[outside(source)],
                &nodes,
                Need { traffic, why },
            );
        }
    }
    connect_api(&mut edges, full, &control_planes, &nodes);
    connect_ssh(&mut edges, full, &all);
    edges
}

/// What passes load balancers with the address of its client, which they keep for targets that are instances
/// (<https://docs.aws.amazon.com/elasticloadbalancing/latest/network/edit-target-group-attributes.html#client-ip-preservation>). It is for
/// network ACLs: security groups see the balancer's group.
pub fn edges_behind_load_balancers(full: &FullSpec) -> Vec<Edge> {
    let mut edges = Vec::new();
    if full.api.load_balancer.is_some() {
        let control_planes = instances(full, Role::ControlPlane);
        let need = tcp(API, "the API for clients outside, by its load balancer");
        connect(
            &mut edges,
            &clients(&full.api.access),
            &control_planes,
            need,
        );
    }
    if bastion::has_bastions(full) {
        let bastions = instances(full, Role::Bastion);
        let need = tcp(bastion::SSH, "SSH, by the bastions' load balancer");
        connect(&mut edges, &clients(&full.ssh_access), &bastions, need);
    }
    edges
}

/// The subnets of the cluster, and how packets are to leave them.
pub fn subnets_with_routes(full: &FullSpec) -> Vec<RoutedSubnet> {
    let subnets = full.network.subnets.iter();
    subnets
        .map(|subnet| RoutedSubnet {
            subnet: super::subnet_ref(full, subnet),
            range: subnet.cidr,
            is_public: !subnet.kind.is_private(),
            is_routed: routing::routed_subnets(full).any(|routed| routed.name == subnet.name),
        })
        .collect()
}

/// What members of etcd need of each other.
fn etcd_needs(full: &FullSpec) -> Vec<Need> {
    let ports = full.etcd.iter().filter_map(|etcd| etcd_ports(&etcd.name));
    ports
        .flat_map(|ports| [ports.peer, ports.client])
        .map(|port| tcp(port, "members of etcd"))
        .collect()
}

/// The way to the API: by its load balancer, or to the control planes themselves.
fn connect_api(edges: &mut Vec<Edge>, full: &FullSpec, control_planes: &[End], nodes: &[End]) {
    const CLIENTS: &str = "the API for clients outside";
    let clients = clients(&full.api.access);
    let Some(balancer) = &full.api.load_balancer else {
        connect(edges, &clients, control_planes, tcp(API, CLIENTS));
        return;
    };
    let front = [api_balancer(full, balancer)];
    connect(edges, &clients, &front, tcp(API, CLIENTS));
    if balancer.ssl_certificate.is_some() {
        let why = "the API for client certificates";
        connect(
            edges,
            &clients,
            &front,
            tcp(API_BESIDE_ACM_CERTIFICATE, why),
        );
    }
    connect_path_mtu(edges, &clients, &front);
    let needs = [
        tcp(API, "the API behind its load balancer"),
        tcp(BOOTSTRAP, "health checks of the API's load balancer"),
        path_mtu(PATH_MTU),
    ];
    for one in needs {
        connect(edges, &front, control_planes, one);
    }
    connect(edges, control_planes, &front, path_mtu(PATH_MTU));
    if full.dns.kind == DnsKind::None || balancer.use_for_internal_api {
        connect(edges, nodes, &front, tcp(API, "the API"));
    }
    if full.dns.kind == DnsKind::None {
        let why = "certificates of new instances";
        connect(edges, nodes, &front, tcp(BOOTSTRAP, why));
    }
}

/// SSH: by bastions if there are any.
fn connect_ssh(edges: &mut Vec<Edge>, full: &FullSpec, instances_of_cluster: &[End]) {
    let ssh = tcp(bastion::SSH, "SSH");
    let clients = clients(&full.ssh_access);
    if !bastion::has_bastions(full) {
        connect(edges, &clients, instances_of_cluster, ssh);
        return;
    }
    let bastions = instances(full, Role::Bastion);
    let more = &full.bastion.additional_security_groups;
    let front = [End::Interfaces(Interfaces {
        what: "the bastions' load balancer".to_owned(),
        groups: with_given(bastion::load_balancer_peer(full).group, more),
        places: places(full, bastion::load_balancer_subnets(full)),
    })];
    connect(edges, &clients, &front, ssh);
    connect_path_mtu(edges, &clients, &front);
    connect(edges, &front, &bastions, ssh);
    connect(edges, &front, &bastions, path_mtu(PATH_MTU));
    connect(edges, &bastions, &front, path_mtu(PATH_MTU));
    connect(edges, &bastions, instances_of_cluster, ssh);
}

fn api_balancer(full: &FullSpec, balancer: &ApiLoadBalancer) -> End {
    let named = |name: &str| full.network.subnets.iter().find(|one| one.name == name);
    let subnets = balancer.subnets.iter();
    let subnets = subnets.filter_map(|place| named(&place.name));
    let group = load_balancer::load_balancer_peer(full, balancer).group;
    End::Interfaces(Interfaces {
        what: "the API's load balancer".to_owned(),
        groups: with_given(group, &balancer.additional_security_groups),
        places: places(full, subnets),
    })
}

fn with_given(first: Ref, more: &[String]) -> Vec<Ref> {
    let more = more.iter().cloned().map(Ref::Given);
    std::iter::once(first).chain(more).collect()
}

fn places<'a>(full: &FullSpec, subnets: impl IntoIterator<Item = &'a Subnet>) -> Vec<Place> {
    let subnets = subnets.into_iter();
    subnets
        .map(|subnet| Place {
            subnet: super::subnet_ref(full, subnet),
            range: subnet.cidr,
        })
        .collect()
}

/// The names of the instance groups whose instances an end stands for; none for any other end.
pub fn groups_at<'a>(full: &'a FullSpec, end: &End) -> Vec<&'a str> {
    let roles = [Role::ControlPlane, Role::Node, Role::Bastion].into_iter();
    let mut all = roles.flat_map(|role| named_instances(full, role));
    let found = all.find(|(_, one)| one == end);
    found.map(|(names, _)| names).unwrap_or_default()
}

/// The instances of a role: one end for each set of security groups that they have.
fn instances(full: &FullSpec, role: Role) -> Vec<End> {
    let named = named_instances(full, role).into_iter();
    named.map(|(_, end)| end).collect()
}

/// The same with the names of their instance groups.
fn named_instances(full: &FullSpec, role: Role) -> Vec<(Vec<&str>, End)> {
    let mut by_groups: BTreeMap<Vec<Ref>, (Vec<&str>, Vec<&Subnet>)> = BTreeMap::new();
    for group in full.groups.iter().filter(|group| group.role == role) {
        let base = launch_templates::base_security_group(full, group);
        let mut refs = launch_templates::security_group_refs(full, group);
        refs.retain(|one| *one != base);
        refs.insert(0, base);
        let (names, subnets) = by_groups.entry(refs).or_default();
        names.push(&group.name);
        for subnet in &full.network.subnets {
            if group.subnets.contains(&subnet.name) && !subnets.contains(&subnet) {
                subnets.push(subnet);
            }
        }
    }
    let several = by_groups.len() > 1;
    let ends = by_groups.into_iter().map(|(groups, (names, subnets))| {
        let words = role_words(role);
        let what = if several {
            format!("{words} ({})", names.join(", "))
        } else {
            words.to_owned()
        };
        let end = End::Interfaces(Interfaces {
            what,
            groups,
            places: places(full, subnets),
        });
        (names, end)
    });
    ends.collect()
}

fn role_words(role: Role) -> &'static str {
    match role {
        Role::ControlPlane => "control planes",
        Role::Node => "nodes",
        Role::Bastion => "bastions",
    }
}

fn clients(sources: &[String]) -> Vec<End> {
    sources.iter().map(|source| outside(source)).collect()
}

fn outside(source: &str) -> End {
    End::Outside(RuleSource::parse_peer(source))
}

fn tcp(port: u16, why: &'static str) -> Need {
    let traffic = tcp_ports(port, port);
    Need { traffic, why }
}

fn path_mtu(traffic: Traffic) -> Need {
    let why = PATH_MTU_DISCOVERY;
    Need { traffic, why }
}

/// Path MTU discovery of clients at a load balancer.
fn connect_path_mtu(edges: &mut Vec<Edge>, clients: &[End], front: &[End]) {
    for client in clients {
        let End::Outside(source) = client else {
            continue;
        };
        for traffic in rules::path_mtu_traffic(source) {
            connect(
                edges,
                std::slice::from_ref(client),
                front,
                path_mtu(*traffic),
            );
        }
    }
}

fn connect(edges: &mut Vec<Edge>, from: &[End], to: &[End], need: Need) {
    for from in from {
        edges.extend(to.iter().map(|to| Edge {
            from: from.clone(),
            to: to.clone(),
            traffic: need.traffic,
            why: need.why,
            is_of_hosts: false,
            is_vague: false,
        }));
    }
}
