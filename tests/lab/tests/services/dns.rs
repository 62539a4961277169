//! What DNS answers, from where.

use crate::support::{instance, world};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use lab::services::access_log::AccessLog;
use lab::services::dns::wire::Transport;
use lab::services::dns::{Dns, Door, Settings};
use lab::services::sites::Sites;
use lab::world::{
    BalancerAddress, HealthCheck, HostedZone, Listener, LoadBalancer, Record, Target, TargetGroup,
    Vpc, World,
};
use std::net::Ipv4Addr;
use std::time::Instant;
use tempfile::TempDir;

pub const SOA: &str = "ns-1.awsdns-1.org. awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400";

pub fn record(name: &str, kind: &str, values: &[&str]) -> Record {
    Record {
        name: name.to_owned(),
        record_type: kind.to_owned(),
        ttl: 300,
        values: values.iter().map(ToString::to_string).collect(),
        alias: None,
    }
}

pub fn alias(name: &str, target: &str) -> Record {
    Record {
        alias: Some(target.to_owned()),
        ..record(name, "A", &[])
    }
}

/// With the SOA and NS records that Route 53 puts in.
pub fn zone(name: &str, vpcs: &[&str], records: Vec<Record>) -> HostedZone {
    let soa = Record {
        ttl: 900,
        ..record(name, "SOA", &[SOA])
    };
    let server = format!("ns-{}.awsdns-1.org.", name.len());
    let mut all = vec![soa, record(name, "NS", &[&server])];
    all.extend(records);
    HostedZone {
        id: format!("Z{name}"),
        name: name.to_owned(),
        private: !vpcs.is_empty(),
        vpcs: vpcs.iter().map(ToString::to_string).collect(),
        records: all,
    }
}

/// A resolver under test; its folders have no sites but dl.k8s.io and registry.k8s.io.
pub struct Lab {
    pub dns: Dns,
    _folder: TempDir,
}

/// What was answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Said {
    pub code: ResponseCode,
    /// `TYPE data`, in order of the text.
    pub answers: Vec<String>,
    /// Of the first record, of an answer or of a denial.
    pub ttl: Option<u32>,
}

pub fn lab(settings: Settings, world: &World) -> Lab {
    let folder = TempDir::new().expect("folder");
    let sites = Sites {
        mirror: folder.path().join("mirror"),
        registry: folder.path().join("registry"),
    };
    for site in ["mirror/dl.k8s.io", "registry/registry.k8s.io"] {
        std::fs::create_dir_all(folder.path().join(site)).expect("folder");
    }
    let log = AccessLog::open(&folder.path().join("log")).expect("log");
    Lab {
        dns: Dns::new(settings, sites, log, world),
        _folder: folder,
    }
}

impl Lab {
    pub fn ask(
        &self,
        door: &Door,
        source: Ipv4Addr,
        name: &str,
        kind: RecordType,
        now: Instant,
    ) -> Said {
        let mut query = Message::query();
        let name = Name::from_ascii(format!("{name}.")).expect("a name");
        query.add_query(Query::query(name, kind));
        let query = query.to_vec().expect("a query");
        let answer = self.dns.answer(door, source, &query, Transport::Tcp, now);
        let answer = Message::from_vec(&answer.expect("an answer")).expect("a message");
        let records = answer.answers.iter().chain(&answer.authorities);
        let ttl = records.map(|record| record.ttl).next();
        let texts = answer.answers.iter();
        let mut answers: Vec<String> = texts
            .map(|record| format!("{} {}", record.record_type(), record.data))
            .collect();
        answers.sort();
        Said {
            code: answer.metadata.response_code,
            answers,
            ttl,
        }
    }
}

pub const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 10);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 10);
const AWAY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 9);

pub fn door(vpc: &str) -> Door {
    Door::Vpc(vpc.to_owned())
}

/// Two VPCs with an instance each.
fn two_vpcs() -> World {
    let mut world = world();
    world.vpcs = vec![
        Vpc::plain("vpc-1", "10.0.0.0/16"),
        Vpc::plain("vpc-2", "10.1.0.0/16"),
    ];
    world.instances = vec![
        instance("i-1", "vpc-1", INSIDE),
        instance("i-2", "vpc-2", OTHER),
    ];
    world
}

