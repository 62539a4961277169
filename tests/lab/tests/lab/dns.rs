//! Properties of the lab's DNS that scenarios depend on but cannot check: private zones are visible in their VPCs only, and a negative
//! answer is cached for as long as Route 53 says.

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use lab::aws_state::{AwsState, HostedZone, Instance, Record, Subnet, Vpc};
use lab::services::access_log::AccessLog;
use lab::services::dns::wire::Transport;
use lab::services::dns::{Dns, DnsEndpoint};
use lab::services::sites::Sites;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

const ZONE: &str = "k.example.com";
const NAME: &str = "api.k.example.com";

/// A host of the first VPC, a host of the second, and a client on the internet.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 10);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 10);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 9);

/// A hosted zone with the SOA record of Route 53 (negative answers are valid for 900 seconds), and with the name if it has an address.
fn hosted_zone(vpcs: &[&str], address: Option<&str>) -> HostedZone {
    let record = |name: &str, record_type: &str, ttl, value: &str| Record {
        name: name.to_owned(),
        record_type: record_type.to_owned(),
        ttl,
        values: vec![value.to_owned()],
        alias: None,
    };
    let soa = "ns-1.awsdns-1.org. awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400";
    let mut records = vec![record(ZONE, "SOA", 900, soa)];
    records.extend(address.map(|address| record(NAME, "A", 300, address)));
    HostedZone {
        id: format!("Z{}", vpcs.concat()),
        name: ZONE.to_owned(),
        private: !vpcs.is_empty(),
        vpcs: vpcs.iter().map(ToString::to_string).collect(),
        records,
    }
}

fn world_with_zones(hosted_zones: Vec<HostedZone>) -> AwsState {
    let host = |id: &str, vpc: &str, address| Instance {
        vpc: vpc.to_owned(),
        ..Instance::new_running(id, address)
    };
    AwsState {
        serial: 1,
        region: "us-east-1".to_owned(),
        vpcs: vec![
            Vpc::new_open("vpc-1", "10.0.0.0/16"),
            Vpc::new_open("vpc-2", "10.1.0.0/16"),
        ],
        instances: vec![host("i-1", "vpc-1", HOST), host("i-2", "vpc-2", OTHER)],
        hosted_zones,
        ..AwsState::default()
    }
}

/// The resolvers of a world without download sites.
fn new_resolvers(world: &AwsState) -> Dns {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites {
        mirror: folder.path().join("mirror"),
        registry: folder.path().join("registry"),
    };
    let log = AccessLog::open(&folder.path().join("log")).unwrap();
    Dns::new(sites, log, world)
}

/// Response code, addresses and TTL in seconds.
type DnsReply = (ResponseCode, Vec<String>, Option<u32>);

fn ask_resolver(dns: &Dns, door: &DnsEndpoint, source: Ipv4Addr, now: Instant) -> DnsReply {
    ask_for(dns, door, source.into(), RecordType::A, now)
}

fn ask_for(
    dns: &Dns,
    door: &DnsEndpoint,
    source: IpAddr,
    kind: RecordType,
    now: Instant,
) -> DnsReply {
    let mut query = Message::query();
    query.add_query(Query::query(
        Name::from_ascii(format!("{NAME}.")).unwrap(),
        kind,
    ));
    let answer = dns.answer_query(door, source, &query.to_vec().unwrap(), Transport::Tcp, now);
    let answer = Message::from_vec(&answer.unwrap()).unwrap();
    let addresses = answer.answers.iter().map(|record| record.data.to_string());
    let ttl = answer
        .answers
        .iter()
        .chain(&answer.authorities)
        .map(|record| record.ttl)
        .next();
    (answer.metadata.response_code, addresses.collect(), ttl)
}

fn vpc_door(id: &str) -> DnsEndpoint {
    DnsEndpoint::Vpc(id.to_owned())
}

