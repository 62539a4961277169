//! The API's network load balancer: listeners, target groups, and the rules around it.

use crate::objects::rules::{self, ALL, PATH_MTU, Peer, tcp};
use crate::objects::security_groups;
use crate::{ApiLoadBalancer, DnsKind, FullSpec, tags};
use cloud::{
    AccessLogs, Cloud, HealthCheck, Lb, LbListener, LbTargetGroup, SecurityGroup,
    SecurityGroupRule, SubnetMapping,
};
use engine::Ref;
use node::bootstrap::{HEALTH_PATH, READY_PATH};
use node::config::Role;
use node::names;
use node::ports::{API, API_BESIDE_ACM_CERTIFICATE, BOOTSTRAP};

/// What AWS gives a TLS listener without a policy.
const TLS_POLICY: &str = "ELBSecurityPolicy-2016-08";

/// A listener and the target group behind it.
struct Front {
    port: u16,
    target_port: u16,
    /// Prefix of the target group's name.
    target: &'static str,
    tls: bool,
}

pub(super) fn build(full: &FullSpec) -> Vec<Cloud> {
    let Some(balancer) = &full.api.load_balancer else {
        return Vec::new();
    };
    let mut all: Vec<Cloud> = vec![load_balancer(full, balancer).into()];
    if balancer.security_group_override.is_none() {
        let name = names::api_security_group(&full.name);
        all.push(security_groups::group(
            full,
            name,
            "Security group for api ELB",
        ));
    }
    for front in fronts(full, balancer) {
        all.push(listener(full, balancer, &front).into());
        let mut group = target_group(full, front.target, front.target_port);
        if front.tls {
            group.protocol = "TLS".into();
        }
        if front.port == BOOTSTRAP {
            group.health_check.health_check_path = Some(HEALTH_PATH.into());
            group.health_check.health_check_protocol = "HTTPS".into();
        } else {
            group.health_check = api_ready();
        }
        all.push(group.into());
    }
    all
}

/// Names of the target groups that control planes join.
pub(super) fn target_groups(full: &FullSpec) -> Vec<String> {
    let balancers = full.api.load_balancer.iter();
    balancers
        .flat_map(|balancer| fronts(full, balancer))
        .map(|front| names::target_group(&full.name, front.target))
        .collect()
}