fn addresses(lab: &Lab, name: &str) -> Vec<String> {
    let said = lab.ask(&door("vpc-1"), INSIDE, name, RecordType::A, Instant::now());
    let denied = said.answers.is_empty() && said.code != ResponseCode::NoError;
    if denied {
        vec![said.code.to_str().to_owned()]
    } else {
        said.answers
    }
}

const NXDOMAIN: &str = "Non-Existent Domain";

#[test]
fn a_private_zone_is_seen_from_its_vpcs_only_and_hides_the_public_one() {
    let mut world = two_vpcs();
    world.hosted_zones = vec![
        zone(
            "k.example.com",
            &[],
            vec![record("api.k.example.com", "A", &["198.18.3.3"])],
        ),
        zone(
            "k.example.com",
            &["vpc-1"],
            vec![record("api.k.example.com", "A", &["10.0.1.1"])],
        ),
        zone("k.example.com", &["vpc-2"], vec![]),
    ];
    let lab = lab(Settings::default(), &world);
    let now = Instant::now();
    let from = |door: &Door, source| {
        let said = lab.ask(door, source, "api.k.example.com", RecordType::A, now);
        (said.code, said.answers)
    };
    let found = |address: &str| (ResponseCode::NoError, vec![format!("A {address}")]);
    assert_eq!(from(&door("vpc-1"), INSIDE), found("10.0.1.1"));
    assert_eq!(from(&Door::LinkLocal, INSIDE), found("10.0.1.1"));
    let pod = Ipv4Addr::new(10, 0, 200, 7);
    assert_eq!(
        from(&Door::LinkLocal, pod),
        found("10.0.1.1"),
        "by the VPC's block"
    );
    assert_eq!(
        from(&door("vpc-2"), OTHER),
        (ResponseCode::NXDomain, vec![])
    );
    assert_eq!(from(&Door::Internet, AWAY), found("198.18.3.3"));
    assert_eq!(from(&Door::Internet, INSIDE), found("198.18.3.3"));
    let refused = (ResponseCode::Refused, vec![]);
    assert_eq!(
        from(&door("vpc-1"), OTHER),
        refused,
        "another VPC's resolver"
    );
    assert_eq!(from(&Door::LinkLocal, AWAY), refused);
}

#[test]
fn zones_answer_as_rfc_4592_and_route_53_say() {
    let mut world = two_vpcs();
    let records = vec![
        record("a.b.k.example.com", "A", &["10.0.0.1", "10.0.0.2"]),
        record("\\052.w.k.example.com", "A", &["10.0.0.3"]),
        record("own.w.k.example.com", "TXT", &["\"one two\" \"three\""]),
        record("c1.k.example.com", "CNAME", &["c2.k.example.com"]),
        record("c2.k.example.com", "CNAME", &["A.b.K.example.com."]),
        record("round.k.example.com", "CNAME", &["round.k.example.com"]),
        record("out.k.example.com", "CNAME", &["nowhere.test"]),
        alias("al.k.example.com", "a.b.k.example.com"),
        alias("none.k.example.com", "missing.k.example.com"),
        record(
            "_s._tcp.k.example.com",
            "SRV",
            &["0 5 2380 a.b.k.example.com"],
        ),
        record("bad.k.example.com", "A", &["no address"]),
    ];
    world.hosted_zones = vec![zone("k.example.com", &["vpc-1"], records)];
    let lab = lab(Settings::default(), &world);
    let both = ["A 10.0.0.1", "A 10.0.0.2"];
    for (name, expected) in [
        ("a.b.k.example.com", both.as_slice()),
        ("A.B.K.Example.COM", &both),
        ("b.k.example.com", &[]),
        ("x.b.k.example.com", &[NXDOMAIN]),
        ("x.w.k.example.com", &["A 10.0.0.3"]),
        ("x.y.w.k.example.com", &["A 10.0.0.3"]),
        ("own.w.k.example.com", &[]),
        ("x.own.w.k.example.com", &[NXDOMAIN]),
        ("al.k.example.com", &both),
        ("none.k.example.com", &[]),
        ("round.k.example.com", &["Server Failure"]),
        ("bad.k.example.com", &["Server Failure"]),
    ] {
        assert_eq!(addresses(&lab, name), expected, "{name}");
    }
    let ask = |name, kind| lab.ask(&door("vpc-1"), INSIDE, name, kind, Instant::now());
    let chain = ask("c1.k.example.com", RecordType::A).answers;
    let names = ["CNAME a.b.k.example.com.", "CNAME c2.k.example.com."];
    assert_eq!(chain, [both.as_slice(), &names].concat());
    let out = ask("out.k.example.com", RecordType::A);
    assert_eq!(out.code, ResponseCode::NXDomain);
    assert_eq!(out.answers, ["CNAME nowhere.test."]);
    let service = ask("_s._tcp.k.example.com", RecordType::SRV).answers;
    assert_eq!(service, ["SRV 0 5 2380 a.b.k.example.com."]);
    assert_eq!(ask("al.k.example.com", RecordType::AAAA).answers, [""; 0]);
    assert_eq!(
        ask("al.k.example.com", RecordType::AAAA).code,
        ResponseCode::NoError
    );
    assert_eq!(ask("own.w.k.example.com", RecordType::TXT).answers.len(), 1);
}

