//! What is the user's stays the user's: rules in their security groups, subnets in their VPC, hosted zones of the same name.

use crate::scenario::{NAME, REGION, create_cluster, kctl_with_cloud};
use crate::simulator::Simulator;

/// A VPC with a gateway, a subnet in its first /24, and a security group with rules made by hand. Prints the ids.
const NETWORK: &str = "
ec2 = boto('ec2')
vpc = ec2.create_vpc(CidrBlock='10.7.0.0/16')['Vpc']['VpcId']
for name in ('EnableDnsSupport', 'EnableDnsHostnames'):
    ec2.modify_vpc_attribute(VpcId=vpc, **{name: {'Value': True}})
gateway = ec2.create_internet_gateway()['InternetGateway']['InternetGatewayId']
ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
subnet = ec2.create_subnet(VpcId=vpc, CidrBlock='10.7.32.0/24', AvailabilityZone='eu-west-1a')['Subnet']['SubnetId']
group = ec2.create_security_group(GroupName='mine', Description='mine', VpcId=vpc)['GroupId']
mine = [
    {'IpProtocol': 'tcp', 'FromPort': 22, 'ToPort': 22, 'IpRanges': [{'CidrIp': '0.0.0.0/0'}]},
    {'IpProtocol': 'tcp', 'FromPort': 9100, 'ToPort': 9100, 'IpRanges': [{'CidrIp': '192.0.2.0/24'}]},
    {'IpProtocol': '-1', 'UserIdGroupPairs': [{'GroupId': group}]},
]
ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=mine)
print(vpc, subnet, group)";

/// The rules of a group: direction, protocol, ports, other side, and whose they are by their tags.
fn rules(simulator: &Simulator, group: &str) -> Vec<String> {
    let printed = simulator.run_python(
        REGION,
        &format!(
            "for rule in boto('ec2').describe_security_group_rules(Filters=[{{'Name': 'group-id', 'Values': ['{group}']}}])['SecurityGroupRules']:\n    \
             other = rule.get('CidrIpv4') or rule.get('CidrIpv6') or (rule.get('ReferencedGroupInfo') or {{}}).get('GroupId')\n    \
             owner = {{tag['Key']: tag['Value'] for tag in rule.get('Tags') or []}}.get('KubernetesCluster', 'mine')\n    \
             print(rule['IsEgress'], rule['IpProtocol'], rule.get('FromPort'), rule.get('ToPort'), other, owner)"
        ),
    );
    let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn rules_made_by_hand_in_a_group_of_the_users_stay_theirs() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let ids = simulator.run_python(REGION, NETWORK);
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let (vpc, group) = (ids[0], ids[2]);
    let before = rules(&simulator, group);
    assert_eq!(before.len(), 4, "{before:#?}");
    let empty = simulator.list_resources(REGION);
    create_cluster(
        &kctl,
        &["--network-id", vpc, "--network-cidr", "10.7.128.0/17"],
    )
    .expect_success();
    let set = format!("spec.securityGroupOverride={group}");
    for role in ["nodes-eu-west-1a", "nodes-eu-west-1b", "nodes-eu-west-1c"] {
        kctl.run(&["edit", "ig", role, "--set", &set])
            .expect_success();
    }
    kctl.run(&["update", "--yes"]).expect_success();
    let ran = kctl.run(&["update"]).expect_success();
    assert!(ran.contains("No changes."), "{ran}");
    let with_cluster = rules(&simulator, group);
    for rule in &before {
        assert!(with_cluster.contains(rule), "{rule}: {with_cluster:#?}");
    }
    assert!(
        with_cluster.iter().any(|rule| rule.ends_with(NAME)),
        "{with_cluster:#?}"
    );
    // A rule that somebody adds later stays as well.
    simulator.run_python(
        REGION,
        &format!("boto('ec2').authorize_security_group_ingress(GroupId='{group}', IpPermissions=[{{'IpProtocol': 'udp', 'FromPort': 53, 'ToPort': 53, 'IpRanges': [{{'CidrIp': '10.0.0.0/8'}}]}}])"),
    );
    let ran = kctl.run(&["update"]).expect_success();
    assert!(ran.contains("No changes."), "{ran}");
    kctl.run(&["delete", "cluster", NAME, "--yes"])
        .expect_success();
    let after = rules(&simulator, group);
    assert_eq!(after.len(), before.len() + 1, "{after:#?}");
    assert!(before.iter().all(|rule| after.contains(rule)), "{after:#?}");
    let mut left = simulator.list_resources(REGION);
    // Rules are compared above.
    left.retain(|one| !empty.contains(one) && !one.starts_with("ec2 security-group-rule "));
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn a_subnet_that_overlaps_one_in_the_users_vpc_is_refused_before_aws_is_changed() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let ids = simulator.run_python(REGION, NETWORK);
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let (vpc, subnet) = (ids[0], ids[1]);
    let before = simulator.list_resources(REGION);
    let ran = create_cluster(
        &kctl,
        &["--network-id", vpc, "--network-cidr", "10.7.0.0/16"],
    );
    assert_ne!(ran.code, 0, "{}", ran.out);
    assert!(
        ran.err
            .contains(&format!("overlaps 10.7.32.0/24 of {subnet}")),
        "{}",
        ran.err
    );
    assert_eq!(before, simulator.list_resources(REGION));
}

