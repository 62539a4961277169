//! The API's network load balancer: listeners, target groups, and the rules around it.

use crate::objects::rules::{self, ALL, PATH_MTU, Peer, tcp_ports};
use crate::objects::security_groups;
use crate::{ApiLoadBalancer, DnsKind, FullSpec, Subnet, cluster_tags};
use cloud::{
    AccessLogs, Cloud, HealthCheck, Lb, LbListener, LbTargetGroup, SecurityGroup,
    SecurityGroupRule, SubnetMapping,
};
use engine::Ref;
use node::bootstrap::{HEALTH_PATH, READY_PATH};
use node::config::Role;
use node::names;
use node::ports::{API, API_BESIDE_ACM_CERTIFICATE, BOOTSTRAP};

/// The policy that AWS gives a TLS listener without one.
const TLS_POLICY: &str = "ELBSecurityPolicy-2016-08";

/// A listener and the target group behind it.
struct ApiListener {
    port: u16,
    target_port: u16,
    /// Prefix of the target group's name.
    target: &'static str,
    tls: bool,
}

pub(super) fn build_load_balancer(full: &FullSpec) -> Vec<Cloud> {
    let Some(balancer) = &full.api.load_balancer else {
        return Vec::new();
    };
    let mut all: Vec<Cloud> = vec![load_balancer(full, balancer).into()];
    if balancer.security_group_override.is_none() {
        let name = names::api_security_group(&full.name);
        all.push(security_groups::own_security_group(
            full,
            name,
            "Security group for api ELB",
        ));
    }
    for front in api_listeners(full, balancer) {
        all.push(lb_listener(full, balancer, &front).into());
        let mut group = target_group(full, front.target, front.target_port);
        if front.tls {
            group.protocol = "TLS".into();
        }
        if front.port == BOOTSTRAP {
            group.health_check.health_check_path = Some(HEALTH_PATH.into());
            group.health_check.health_check_protocol = "HTTPS".into();
        } else {
            group.health_check = api_health_check();
        }
        all.push(group.into());
    }
    all
}

/// The names of the target groups that control planes join.
pub(super) fn target_groups(full: &FullSpec) -> Vec<String> {
    let balancers = full.api.load_balancer.iter();
    balancers
        .flat_map(|balancer| api_listeners(full, balancer))
        .map(|front| names::target_group(&full.name, front.target))
        .collect()
}

fn api_listeners(full: &FullSpec, balancer: &ApiLoadBalancer) -> Vec<ApiListener> {
    let certificate = balancer.ssl_certificate.is_some();
    let api = ApiListener {
        port: if certificate {
            API_BESIDE_ACM_CERTIFICATE
        } else {
            API
        },
        target_port: API,
        target: "tcp",
        tls: false,
    };
    let tls = certificate.then_some(ApiListener {
        port: API,
        target_port: API,
        target: "tls",
        tls: true,
    });
    // Without DNS, instances know only the load balancer.
    let bootstrap = (full.dns.kind == DnsKind::None).then_some(ApiListener {
        port: BOOTSTRAP,
        target_port: BOOTSTRAP,
        target: "kops-controller",
        tls: false,
    });
    [Some(api), tls, bootstrap].into_iter().flatten().collect()
}

fn load_balancer(full: &FullSpec, balancer: &ApiLoadBalancer) -> Lb {
    let logical_name = names::api_load_balancer(&full.name);
    let more = balancer.additional_security_groups.iter();
    let named = |name: &String| full.network.subnets.iter().find(|one| one.name == *name);
    let places = balancer.subnets.iter();
    let places = places.filter_map(|place| Some((place, named(&place.name)?)));
    let subnets: Vec<&Subnet> = places.clone().map(|(_, subnet)| subnet).collect();
    let mapping = places.map(|(place, subnet)| SubnetMapping {
        subnet_id: super::subnet_ref(full, subnet),
        allocation_id: place.allocation_id.clone(),
        private_ipv4_address: place.private_ipv4_address.clone(),
    });
    Lb {
        name: names::load_balancer(&logical_name),
        lb_type: "network".into(),
        scheme: scheme_name(balancer.internal).into(),
        ip_address_type: ip_address_type(full, Role::ControlPlane, &subnets).into(),
        security_groups: super::sort_unique(
            more.cloned()
                .map(Ref::Given)
                .chain([load_balancer_peer(full, balancer).group]),
        ),
        subnet_mappings: super::sort_unique(mapping),
        cross_zone_enabled: balancer.cross_zone,
        access_logs: balancer
            .access_log
            .clone()
            .map(|(bucket, prefix)| AccessLogs { bucket, prefix }),
        tags: cluster_tags(full, &logical_name),
        logical_name,
    }
}

/// The scheme of a load balancer in AWS.
pub(super) fn scheme_name(internal: bool) -> &'static str {
    if internal {
        "internal"
    } else {
        "internet-facing"
    }
}

/// The families of addresses of the load balancer for groups of a role: IPv6 too if any of them is in a subnet with IPv6, as in kOps, and
/// if the balancer's own subnets have IPv6, without which AWS refuses it.
pub(super) fn ip_address_type(full: &FullSpec, role: Role, subnets: &[&Subnet]) -> &'static str {
    let mut groups = full.groups.iter().filter(|group| group.role == role);
    let can_have = subnets.iter().all(|subnet| subnet.ipv6_cidr.is_some());
    if can_have && groups.any(|group| super::has_ipv6(full, group)) {
        "dualstack"
    } else {
        "ipv4"
    }
}