#[test]
fn a_private_zone_is_seen_from_its_vpcs_only_and_hides_the_public_one() {
    let dns = new_resolvers(&world_with_zones(vec![
        hosted_zone(&[], Some("198.18.3.3")),
        hosted_zone(&["vpc-1"], Some("10.0.1.1")),
        hosted_zone(&["vpc-2"], None),
    ]));
    let now = Instant::now();
    let seen = |door: &DnsEndpoint, source| {
        let (code, addresses, _) = ask_resolver(&dns, door, source, now);
        (code, addresses.concat())
    };
    let found = |address: &str| (ResponseCode::NoError, address.to_owned());
    assert_eq!(seen(&vpc_door("vpc-1"), HOST), found("10.0.1.1"));
    assert_eq!(seen(&DnsEndpoint::LinkLocal, HOST), found("10.0.1.1"));
    let denied = (ResponseCode::NXDomain, String::new());
    assert_eq!(seen(&vpc_door("vpc-2"), OTHER), denied);
    assert_eq!(seen(&DnsEndpoint::Internet, OUTSIDE), found("198.18.3.3"));
    let refused = (ResponseCode::Refused, String::new());
    assert_eq!(
        seen(&vpc_door("vpc-1"), OTHER),
        refused,
        "another VPC's resolver"
    );
    assert_eq!(seen(&DnsEndpoint::LinkLocal, OUTSIDE), refused);
}

#[test]
fn a_name_asked_for_before_it_exists_stays_unknown_until_the_denial_is_over() {
    let zones = |address| vec![hosted_zone(&["vpc-1", "vpc-2"], address)];
    let dns = new_resolvers(&world_with_zones(zones(None)));
    let begin = Instant::now();
    let at = |seconds| begin + Duration::from_secs(seconds);
    let denied = |ttl| (ResponseCode::NXDomain, vec![], Some(ttl));
    assert_eq!(
        ask_resolver(&dns, &vpc_door("vpc-1"), HOST, begin),
        denied(900)
    );
    dns.observe_world(&world_with_zones(zones(Some("10.0.1.1"))));
    assert_eq!(
        ask_resolver(&dns, &vpc_door("vpc-1"), HOST, at(899)),
        denied(1)
    );
    let found = (
        ResponseCode::NoError,
        vec!["10.0.1.1".to_owned()],
        Some(300),
    );
    assert_eq!(
        ask_resolver(&dns, &vpc_door("vpc-2"), OTHER, at(899)),
        found,
        "nobody asked this resolver before"
    );
    assert_eq!(ask_resolver(&dns, &vpc_door("vpc-1"), HOST, at(900)), found);
}

#[test]
fn ipv4_addresses_are_translated_for_instances_and_pods_of_subnets_with_dns64() {
    let mut world = world_with_zones(vec![hosted_zone(&[], Some("198.18.3.3"))]);
    let subnet = |id: &str, dns64| Subnet {
        id: id.to_owned(),
        vpc: "vpc-1".to_owned(),
        zone: "us-east-1a".to_owned(),
        cidr: None,
        dns64,
        route_table: "rtb-1".to_owned(),
    };
    world.subnets = vec![subnet("with", true), subnet("without", false)];
    let host: IpAddr = "2001:db8::10".parse().unwrap();
    let pod: IpAddr = "2001:db8:0:0:1::10".parse().unwrap();
    let link_local: Ipv4Addr = "169.254.0.1".parse().unwrap();
    world.instances[0].address = link_local;
    world.instances[0].ipv6_addresses = vec!["2001:db8::10".parse().unwrap()];
    world.instances[0].ipv6_prefixes = vec!["2001:db8:0:0:1::/80".parse().unwrap()];
    let now = Instant::now();
    let seen = |dns: &Dns, source, kind| {
        ask_for(dns, &DnsEndpoint::LinkLocal, source, kind, now)
            .1
            .concat()
    };
    for (subnet, translated) in [("with", "64:ff9b::c612:303"), ("without", "")] {
        world.instances[0].subnet = subnet.to_owned();
        let dns = new_resolvers(&world);
        for source in [host, pod, link_local.into()] {
            assert_eq!(seen(&dns, source, RecordType::AAAA), translated, "{source}");
            assert_eq!(seen(&dns, source, RecordType::A), "198.18.3.3", "{source}");
        }
    }
    // A name that has IPv6 addresses keeps them.
    let record = Record {
        name: NAME.to_owned(),
        record_type: "AAAA".to_owned(),
        ttl: 300,
        values: vec!["2001:db8::3".to_owned()],
        alias: None,
    };
    world.hosted_zones[0].records.push(record);
    world.instances[0].subnet = "with".to_owned();
    let dns = new_resolvers(&world);
    assert_eq!(seen(&dns, host, RecordType::AAAA), "2001:db8::3");
}
