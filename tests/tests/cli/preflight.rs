//! What `kctl preflight` finds, each named exactly: quotas, types that a zone lacks, images, addresses, delegations, and what keeps
//! parts of a cluster from reaching each other. Of a cluster that is as it should be it says nothing.

use crate::kctl::Kctl;
use crate::scenario::{NAME, REGION, create_cluster, kctl_with_cloud};
use crate::simulator::Simulator;
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, NS};
use hickory_proto::rr::{Name, RData, Record};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};

/// The rows, of a run that ends as they say.
fn rows(kctl: &Kctl, more: &[&str]) -> Vec<Value> {
    let ran = kctl.run(&[&["preflight", NAME, "-o", "json"][..], more].concat());
    let all = ran.all_output();
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{all}"));
    assert_eq!(
        (&document["format"], &document["cluster"]),
        (&json!(1), &json!(NAME))
    );
    let rows = document["checks"].as_array().expect("rows").clone();
    let code = if with_state(&rows, "problem").is_empty() {
        0
    } else {
        4
    };
    assert_eq!(ran.code, code, "{all}");
    rows
}

/// Check, subject and message of the rows with a state, without AWS' ids.
fn with_state(rows: &[Value], state: &str) -> BTreeSet<String> {
    let rows = rows.iter().filter(|row| row["state"] == state);
    rows.map(|row| {
        let words = ["check", "subject", "message"].map(|name| row[name].as_str().expect("text"));
        without_ids(&words.join(" | "))
    })
    .collect()
}

fn without_ids(text: &str) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '-';
    let words = text.split_inclusive(|char| !is_part(char));
    words
        .map(|word| {
            let id = word.trim_end_matches(|char| !is_part(char));
            let hex = id.split_once('-').map_or("", |(_, hex)| hex);
            let is_id = hex.len() >= 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_id {
                word.replace(id, "ID")
            } else {
                word.to_owned()
            }
        })
        .collect()
}

fn problems(kctl: &Kctl) -> BTreeSet<String> {
    with_state(&rows(kctl, &[]), "problem")
}

fn texts(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

/// Every row is `ok`.
fn assert_clean(kctl: &Kctl) {
    let rows = rows(kctl, &[]);
    assert!(rows.iter().all(|row| row["state"] == "ok"), "{rows:#?}");
}

#[test]
fn quotas_are_held_against_the_greatest_size_and_nothing_is_made() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    let before = simulator.list_resources(REGION);
    let found = rows(&kctl, &[]);
    assert_eq!(with_state(&found, "problem"), texts(&[]));
    // Nobody in IAM: anybody's keys do here.
    let unknown = with_state(&found, "not_known");
    assert_eq!(unknown.len(), 2, "{unknown:#?}");
    assert!(
        unknown.contains("ports | the VPC | the first update makes the VPC and all in it")
            && unknown
                .iter()
                .any(|row| row.starts_with("permissions | the caller | ")
                    && row.contains("neither user nor role")),
        "{unknown:#?}"
    );
    let fine = with_state(&found, "ok");
    let vpcs = "quotas | VPCs per Region | 1 VPCs needed, the quota is 5: 1 for this cluster at maxSize, 0 used by others";
    assert!(fine.contains(vpcs), "{fine:#?}");
    let table = kctl.run(&["preflight", NAME]);
    assert!(
        table.all_output().contains("no check found a problem"),
        "{}",
        table.all_output()
    );

    simulator.set_quotas(&json!({"L-1216C47A": 11, "L-F678F1CE": 0}));
    // Room that is paid for counts, even if nothing runs in it.
    simulator.run_python(
        REGION,
        "boto('ec2').create_capacity_reservation(InstanceType='m5.large', InstancePlatform='Linux/UNIX', \
         AvailabilityZone='eu-west-1a', InstanceCount=2)",
    );
    assert_eq!(
        problems(&kctl),
        texts(&[
            "quotas | Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances | 12 vCPUs needed, the quota is 11: 8 for this \
             cluster at maxSize, 4 used by others",
            "quotas | VPCs per Region | 1 VPCs needed, the quota is 0: 1 for this cluster at maxSize, 0 used by others",
        ])
    );
    let table = kctl.run(&["preflight", NAME]);
    assert_eq!(table.code, 4);
    assert!(
        table
            .out
            .contains("--service-code ec2 --quota-code L-1216C47A --desired-value 12"),
        "{}",
        table.out
    );
    assert!(table.err.contains("2 problems"), "{}", table.err);

    simulator.set_faults(&json!([{
        "service": "service-quotas", "times": 100, "code": "AccessDeniedException", "message": "no", "status": 400,
    }]));
    let found = rows(&kctl, &[]);
    let quotas: Vec<&Value> = found
        .iter()
        .filter(|row| row["check"] == "quotas")
        .collect();
    assert!(
        !quotas.is_empty() && quotas.iter().all(|row| row["state"] == "not_known"),
        "{quotas:#?}"
    );
    assert_eq!(before, simulator.list_resources(REGION));
}