fn lb_listener(full: &FullSpec, balancer: &ApiLoadBalancer, front: &ApiListener) -> LbListener {
    let logical_name = names::api_load_balancer(&full.name);
    let policy = || {
        balancer
            .ssl_policy
            .clone()
            .unwrap_or_else(|| TLS_POLICY.into())
    };
    LbListener {
        name: format!("{logical_name}-{}", front.port),
        load_balancer_arn: super::own_ref::<Lb>(logical_name),
        port: front.port.into(),
        protocol: if front.tls { "TLS" } else { "TCP" }.into(),
        certificate_arn: balancer.ssl_certificate.clone().filter(|_| front.tls),
        ssl_policy: front.tls.then(policy),
        target_group_arn: super::own_ref::<LbTargetGroup>(names::target_group(
            &full.name,
            front.target,
        )),
    }
}

/// Asks protokube whether the API server is ready. The API's own port stays open while the server hangs or has lost etcd, and
/// requests need a certificate. Interval and counts are the shortest that AWS allows (5 to 300 seconds, 2 to 10 times in a row:
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/network/target-group-health-checks.html>), with a timeout below that.
/// AWS can change protocol, port and path of an existing target group
/// (<https://docs.aws.amazon.com/elasticloadbalancing/latest/network/modify-health-check-settings.html>).
fn api_health_check() -> HealthCheck {
    HealthCheck {
        healthy_threshold_count: 2,
        health_check_interval_seconds: 5,
        health_check_timeout_seconds: 4,
        health_check_port: Some(BOOTSTRAP.into()),
        health_check_path: Some(READY_PATH.into()),
        health_check_protocol: "HTTPS".into(),
        unhealthy_threshold_count: 2,
    }
}

/// A TCP target group. Callers change fields where theirs differs.
pub(super) fn target_group(full: &FullSpec, prefix: &str, port: u16) -> LbTargetGroup {
    let name = names::target_group(&full.name, prefix);
    LbTargetGroup {
        protocol: "TCP".into(),
        port: port.into(),
        vpc_id: super::vpc_ref(full),
        connection_termination: true,
        deregistration_delay_seconds: 30,
        health_check: HealthCheck {
            healthy_threshold_count: 2,
            health_check_interval_seconds: 10,
            // AWS' default is 10. It refuses a timeout that is not below the interval, for some types of load balancers at least
            // (hashicorp/terraform-provider-aws#2366, aws/aws-cdk#16445).
            health_check_timeout_seconds: 9,
            health_check_port: None,
            health_check_path: None,
            health_check_protocol: "TCP".into(),
            unhealthy_threshold_count: 2,
        },
        tags: cluster_tags(full, &name),
        name,
    }
}

/// The load balancer's security group: the cluster's own or its override.
pub(super) fn load_balancer_peer(full: &FullSpec, balancer: &ApiLoadBalancer) -> Peer {
    let name = names::api_security_group(&full.name);
    Peer {
        suffix: String::new(),
        group: match &balancer.security_group_override {
            Some(id) => Ref::Given(id.clone()),
            None => super::own_ref::<SecurityGroup>(&name),
        },
        name,
    }
}

pub(super) fn load_balancer_rules(full: &FullSpec) -> Vec<SecurityGroupRule> {
    let Some(balancer) = &full.api.load_balancer else {
        return Vec::new();
    };
    let front = load_balancer_peer(full, balancer);
    let mut all = rules::egress_rules(&front);
    let mut ports = vec![API];
    if balancer.ssl_certificate.is_some() {
        ports.push(API_BESIDE_ACM_CERTIFICATE);
    }
    for from in &full.api.access {
        all.extend(
            ports
                .iter()
                .map(|port| rules::range_rule(from, tcp_ports(*port, *port), &front)),
        );
        all.extend(rules::path_mtu_rules("api-elb", from, &front));
    }
    for instance in security_groups::role_peers(full, Role::ControlPlane) {
        all.extend(to_control_plane(balancer, &front, &instance));
    }
    // If the load balancer is the nodes' only way to the API, they may use it whatever the user's access list says.
    if full.dns.kind == DnsKind::None || balancer.use_for_internal_api {
        all.extend(
            security_groups::role_peers(full, Role::Node)
                .iter()
                .map(|node| {
                    rules::named_group_rule(
                        format!("node-to-elb{}", node.suffix),
                        node,
                        ALL,
                        &front,
                    )
                }),
        );
    }
    all
}

fn to_control_plane(
    balancer: &ApiLoadBalancer,
    front: &Peer,
    instance: &Peer,
) -> Vec<SecurityGroupRule> {
    let suffix = &instance.suffix;
    let to_instance = |name: &str, port| {
        rules::named_group_rule(
            format!("{name}{suffix}"),
            front,
            tcp_ports(port, port),
            instance,
        )
    };
    let mut all = vec![
        to_instance("https-elb-to-master", API),
        rules::named_group_rule(
            format!("icmp-pmtu-elb-to-cp{suffix}"),
            front,
            PATH_MTU,
            instance,
        ),
        rules::named_group_rule(
            format!("icmp-pmtu-cp{suffix}-to-elb"),
            instance,
            PATH_MTU,
            front,
        ),
    ];
    if balancer.ssl_certificate.is_some() {
        all.push(to_instance("tcp-api-cp", API_BESIDE_ACM_CERTIFICATE));
    }
    // For the health check of the API server, and for certificates of instances without DNS.
    all.push(to_instance("kops-controller-elb-to-cp", BOOTSTRAP));
    all
}