#[test]
fn a_cluster_stays_with_its_hosted_zone_when_another_of_the_name_appears() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let zone = |name: &str, reference: &str| {
        simulator.run_python(
            REGION,
            &format!("print(boto('route53').create_hosted_zone(Name='{name}', CallerReference='{reference}')['HostedZone']['Id'].split('/')[-1])"),
        )
    };
    let first = zone("example.com", "1");
    create_cluster(&kctl, &["--dns", "public"]).expect_success();
    kctl.run(&["update", "--yes"]).expect_success();
    let records = |zone: &str| {
        let printed = simulator.run_python(
            REGION,
            &format!("print(*[r['Name'] for r in boto('route53').list_resource_record_sets(HostedZoneId='{zone}')['ResourceRecordSets'] if r['Type'] == 'A'])"),
        );
        printed.split_whitespace().count()
    };
    let made = records(&first);
    assert!(made > 0);
    let second = zone("example.com", "2");
    let longer = zone(NAME, "3");
    let ran = kctl.run(&["update"]).expect_success();
    assert!(ran.contains("No changes."), "{ran}");
    assert_eq!((records(&second), records(&longer)), (0, 0));
    // A new cluster has to say which.
    let words = [
        "create",
        "cluster",
        "other.example.com",
        "--zones",
        "eu-west-1a",
        "--dns",
        "public",
    ];
    let ran = kctl.run(&words);
    assert_ne!(ran.code, 0, "{}", ran.out);
    assert!(
        ran.err.contains(&first) && ran.err.contains(&second),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("spec.dnsZone"), "{}", ran.err);
    kctl.run(&["delete", "cluster", NAME, "--yes"])
        .expect_success();
    assert_eq!(records(&first), 0);
}

#[test]
fn an_elastic_ip_that_something_else_has_is_refused_before_aws_is_changed() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let ids = simulator.run_python(REGION, NETWORK);
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let allocation = simulator.run_python(
        REGION,
        &format!(
            "ec2 = boto('ec2')\n\
             allocation = ec2.allocate_address(Domain='vpc')['AllocationId']\n\
             interface = ec2.create_network_interface(SubnetId='{}')['NetworkInterface']['NetworkInterfaceId']\n\
             ec2.associate_address(AllocationId=allocation, NetworkInterfaceId=interface)\n\
             print(allocation)",
            ids[1]
        ),
    );
    let allocation = allocation.trim();
    // But for the spec and the log.
    let resources = || {
        let mut all = simulator.list_resources(REGION);
        all.retain(|one| !one.starts_with("s3 object "));
        all
    };
    let before = resources();
    let zone = "eu-west-1a";
    let words = ["create", "cluster", NAME, "--zones", zone];
    let private = ["--topology", "private", "--egress", allocation];
    // It stores the spec, and shows the plan.
    let created = kctl.run(&[&words[..], &private[..]].concat());
    assert!(created.err.contains("in use"), "{}", created.err);
    for command in [&["update"][..], &["update", "--yes"]] {
        let ran = kctl.run(command);
        assert_ne!(ran.code, 0, "{}", ran.out);
        let named = [allocation, "in use", " of eni-", "nat_gateway"];
        assert!(
            named.iter().all(|word| ran.err.contains(word)),
            "{}",
            ran.err
        );
        assert_eq!(before, resources());
    }
    simulator.run_python(
        REGION,
        &format!(
            "ec2 = boto('ec2')\n\
             held = ec2.describe_addresses(AllocationIds=['{allocation}'])['Addresses'][0]\n\
             ec2.disassociate_address(AssociationId=held['AssociationId'])"
        ),
    );
    kctl.run(&["update", "--yes"]).expect_success();
    // Now the cluster's own gateway has it.
    let ran = kctl.run(&["update"]).expect_success();
    assert!(ran.contains("No changes."), "{ran}");
}