fn fronts(full: &FullSpec, balancer: &ApiLoadBalancer) -> Vec<Front> {
    let certificate = balancer.ssl_certificate.is_some();
    let api = Front {
        port: if certificate {
            API_BESIDE_ACM_CERTIFICATE
        } else {
            API
        },
        target_port: API,
        target: "tcp",
        tls: false,
    };
    let tls = certificate.then_some(Front {
        port: API,
        target_port: API,
        target: "tls",
        tls: true,
    });
    // Without DNS, machines know the balancer only.
    let bootstrap = (full.dns.kind == DnsKind::None).then_some(Front {
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
    let mapping = balancer.subnets.iter().filter_map(|place| {
        Some(SubnetMapping {
            subnet_id: super::subnet(full, named(&place.name)?),
            allocation_id: place.allocation_id.clone(),
            private_ipv4_address: place.private_ipv4_address.clone(),
        })
    });
    Lb {
        name: names::load_balancer(&logical_name),
        lb_type: "network".into(),
        scheme: scheme(balancer.internal).into(),
        security_groups: super::sorted(
            more.cloned()
                .map(Ref::Given)
                .chain([peer(full, balancer).group]),
        ),
        subnet_mappings: super::sorted(mapping),
        cross_zone_enabled: balancer.cross_zone,
        access_logs: balancer
            .access_log
            .clone()
            .map(|(bucket, prefix)| AccessLogs { bucket, prefix }),
        tags: tags(full, &logical_name),
        logical_name,
    }
}

/// AWS' word for who can reach a load balancer.
pub(super) fn scheme(internal: bool) -> &'static str {
    if internal {
        "internal"
    } else {
        "internet-facing"
    }
}

fn listener(full: &FullSpec, balancer: &ApiLoadBalancer, front: &Front) -> LbListener {
    let logical_name = names::api_load_balancer(&full.name);
    let policy = || {
        balancer
            .ssl_policy
            .clone()
            .unwrap_or_else(|| TLS_POLICY.into())
    };
    LbListener {
        name: format!("{logical_name}-{}", front.port),
        load_balancer_arn: super::own::<Lb>(logical_name),
        port: front.port.into(),
        protocol: if front.tls { "TLS" } else { "TCP" }.into(),
        certificate_arn: balancer.ssl_certificate.clone().filter(|_| front.tls),
        ssl_policy: front.tls.then(policy),
        target_group_arn: super::own::<LbTargetGroup>(names::target_group(
            &full.name,
            front.target,
        )),
    }
}

/// Whether the API server is ready, which its machine's protokube knows: the API's own port is open while the server hangs, or has lost
/// its etcd, and nobody may ask it without a certificate. As often as AWS checks (5 to 300 seconds, 2 to 10 times in a row:
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/network/target-group-health-checks.html>), with a timeout below that.
/// AWS changes protocol, port and path of a group that exists
/// (<https://docs.aws.amazon.com/elasticloadbalancing/latest/network/modify-health-check-settings.html>).
fn api_ready() -> HealthCheck {
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

/// A target group of TCP, as all of ours are but for what the caller changes.
pub(super) fn target_group(full: &FullSpec, prefix: &str, port: u16) -> LbTargetGroup {
    let name = names::target_group(&full.name, prefix);
    LbTargetGroup {
        protocol: "TCP".into(),
        port: port.into(),
        vpc_id: super::vpc(full),
        connection_termination: true,
        deregistration_delay_seconds: 30,
        health_check: HealthCheck {
            healthy_threshold_count: 2,
            health_check_interval_seconds: 10,
            // AWS' own for TCP and HTTPS.
            health_check_timeout_seconds: 10,
            health_check_port: None,
            health_check_path: None,
            health_check_protocol: "TCP".into(),
            unhealthy_threshold_count: 2,
        },
        tags: tags(full, &name),
        name,
    }
}

/// The balancer's security group: ours, or the user's in its place.
fn peer(full: &FullSpec, balancer: &ApiLoadBalancer) -> Peer {
    let name = names::api_security_group(&full.name);
    Peer {
        suffix: String::new(),
        group: match &balancer.security_group_override {
            Some(id) => Ref::Given(id.clone()),
            None => super::own::<SecurityGroup>(&name),
        },
        name,
    }
}

pub(super) fn rules(full: &FullSpec) -> Vec<SecurityGroupRule> {
    let Some(balancer) = &full.api.load_balancer else {
        return Vec::new();
    };
    let front = peer(full, balancer);
    let mut all = rules::egress(&front);
    let mut ports = vec![API];
    if balancer.ssl_certificate.is_some() {
        ports.push(API_BESIDE_ACM_CERTIFICATE);
    }
    for from in &full.api.access {
        all.extend(
            ports
                .iter()
                .map(|port| rules::from_outside(from, tcp(*port, *port), &front)),
        );
        all.extend(rules::path_mtu("api-elb", from, &front));
    }
    for machine in security_groups::peers(full, Role::ControlPlane) {
        all.extend(to_control_plane(balancer, &front, &machine));
    }
    // Nodes come through the balancer where it is their only way to the API, whatever the user's access list says.
    if full.dns.kind == DnsKind::None || balancer.use_for_internal_api {
        all.extend(
            security_groups::peers(full, Role::Node)
                .iter()
                .map(|node| rules::named(format!("node-to-elb{}", node.suffix), node, ALL, &front)),
        );
    }
    all
}

fn to_control_plane(
    balancer: &ApiLoadBalancer,
    front: &Peer,
    machine: &Peer,
) -> Vec<SecurityGroupRule> {
    let suffix = &machine.suffix;
    let to_machine =
        |name: &str, port| rules::named(format!("{name}{suffix}"), front, tcp(port, port), machine);
    let mut all = vec![
        to_machine("https-elb-to-master", API),
        rules::named(
            format!("icmp-pmtu-elb-to-cp{suffix}"),
            front,
            PATH_MTU,
            machine,
        ),
        rules::named(
            format!("icmp-pmtu-cp{suffix}-to-elb"),
            machine,
            PATH_MTU,
            front,
        ),
    ];
    if balancer.ssl_certificate.is_some() {
        all.push(to_machine("tcp-api-cp", API_BESIDE_ACM_CERTIFICATE));
    }
    // Where the balancer asks whether the API server is ready, and machines without DNS for their certificates.
    all.push(to_machine("kops-controller-elb-to-cp", BOOTSTRAP));
    all
}