#[test]
fn a_public_zone_in_another_one_answers_once_it_is_delegated() {
    let child = zone(
        "k.example.com",
        &[],
        vec![record("api.k.example.com", "A", &["198.18.3.3"])],
    );
    let server = child.records[1].values[0].clone();
    let parent = |ns: &[&str]| {
        let delegation = record("k.example.com", "NS", ns);
        let records = if ns.is_empty() {
            vec![]
        } else {
            vec![delegation]
        };
        zone("example.com", &[], records)
    };
    for (ns, expected) in [
        (vec![], NXDOMAIN),
        (vec!["ns-other.awsdns-1.org"], "Server Failure"),
        (vec![server.as_str()], "A 198.18.3.3"),
    ] {
        let mut world = two_vpcs();
        world.hosted_zones = vec![child.clone(), parent(&ns)];
        let lab = lab(Settings::default(), &world);
        assert_eq!(addresses(&lab, "api.k.example.com"), [expected], "{ns:?}");
    }
}

fn balancer(scheme: &str) -> LoadBalancer {
    let address = |zone: &str, last| BalancerAddress {
        zone: zone.to_owned(),
        subnet: "subnet-1".to_owned(),
        address: Ipv4Addr::new(10, 0, 1, last),
        public_address: (scheme != "internal").then(|| Ipv4Addr::new(198, 18, 5, last)),
    };
    LoadBalancer {
        arn: "arn:lb".to_owned(),
        dns_name: "api-1.elb.us-east-1.amazonaws.com".to_owned(),
        scheme: scheme.to_owned(),
        state: "active".to_owned(),
        vpc: "vpc-1".to_owned(),
        cross_zone: false,
        security_groups: vec![],
        addresses: vec![address("us-east-1a", 4), address("us-east-1b", 5)],
        listeners: vec![Listener {
            protocol: "TCP".to_owned(),
            port: 443,
            target_group: "arn:tg".to_owned(),
        }],
    }
}

/// The instances of both zones, each a target in this state.
fn targets(states: [&str; 2]) -> TargetGroup {
    let target = |(instance, state): (&str, &str)| Target {
        instance: instance.to_owned(),
        port: 443,
        state: state.to_owned(),
    };
    TargetGroup {
        arn: "arn:tg".to_owned(),
        protocol: "TCP".to_owned(),
        port: 443,
        health_check: HealthCheck {
            protocol: "TCP".to_owned(),
            port: 443,
            path: None,
            interval: 10,
            timeout: 5,
            healthy_threshold: 2,
            unhealthy_threshold: 2,
        },
        preserve_client_ip: true,
        targets: ["i-1", "i-2"].into_iter().zip(states).map(target).collect(),
    }
}