#[test]
fn a_zone_without_the_type_and_an_image_of_another_architecture_are_named() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    for (group, machine_type) in [("c", "c8a.large"), ("b", "t4g.medium")] {
        let group = format!("nodes-eu-west-1{group}");
        let set = format!("spec.machineType={machine_type}");
        kctl.run(&["edit", "ig", &group, "--set", &set])
            .expect_success();
    }
    let found = rows(&kctl, &[]);
    assert_eq!(
        with_state(&found, "problem"),
        texts(&[
            "images | nodes-eu-west-1b | the image is for amd64, and t4g.medium is arm64",
            "instance types | nodes-eu-west-1c | eu-west-1c does not offer c8a.large",
        ])
    );
    // All other checks have a row too.
    let unknown = found.iter().filter(|row| row["state"] == "not_known");
    let unknown: Vec<&str> = unknown.filter_map(|row| row["check"].as_str()).collect();
    assert_eq!(
        unknown,
        ["quotas", "addresses", "permissions", "delegation", "ports"]
    );
}

/// A VPC with one public subnet of 16 addresses. Prints the ids of both.
const SMALL_NETWORK: &str = "
ec2 = boto('ec2')
vpc = ec2.create_vpc(CidrBlock='10.7.0.0/16')['Vpc']['VpcId']
for name in ('EnableDnsSupport', 'EnableDnsHostnames'):
    ec2.modify_vpc_attribute(VpcId=vpc, **{name: {'Value': True}})
gateway = ec2.create_internet_gateway()['InternetGateway']['InternetGatewayId']
ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
subnet = ec2.create_subnet(VpcId=vpc, CidrBlock='10.7.0.0/28', AvailabilityZone='eu-west-1a')['Subnet']['SubnetId']
table = ec2.create_route_table(VpcId=vpc)['RouteTable']['RouteTableId']
ec2.create_route(RouteTableId=table, DestinationCidrBlock='0.0.0.0/0', GatewayId=gateway)
ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
print(vpc, subnet)";

#[test]
fn a_subnet_without_room_for_its_groups_is_named() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let ids = simulator.run_python(REGION, SMALL_NETWORK);
    let (vpc, subnet) = ids.split_once(' ').expect("two ids");
    let words = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
    let shared = ["--network-id", vpc, "--subnets", subnet];
    kctl.run(&[&words[..], &shared[..]].concat())
        .expect_success();
    let found = rows(&kctl, &[]);
    assert_eq!(with_state(&found, "problem"), texts(&[]));
    // Two instances and the load balancer.
    let fine = "addresses | eu-west-1a (ID) | 3 are needed at the greatest size, 11 are free";
    assert!(with_state(&found, "ok").contains(fine), "{found:#?}");
    kctl.run(&["edit", "ig", "nodes-eu-west-1a", "--set", "spec.maxSize=12"])
        .expect_success();
    assert_eq!(
        problems(&kctl),
        texts(&["addresses | eu-west-1a (ID) | 14 are needed at the greatest size, 11 are free"])
    );
    let more =
        format!("for _ in range(4): boto('ec2').create_network_interface(SubnetId='{subnet}')");
    simulator.run_python(REGION, &more);
    assert_eq!(
        problems(&kctl),
        texts(&[
            "addresses | eu-west-1a (ID) | 8 have to be free for a new load balancer or NAT gateway, 7 are free"
        ])
    );
}

