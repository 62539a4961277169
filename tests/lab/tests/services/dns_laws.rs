//! The laws of time: what was answered or denied holds until its TTL is over; a change is seen some time after it
//! was made. The clock is an argument.

use crate::dns::{INSIDE, Said, door, lab, record, zone};
use crate::support::{instance, world};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use lab::services::dns::Settings;
use lab::world::{Vpc, World};
use proptest::prelude::*;
use std::time::{Duration, Instant};

const NAME: &str = "api.k.example.com";

fn world_with(address: Option<&str>) -> World {
    let mut world = world();
    world.vpcs = vec![
        Vpc::plain("vpc-1", "10.0.0.0/16"),
        Vpc::plain("vpc-2", "10.1.0.0/16"),
    ];
    world.instances = vec![instance("i-1", "vpc-1", INSIDE)];
    let records = address.map(|address| record(NAME, "A", &[address]));
    let records = records.into_iter().collect();
    world.hosted_zones = vec![zone("k.example.com", &["vpc-1", "vpc-2"], records)];
    world
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn a_name_asked_for_before_it_exists_stays_unknown_until_the_denial_is_over() {
    let lab = lab(Settings::default(), &world_with(None));
    let begin = Instant::now();
    let ask = |vpc, kind, after| {
        let source = if vpc == "vpc-1" {
            INSIDE
        } else {
            "10.1.0.9".parse().expect("address")
        };
        lab.ask(&door(vpc), source, NAME, kind, begin + seconds(after))
    };
    let denied = |ttl| Said {
        code: ResponseCode::NXDomain,
        answers: vec![],
        ttl: Some(ttl),
    };
    assert_eq!(
        ask("vpc-1", RecordType::A, 0),
        denied(900),
        "the SOA's TTL, less than its minimum"
    );
    lab.dns
        .observe(&world_with(Some("10.0.1.1")), begin + seconds(10));
    assert_eq!(ask("vpc-1", RecordType::A, 10), denied(890));
    assert_eq!(
        ask("vpc-1", RecordType::AAAA, 10),
        denied(890),
        "of any type"
    );
    let fresh = ask("vpc-2", RecordType::A, 10);
    assert_eq!(
        fresh.answers,
        ["A 10.0.1.1"],
        "another resolver did not ask"
    );
    assert_eq!(ask("vpc-1", RecordType::A, 899), denied(1));
    assert_eq!(ask("vpc-1", RecordType::A, 900).answers, ["A 10.0.1.1"]);
}

#[test]
fn the_lab_can_choose_how_long_denials_hold() {
    let settings = Settings {
        negative_ttl: Some(5),
        ..Settings::default()
    };
    let lab = lab(settings, &world_with(None));
    let begin = Instant::now();
    let ask = |after| {
        lab.ask(
            &door("vpc-1"),
            INSIDE,
            NAME,
            RecordType::A,
            begin + seconds(after),
        )
    };
    assert_eq!(ask(0).ttl, Some(5));
    lab.dns.observe(&world_with(Some("10.0.1.1")), begin);
    assert_eq!(ask(4).code, ResponseCode::NXDomain);
    assert_eq!(ask(5).answers, ["A 10.0.1.1"]);
}

#[test]
fn instances_and_balancers_have_their_names_at_once() {
    let settings = Settings {
        propagation: seconds(60),
        ..Settings::default()
    };
    let lab = lab(settings, &world());
    let begin = Instant::now();
    lab.dns.observe(&world_with(Some("10.0.1.1")), begin);
    let ask = |name| lab.ask(&door("vpc-1"), INSIDE, name, RecordType::A, begin);
    assert_eq!(ask("ip-10-0-1-10.ec2.internal").answers, ["A 10.0.1.10"]);
    assert_eq!(ask(NAME).code, ResponseCode::NXDomain);
}

#[derive(Debug, Clone)]
enum Event {
    /// The record becomes 10.0.0.N, or goes.
    Change(Option<u8>),
    Ask,
}

fn event() -> impl Strategy<Value = (u64, Event)> {
    let change = proptest::option::of(1_u8..4).prop_map(Event::Change);
    (0_u64..400, prop_oneof![change, Just(Event::Ask)])
}

proptest! {
    /// Whatever happens when: an answer is what the record was, `delay` before the moment that the resolver last had
    /// to ask; and it has to ask when it never did, or when what it had was over (300 s of a record, 900 s of a
    /// denial).
    #[test]
    fn an_answer_is_the_record_as_it_was_when_it_was_fetched_less_the_delay(
        delay in 0_u64..200, events in proptest::collection::vec(event(), 1..40)
    ) {
        let settings = Settings { propagation: seconds(delay), ..Settings::default() };
        let lab = lab(settings, &world_with(None));
        let begin = Instant::now();
        let mut history: Vec<(u64, Option<u8>)> = Vec::new();
        let mut fetched: Option<(u64, Option<u8>)> = None;
        let mut now = 0;
        for (step, event) in events {
            now += step;
            let at = begin + seconds(now);
            match event {
                Event::Change(value) => {
                    let address = value.map(|last| format!("10.0.0.{last}"));
                    lab.dns.observe(&world_with(address.as_deref()), at);
                    history.push((now, value));
                }
                Event::Ask => {
                    let over = |(when, value): (u64, Option<u8>)| {
                        now - when >= if value.is_some() { 300 } else { 900 }
                    };
                    if fetched.is_none_or(over) {
                        let seen = history.iter().rev().find(|(when, _)| when + delay <= now);
                        fetched = Some((now, seen.and_then(|(_, value)| *value)));
                    }
                    let expected = fetched.and_then(|(_, value)| value);
                    let expected: Vec<String> = expected.map(|last| format!("A 10.0.0.{last}")).into_iter().collect();
                    let said = lab.ask(&door("vpc-1"), INSIDE, NAME, RecordType::A, at);
                    prop_assert_eq!(said.answers, expected);
                }
            }
        }
    }
}