#[test]
fn a_load_balancer_has_the_addresses_of_the_zones_that_serve() {
    let answered = |scheme: &str, states, change: &dyn Fn(&mut LoadBalancer)| {
        let mut world = two_vpcs();
        world.instances[1].zone = "us-east-1b".to_owned();
        let mut balancer = balancer(scheme);
        change(&mut balancer);
        world.load_balancers = vec![balancer];
        world.target_groups = vec![targets(states)];
        let target = "dualstack.api-1.elb.us-east-1.amazonaws.com";
        let records = vec![alias("api.k.example.com", target)];
        world.hosted_zones = vec![zone("k.example.com", &[], records)];
        let lab = lab(Settings::default(), &world);
        let own = addresses(&lab, "api-1.elb.us-east-1.amazonaws.com");
        let by_alias = addresses(&lab, "api.k.example.com");
        assert!(own == by_alias || own == [NXDOMAIN], "{own:?} {by_alias:?}");
        own
    };
    let as_is = |_: &mut LoadBalancer| {};
    let (a, b) = ("A 10.0.1.4", "A 10.0.1.5");
    assert_eq!(answered("internal", ["healthy", "healthy"], &as_is), [a, b]);
    assert_eq!(answered("internal", ["healthy", "unhealthy"], &as_is), [a]);
    assert_eq!(
        answered("internal", ["initial", "unhealthy"], &as_is),
        [a, b],
        "none serves"
    );
    let cross = |balancer: &mut LoadBalancer| balancer.cross_zone = true;
    assert_eq!(
        answered("internal", ["healthy", "unhealthy"], &cross),
        [a, b]
    );
    let public = ["A 198.18.5.4", "A 198.18.5.5"];
    assert_eq!(
        answered("internet-facing", ["healthy", "healthy"], &as_is),
        public
    );
    let new = |balancer: &mut LoadBalancer| "provisioning".clone_into(&mut balancer.state);
    assert_eq!(
        answered("internal", ["healthy", "healthy"], &new),
        [NXDOMAIN]
    );
}

#[test]
fn aws_names_instances_inside_their_vpc_and_publicly() {
    let mut world = two_vpcs();
    world.instances[0].hostname = "i-1.ec2.internal".to_owned();
    world.instances[0].public_address = Some(Ipv4Addr::new(198, 19, 0, 7));
    let lab = lab(Settings::default(), &world);
    let now = Instant::now();
    let inside = |name, kind| lab.ask(&door("vpc-1"), INSIDE, name, kind, now).answers;
    let own = ["A 10.0.1.10"];
    assert_eq!(inside("ip-10-0-1-10.ec2.internal", RecordType::A), own);
    assert_eq!(inside("i-1.ec2.internal", RecordType::A), own);
    let reverse = inside("10.1.0.10.in-addr.arpa", RecordType::PTR);
    assert_eq!(reverse, ["PTR i-1.ec2.internal."]);
    assert_eq!(
        addresses(&lab, "ip-10-1-1-10.ec2.internal"),
        [NXDOMAIN],
        "another VPC's"
    );
    let public = "ec2-198-19-0-7.compute-1.amazonaws.com";
    assert_eq!(inside(public, RecordType::A), own);
    let away = lab.ask(&Door::Internet, AWAY, public, RecordType::A, now);
    assert_eq!(away.answers, ["A 198.19.0.7"]);
    let hidden = lab.ask(
        &Door::Internet,
        AWAY,
        "i-1.ec2.internal",
        RecordType::A,
        now,
    );
    assert_eq!(hidden.code, ResponseCode::NXDomain);
}

#[test]
fn public_names_lead_to_the_front_as_far_as_it_serves_them() {
    let lab = lab(Settings::default(), &two_vpcs());
    let front = ["A 198.18.0.1"];
    for name in [
        "ec2.us-east-1.amazonaws.com",
        "bucket.s3.eu-west-1.amazonaws.com",
        "ec2.us-east-1.api.aws",
        "dl.k8s.io",
        "registry.k8s.io",
    ] {
        assert_eq!(addresses(&lab, name), front, "{name}");
        let v6 = lab.ask(
            &Door::Internet,
            AWAY,
            name,
            RecordType::AAAA,
            Instant::now(),
        );
        assert_eq!((v6.code, v6.answers.len()), (ResponseCode::NoError, 0));
    }
    for name in [
        "example.org",
        "k8s.gcr.io",
        "none.elb.us-east-1.amazonaws.com",
    ] {
        assert_eq!(addresses(&lab, name), [NXDOMAIN], "{name}");
    }
}