/// Takes a rule away, of a security group by its name. The other side is a group's name or a range.
const REVOKE: &str = "
ec2 = boto('ec2')
groups = {group['GroupName']: group['GroupId'] for group in ec2.describe_security_groups()['SecurityGroups']}
def revoke(name, egress, protocol, port, other):
    group = groups[name + '.demo.example.com']
    rules = ec2.describe_security_group_rules(Filters=[{'Name': 'group-id', 'Values': [group]}])['SecurityGroupRules']
    def side(rule): return rule.get('CidrIpv4') or rule.get('CidrIpv6') or rule['ReferencedGroupInfo']['GroupId']
    def words(rule): return (rule['IsEgress'], rule['IpProtocol'], rule.get('FromPort', -1), side(rule))
    wanted = (egress, protocol, port, groups.get(other + '.demo.example.com', other))
    found = [rule['SecurityGroupRuleId'] for rule in rules if words(rule) == wanted]
    assert len(found) == 1, (wanted, rules)
    call = ec2.revoke_security_group_egress if egress else ec2.revoke_security_group_ingress
    call(GroupId=group, SecurityGroupRuleIds=found)
";

fn revoke(simulator: &Simulator, rules: &[&str]) {
    let calls = rules.iter().map(|rule| format!("revoke({rule})\n"));
    let code: String = std::iter::once(REVOKE.to_owned()).chain(calls).collect();
    simulator.run_python(REGION, &code);
}

#[test]
fn a_rule_that_is_gone_is_named_with_what_needs_it() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &["--yes"]).expect_success();
    assert_clean(&kctl);

    revoke(
        &simulator,
        &[
            "'masters', False, 'tcp', 443, 'nodes'",
            "'masters', False, 'udp', 8472, 'nodes'",
            "'masters', False, 'tcp', 443, 'api-elb'",
            "'api-elb', False, 'tcp', 443, '0.0.0.0/0'",
            "'api-elb', False, 'icmp', 3, '0.0.0.0/0'",
            "'nodes', False, 'tcp', 22, '0.0.0.0/0'",
        ],
    );
    let narrow = texts(&[
        "ports | nodes to control planes, tcp 443 | the API: no rule of masters.demo.example.com (ID) allows ingress tcp 443 from \
         nodes.demo.example.com",
        "ports | nodes to control planes, udp 8472 | packets of pods: no rule of masters.demo.example.com (ID) allows ingress udp 8472 \
         from nodes.demo.example.com",
        "ports | the API's load balancer to control planes, tcp 443 | the API behind its load balancer: no rule of \
         masters.demo.example.com (ID) allows ingress tcp 443 from api-elb.demo.example.com",
        "ports | 0.0.0.0/0 to the API's load balancer, tcp 443 | the API for clients outside: no rule of api-elb.demo.example.com (ID) \
         allows ingress tcp 443 from 0.0.0.0/0",
        "ports | 0.0.0.0/0 to the API's load balancer, icmp \"fragmentation needed\" | path MTU discovery: no rule of \
         api-elb.demo.example.com (ID) allows ingress icmp \"fragmentation needed\" from 0.0.0.0/0",
        "ports | 0.0.0.0/0 to nodes, tcp 22 | SSH: no rule of nodes.demo.example.com (ID) allows ingress tcp 22 from 0.0.0.0/0",
    ]);
    assert_eq!(problems(&kctl), narrow);

    // One of these two is for all that comes from control planes, the other for all that nodes send.
    revoke(
        &simulator,
        &[
            "'nodes', False, '-1', -1, 'masters'",
            "'nodes', True, '-1', -1, '0.0.0.0/0'",
        ],
    );
    let found = problems(&kctl);
    let more = found.difference(&narrow);
    let (from_control_planes, from_nodes): (Vec<&String>, Vec<&String>) =
        more.partition(|row| row.starts_with("ports | control planes to nodes, "));
    assert!(
        from_control_planes.len() > 1
            && from_control_planes
                .iter()
                .all(|row| row.ends_with(" from masters.demo.example.com")),
        "{found:#?}"
    );
    assert!(
        from_nodes
            .iter()
            .all(|row| row.starts_with("ports | nodes to ")
                && row.contains(": no rule of nodes.demo.example.com (ID) allows egress ")),
        "{found:#?}"
    );
    let internet = "ports | nodes to 0.0.0.0/0, tcp 443 | AWS' services, registries, downloads: no rule of nodes.demo.example.com (ID) \
                    allows egress tcp 443 to 0.0.0.0/0";
    assert!(found.contains(internet), "{found:#?}");

    kctl.run(&["update", NAME, "--yes"]).expect_success();
    assert_clean(&kctl);
}

