//! An IPv6 cluster: made, mended after changes from outside, removed without a trace.

use crate::cluster::InCluster;
use crate::simulator::Simulator;
use crate::spec::{REGION, desired_objects, full_spec, store_objects};
use cloud::{Cloud, Subnet};
use engine::Resource;
use full::FullSpec;
use serde_json::json;

/// The spec as that of an IPv6 cluster: subnets with one family and with both.
const EDITS: [(&str, &str); 6] = [
    (
        "nonMasqueradeCIDR: 100.64.0.0/10",
        "nonMasqueradeCIDR: ::/0",
    ),
    (
        "type: Private, cidr: 10.0.32.0/19",
        "type: DualStack, cidr: 10.0.32.0/19, ipv6CIDR: /64#0",
    ),
    (
        "type: Private, cidr: 10.0.64.0/19",
        "type: Private, cidr: 10.0.64.0/19, ipv6CIDR: /64#1",
    ),
    (
        "type: Private, cidr: 10.1.32.0/19}",
        "type: DualStack, cidr: 10.1.32.0/19, ipv6CIDR: /64#2}\n  - {name: six, zone: eu-west-1a, type: Private, ipv6CIDR: /64#a}",
    ),
    ("subnets: [a, b, c]", "subnets: [six, b, c]"),
    ("/22}", "/22, ipv6CIDR: PART}"),
];

fn to_ipv6(text: &mut String) {
    for (from, to) in EDITS {
        assert!(text.contains(from), "{from}");
        *text = text.replace(from, to);
    }
    for part in 16..19 {
        *text = text.replacen("PART", &format!("/64#{part:x}"), 1);
    }
}

const CHANGES: &str = "
ec2 = boto('ec2')
for gateway in ec2.describe_egress_only_internet_gateways()['EgressOnlyInternetGateways']:
    ec2.delete_egress_only_internet_gateway(EgressOnlyInternetGatewayId=gateway['EgressOnlyInternetGatewayId'])
for table in ec2.describe_route_tables()['RouteTables']:
    if any(route.get('DestinationIpv6CidrBlock') == '64:ff9b::/96' for route in table['Routes']):
        ec2.delete_route(RouteTableId=table['RouteTableId'], DestinationIpv6CidrBlock='64:ff9b::/96')
for subnet in ec2.describe_subnets()['Subnets']:
    if 'CidrBlock' not in subnet:
        ec2.modify_subnet_attribute(SubnetId=subnet['SubnetId'], EnableDns64={'Value': False})
lb = boto('elbv2')
for one in lb.describe_load_balancers()['LoadBalancers']:
    lb.set_ip_address_type(LoadBalancerArn=one['LoadBalancerArn'], IpAddressType='ipv4')
";

#[tokio::test]
async fn an_ipv6_cluster_is_made_mended_and_removed_without_a_trace() {
    let simulator = Simulator::start_simulator();
    let mut cluster = InCluster::new(&simulator).await;
    cluster.ipv6 = true;
    let before = simulator.list_resources(REGION);
    let spec = full_spec(&cluster.facts, to_ipv6);
    let wanted = desired_objects(&spec, store_objects("completed: 1\n"));
    let alone = |one: &Cloud| {
        matches!(
            one,
            Cloud::Subnet(Subnet {
                cidr_block: None,
                ..
            })
        )
    };
    assert_eq!(wanted.iter().filter(|one| alone(one)).count(), 1);
    cluster.run_until_converged(&wanted).await;
    cluster.refresh = true;
    cluster.is_settled(&wanted).await;
    cluster.refresh = false;

    simulator.run_python(REGION, CHANGES);
    let plan = cluster.run_until_converged(&wanted).await;
    let mended: Vec<String> = plan.steps.keys().map(ToString::to_string).collect();
    for kind in ["egress_only_internet_gateway", "lb/", "route/", "subnet/"] {
        let found = mended.iter().any(|id| id.starts_with(kind));
        assert!(found, "{kind}: {mended:?}");
    }

    cluster.run_until_converged(&[]).await;
    let after = simulator.list_resources(REGION);
    let left = after.difference(&before);
    let left: Vec<_> = left
        .filter(|one| !one.contains("/etcd-backups.json"))
        .collect();
    assert!(left.is_empty(), "{left:#?}");
}

/// An IPv4 cluster gets IPv6 addresses in AWS, and answers to what that makes get lost.
#[tokio::test]
async fn gateways_and_ranges_whose_answers_get_lost_are_not_made_twice() {
    let simulator = Simulator::start_simulator();
    let mut cluster = InCluster::new(&simulator).await;
    // Its host has another name in an IPv6 cluster.
    cluster.has_issuer = false;
    let of_issuer = ["discovery_document/", "iam_openid_connect_provider/"];
    let objects = |spec: &FullSpec| -> Vec<Cloud> {
        let all = desired_objects(spec, store_objects("completed: 1\n"));
        let all = all.into_iter().filter(|one| {
            let id = one.id().to_string();
            !id.contains(".sa.prod.example.com")
                && !of_issuer.iter().any(|kind| id.starts_with(kind))
        });
        all.collect()
    };
    let before = objects(&full_spec(&cluster.facts, |_| {}));
    cluster.run_until_converged(&before).await;
    cluster.ipv6 = true;
    let lost = [
        "AssociateSubnetCidrBlock",
        "CreateEgressOnlyInternetGateway",
        "ModifySubnetAttribute",
        "SetIpAddressType",
    ];
    let lose = lost
        .map(|operation| json!({"operation": operation, "code": "kill-connection", "after": true}));
    simulator.set_faults(&json!(lose));
    let wanted = objects(&full_spec(&cluster.facts, to_ipv6));
    cluster.run_until_converged(&wanted).await;
    let left = simulator.faults_left();
    let met = |one: &serde_json::Value| one["times"] == 0;
    assert!(
        left.as_array().is_some_and(|left| left.iter().all(met)),
        "{left}"
    );
    let count = "print(len(boto('ec2').describe_egress_only_internet_gateways()['EgressOnlyInternetGateways']))";
    assert_eq!(simulator.run_python(REGION, count).trim(), "1");
}
