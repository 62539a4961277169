//! What a request does to the state, under AWS' rules.

use super::cloud::CallTimes;
use super::rules::{
    self, Naming, find_blocker, find_rival, goes_with, naming_rule, refusal_failure, slow_end,
    slow_start,
};
use super::state::{Body, Object, State};
use cloud::used_load_balancers::ADDRESSES;
use cloud::{Cloud, Lb};
use engine::{Attrs, Class, Failure, Observed, Put, Ref, Removed, Resource};
use std::collections::BTreeSet;
use std::time::Duration;

/// What is to be stored; every late value must be known by now: the engine's duty.
pub fn body_of(want: &Cloud, refs: BTreeSet<String>) -> Body {
    assert!(
        !want.has_late_values(),
        "{} was put with late values",
        want.id()
    );
    Body {
        resource: want.clone(),
        attrs: Attrs::new(),
        refs,
    }
}

/// Creates it, unless AWS would refuse or knows it already.
pub fn create_object(state: &mut State, mut body: Body, times: CallTimes) -> Result<Put, Failure> {
    let naming = naming_rule(&body);
    let id = body.resource.id();
    let twin = state.objects.iter().find(|object| {
        object
            .lingering_body(times.now)
            .is_some_and(|other| match &naming {
                Naming::Anonymous => false,
                Naming::Token | Naming::Overwrites => !object.foreign && other.resource.id() == id,
                Naming::Taken(_) => rules::naming_rule(other) == naming,
            })
    });
    let Some(twin) = twin else {
        body.attrs = first_attrs(&body.resource, state.objects.len());
        let slow = slow_start(&body.resource).is_some();
        let physical = state.add_object(body, false, times.now, times.shows);
        let lost = || refusal_failure(Class::Invalid, "create", &id, "lost");
        let object = state.object_mut(&physical).ok_or_else(lost)?;
        if slow {
            object.usable = times.slow;
        }
        return Ok(put_answer(object, times.now));
    };
    let same = twin
        .current_body()
        .is_some_and(|twin| twin.resource == body.resource && twin.refs == body.refs);
    let physical = twin.physical.clone();
    match naming {
        Naming::Overwrites => change_object(state, &physical, body, times),
        Naming::Token if same => Ok(put_answer(twin, times.now)),
        _ => Err(refusal_failure(
            Class::Exists,
            "create",
            &id,
            "already exists",
        )),
    }
}

/// Changes it in place; a launch template gets its next version.
pub fn change_object(
    state: &mut State,
    physical: &str,
    mut body: Body,
    times: CallTimes,
) -> Result<Put, Failure> {
    let id = body.resource.id();
    let gone = || refusal_failure(Class::Gone, "change", &id, "does not exist");
    if let Some(other) = find_rival(state, physical, &body, times.now) {
        let message = format!("{} stands there already", other.physical);
        return Err(refusal_failure(Class::Invalid, "change", &id, &message));
    }
    let object = state.object_mut(physical).ok_or_else(gone)?;
    let before = object.current_body().ok_or_else(gone)?;
    body.attrs = before.attrs.clone();
    if let Some(version) = body.attrs.get_mut("latest_version") {
        *version = (version.parse::<u64>().unwrap_or_default() + 1).to_string();
    }
    if let Cloud::Lb(balancer) = &body.resource {
        let (serial, addresses) = (serial_number(physical), ADDRESSES.to_owned());
        body.attrs
            .insert(addresses, private_addresses(balancer, serial));
    }
    object.change_body(body, times.shows);
    Ok(put_answer(object, times.now))
}

fn first_attrs(resource: &Cloud, serial: usize) -> Attrs {
    let attr = |name: &str, value: String| (name.to_owned(), value);
    if let Cloud::LaunchTemplate(_) = resource {
        return Attrs::from([attr("latest_version", "1".to_owned())]);
    }
    let Cloud::Lb(balancer) = resource else {
        return Attrs::new();
    };
    let dns_name = format!("{}-{serial}.elb.example.com", balancer.name);
    Attrs::from([
        attr("dns_name", dns_name),
        attr("zone_id", "Z0BALANCERS".to_owned()),
        attr(ADDRESSES, private_addresses(balancer, serial)),
    ])
}

/// The number in a physical id.
fn serial_number(physical: &str) -> usize {
    let number = physical.rsplit('-').next();
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_default()
}

/// An address in each of its subnets, separated by commas; it stays the same as long as the subnet does.
fn private_addresses(balancer: &Lb, serial: usize) -> String {
    let sum = |subnet: &Ref| {
        let name = format!("{subnet:?}");
        name.bytes().fold(0_u8, u8::wrapping_add)
    };
    let subnets = balancer.subnet_mappings.iter();
    let addresses = subnets.map(|one| format!("10.0.{serial}.{}", sum(&one.subnet_id)));
    addresses.collect::<Vec<_>>().join(",")
}

/// What a put answers about that object.
pub fn put_answer(object: &Object, now: Duration) -> Put {
    let body = object.current_body();
    let waiting = body.and_then(|body| slow_start(&body.resource));
    Put {
        physical: object.physical.clone(),
        attrs: body.map(|body| body.attrs.clone()).unwrap_or_default(),
        waiting_for: waiting.filter(|_| now < object.usable).map(str::to_owned),
    }
}

/// Removes it, unless something is in the way.
pub fn remove_object(
    state: &mut State,
    have: &Observed<Cloud>,
    times: CallTimes,
) -> Result<Removed, Failure> {
    let id = have.resource.id();
    let gone = || refusal_failure(Class::Gone, "remove", &id, "does not exist");
    let alive = state
        .find_object(&have.physical)
        .is_some_and(|object| object.current_body().is_some());
    if !alive {
        return Err(gone());
    }
    if let Some(other) = find_blocker(state, &have.physical, times.now) {
        let message = format!("{} depends on it", other.physical);
        return Err(refusal_failure(Class::Blocked, "remove", &id, &message));
    }
    for object in &mut state.objects {
        if object.current_body().is_some_and(|body| {
            body.refs.contains(&have.physical) && goes_with(&body.resource, &have.physical)
        }) {
            object.remove_body(times.shows);
        }
    }
    let object = state.object_mut(&have.physical).ok_or_else(gone)?;
    object.remove_body(times.shows);
    let Some(what) = slow_end(&have.resource) else {
        return Ok(Removed::Done);
    };
    object.holds = times.slow;
    Ok(removal_answer(object, what, times.now))
}

/// What a removal answers about that object.
pub fn removal_answer(object: &Object, what: &str, now: Duration) -> Removed {
    if object.holds <= now {
        Removed::Done
    } else {
        Removed::Waiting(what.to_owned())
    }
}