/// Sends what leaves a private subnet to the internet gateway, and denies packets of pods at its border.
const WRONG_TURNS: &str = "
ec2 = boto('ec2')
named = [{'Name': 'tag:Name', 'Values': ['eu-west-1a.demo.example.com']}]
subnet = ec2.describe_subnets(Filters=named)['Subnets'][0]['SubnetId']
of_subnet = [{'Name': 'association.subnet-id', 'Values': [subnet]}]
table = ec2.describe_route_tables(Filters=of_subnet)['RouteTables'][0]['RouteTableId']
gateway = ec2.describe_internet_gateways()['InternetGateways'][0]['InternetGatewayId']
ec2.replace_route(RouteTableId=table, DestinationCidrBlock='0.0.0.0/0', GatewayId=gateway)
acl = ec2.describe_network_acls(Filters=of_subnet)['NetworkAcls'][0]['NetworkAclId']
ports = {'From': 8472, 'To': 8472}
ec2.create_network_acl_entry(
    NetworkAclId=acl, RuleNumber=90, Protocol='17', RuleAction='deny', Egress=False, CidrBlock='172.20.0.0/16', PortRange=ports)
";

#[test]
fn a_route_that_leads_elsewhere_and_an_acl_that_denies_are_named() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &["--topology", "private", "--yes"]).expect_success();
    assert_clean(&kctl);
    simulator.run_python(REGION, WRONG_TURNS);
    let found: Vec<String> = problems(&kctl).into_iter().collect();
    let [acl, route] = &found[..] else {
        panic!("{found:#?}")
    };
    let denied = "ports | ID ingress | entry 90 of ID (eu-west-1a.demo.example.com) denies ingress udp 8472 from 172.20.";
    let in_the_way =
        ". In the way of: nodes to control planes, udp 8472: packets of pods; and 2 more";
    assert!(
        acl.starts_with(denied) && acl.ends_with(in_the_way),
        "{acl}"
    );
    assert_eq!(
        route,
        "ports | eu-west-1a.demo.example.com (ID) | ID sends 0.0.0.0/0 to ID: instances of a private subnet have no public address"
    );
}

/// The address of a name server: servers with one number are one server.
fn address_of(server: &Name) -> Ipv4Addr {
    let name = server.to_ascii();
    let digits = name.chars().filter(char::is_ascii_digit).take(4);
    let number: u16 = digits.collect::<String>().parse().expect("a number");
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(198, 51, high, low)
}

/// Refers to the servers of a zone, as a name server of its parent does, with the addresses of those below it (RFC 1034, 4.3.2).
fn refer(answer: &mut Message, zone: &Name, servers: &[&str]) {
    for server in servers {
        let server = Name::from_ascii(server).expect("a name");
        let record = RData::NS(NS(server.clone()));
        answer.add_authority(Record::from_rdata(zone.clone(), 60, record));
        if zone.zone_of(&server) {
            let glue = RData::A(A(address_of(&server)));
            answer.add_additional(Record::from_rdata(server, 60, glue));
        }
    }
}

/// A name server of the parent of `example.com` on this machine, which names these servers of it. Addresses of names elsewhere it looks up,
/// so that nobody else has to be asked.
fn serve_delegation(servers: &'static [&'static str]) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("its address").to_string();
    let zone = Name::from_ascii("example.com.").expect("a name");
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let asked = Message::from_vec(&buffer[..length]).expect("a question");
            let owner = asked.queries[0].name();
            let code = ResponseCode::NoError;
            let mut answer = Message::error_msg(asked.metadata.id, asked.metadata.op_code, code);
            answer.add_queries(asked.queries.clone());
            if zone.zone_of(owner) {
                refer(&mut answer, &zone, servers);
            } else {
                let found = RData::A(A(address_of(owner)));
                answer.add_answer(Record::from_rdata(owner.clone(), 60, found));
            }
            let bytes = answer.to_vec().expect("bytes");
            socket.send_to(&bytes, from).expect("an answer");
        }
    });
    address
}

/// Those of every zone of the simulator.
const ZONE_SERVERS: &[&str] = &[
    "ns-2048.awsdns-64.com.",
    "ns-2049.awsdns-65.net.",
    "ns-2050.awsdns-66.org.",
    "ns-2051.awsdns-67.co.uk.",
];

#[test]
fn a_parent_that_names_other_servers_is_told_and_one_that_does_not_answer_is_no_problem() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    simulator.run_python(
        REGION,
        "boto('route53').create_hosted_zone(Name='example.com', CallerReference='test')",
    );
    create_cluster(&kctl, &["--dns", "public"]).expect_success();
    let delegation = |servers: &'static [&'static str]| {
        let server = serve_delegation(servers);
        let mut rows = rows(&kctl, &["--name-server", &server]);
        rows.retain(|row| row["check"] == "delegation");
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows.remove(0)
    };
    const SOME_OTHERS: &[&str] = &["ns-2048.awsdns-64.com.", "ns1.example.com."];
    // The zone's own servers under other names.
    const WHITE_LABEL: &[&str] = &["ns-2048.example.com.", "ns-2050.example.com."];
    const WHITE_AND_OTHER: &[&str] = &["ns-2048.example.com.", "ns1.example.com."];
    for (servers, state) in [
        (ZONE_SERVERS, "ok"),
        (&ZONE_SERVERS[..2], "ok"),
        (SOME_OTHERS, "not_known"),
        (WHITE_LABEL, "ok"),
        (WHITE_AND_OTHER, "not_known"),
    ] {
        assert_eq!(delegation(servers)["state"], state, "{servers:?}");
    }
    let wrong = delegation(&["ns-1.elsewhere.example."]);
    assert_eq!(wrong["state"], "problem");
    let message = wrong["message"].as_str().expect("text");
    let own = "ns-2048.awsdns-64.com, ns-2049.awsdns-65.net, ns-2050.awsdns-66.org, ns-2051.awsdns-67.co.uk";
    assert!(
        message.starts_with("its parent names ns-1.elsewhere.example, and the servers of ")
            && message.ends_with(own),
        "{wrong:#?}"
    );
    assert!(
        wrong["next"].as_str().expect("text").ends_with(own),
        "{wrong:#?}"
    );
    // Names of the user's own, for which the parent has an address of another server.
    let stale = delegation(&["ns-1.example.com."]);
    assert_eq!(stale["state"], "problem");
    let message = stale["message"].as_str().expect("text");
    assert!(
        message.starts_with("its parent names ns-1.example.com (198.51.0.1), and the servers of "),
        "{stale:#?}"
    );
    assert!(
        stale["next"].as_str().expect("text").contains("(glue)"),
        "{stale:#?}"
    );
    // Nobody listens there.
    let silent = rows(&kctl, &["--name-server", "127.0.0.1:9"]);
    let row = silent.iter().find(|row| row["check"] == "delegation");
    assert_eq!(row.expect("a row")["state"], "not_known", "{silent:#?}");
}
