//! Computes which records the names of objects shall have, and what is wrong with the other names.

use super::claims::{AddressKind, Claim, ObjectKind, ObjectRef, Target};
use aws_client::record_sets::{RecordContent, RecordKey};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

/// TTL of records, seconds, as in kOps.
const TTL: i64 = 60;

/// The same for all: there is one record set of a name and type.
const WEIGHT: i64 = 1;

/// Values in one record set, a quota of Route 53.
const MAX_VALUES: usize = 400;

/// Length of a name that DNS allows, as text.
const MAX_NAME: usize = 253;

/// What names may be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameRules {
    /// Name of the hosted zone, without the trailing dot.
    pub(super) zone: String,
    /// Names that kctl and protokube publish: no object gets them.
    pub(super) reserved: BTreeSet<String>,
    /// Set identifier of the cluster's records.
    pub(super) identifier: String,
}

/// The values of the cluster's own records, by name.
pub(super) type HeldNames = BTreeMap<String, BTreeSet<String>>;

/// A Node's addresses by kind, and whether it is a worker; by name.
pub(super) type NodeAddresses = BTreeMap<String, (Vec<(AddressKind, IpAddr)>, bool)>;

/// Why an object does not get a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    pub(super) object: ObjectRef,
    /// As the object has it.
    pub(super) name: String,
    pub(super) why: String,
}

/// The record sets of each wanted name. A name without any waits for an address, and keeps what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WantedNames {
    pub(super) names: BTreeMap<String, BTreeMap<RecordKey, RecordContent>>,
    pub(super) problems: BTreeSet<Problem>,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl WantedNames {
    /// What the cluster holds once this is written. A name that waits keeps what it had.
    pub(super) fn held_after(&self, before: &HeldNames) -> HeldNames {
        let held = self.names.iter().filter_map(|(name, sets)| {
            let values = sets.values().flat_map(|content| content.values.clone());
            let values = match sets.is_empty() {
                true => before.get(name)?.clone(),
                false => values.collect(),
            };
            Some((name.clone(), values))
        });
        held.collect()
    }
}

/// The records that these objects want. If several want one name, that to which its record leads keeps it: nobody takes a name of another
/// object by an annotation. Of a record that leads to none of them, one that waits for its address is taken for the holder. Otherwise the
/// oldest gets the name, and of equally old ones the first by kind, namespace and name. Pods of one namespace share it, as the pods of
/// a Deployment do.
pub(super) fn wanted_names(
    claims: &[Claim],
    nodes: &NodeAddresses,
    rules: &NameRules,
    held: &HeldNames,
) -> WantedNames {
    let mut wanted = WantedNames::default();
    let mut by_name: BTreeMap<String, Vec<&Claim>> = BTreeMap::new();
    let mut problem = |claim: &Claim, name: &str, why: String| {
        wanted.problems.insert(Problem {
            object: claim.object.clone(),
            name: name.to_owned(),
            why,
        });
    };
    for claim in claims {
        for name in &claim.names {
            match (check_name(name, rules), &claim.target) {
                (Ok(plain), _) if rules.reserved.contains(&plain) => {
                    // The pods of the API server have its names, which protokube publishes if they are ready.
                    if claim.object.kind != ObjectKind::Pod {
                        problem(claim, name, "kctl publishes this name itself".into());
                    }
                }
                (Err(why), _) => problem(claim, name, why),
                (Ok(_), Target::Impossible(why)) => problem(claim, name, why.clone()),
                (Ok(plain), Target::Host(_)) if plain == rules.zone => problem(
                    claim,
                    name,
                    "it is the name of the zone, which cannot be another name for a load balancer"
                        .into(),
                ),
                (Ok(plain), _) => by_name.entry(plain).or_default().push(claim),
            }
        }
    }
    for (name, mut claims) in by_name {
        let held = held.get(&name);
        claims.sort_by_key(|claim| (rank(claim, nodes, held), &claim.created, &claim.object));
        let Some(first) = claims.first().copied() else {
            continue;
        };
        let (sharing, others): (Vec<&Claim>, Vec<&Claim>) =
            claims.into_iter().partition(|claim| shares(first, claim));
        for other in others {
            let why = format!("it belongs to {}", first.object);
            problem(other, &name, why);
        }
        let values = sharing.iter().map(|claim| values_of(&claim.target, nodes));
        let sets = record_sets(&name, values.flatten(), rules);
        // Without an address to wait for, what the name leads to may be somebody else's by now.
        if !sets.is_empty() || sharing.iter().any(|one| one.target == Target::Waiting) {
            wanted.names.insert(name, sets);
        }
    }
    wanted
}

/// Who comes first, lowest first: who has the name; who may have had it, and waits; all others.
fn rank(claim: &Claim, nodes: &NodeAddresses, held: Option<&BTreeSet<String>>) -> u8 {
    let Some(held) = held.filter(|held| !held.is_empty()) else {
        return 2;
    };
    let mut values = values_of(&claim.target, nodes).into_iter();
    match claim.target {
        _ if values.any(|(_, value)| held.contains(&value)) => 0,
        Target::Waiting => 1,
        _ => 2,
    }
}

/// True if a claim is of the object that has the name, or of another pod of its namespace.
fn shares(first: &Claim, other: &Claim) -> bool {
    let (first, other) = (&first.object, &other.object);
    let pods = first.kind == ObjectKind::Pod && other.kind == ObjectKind::Pod;
    first == other || (pods && first.namespace == other.namespace)
}

/// The name as Route 53 has it; or why there can be no such record.
fn check_name(name: &str, rules: &NameRules) -> Result<String, String> {
    let plain = name.trim_end_matches('.').to_lowercase();
    let good = |label: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(letter)
    };
    let labels = plain.strip_prefix("*.").unwrap_or(&plain);
    if plain.len() > MAX_NAME || !labels.split('.').all(good) {
        return Err("it is not a DNS name".into());
    }
    let zone = &rules.zone;
    let within = plain
        .strip_suffix(zone.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if !within {
        return Err(format!("it is not in the cluster's hosted zone {zone}"));
    }
    Ok(plain)
}

/// Type and value of each record.
fn values_of(target: &Target, nodes: &NodeAddresses) -> BTreeSet<(&'static str, String)> {
    let addresses = |kind: AddressKind, of: &dyn Fn(&str, bool) -> bool| {
        let wanted = nodes.iter().filter(|(name, (_, worker))| of(name, *worker));
        let all = wanted.flat_map(|(_, (addresses, _))| addresses);
        let all = all.filter(|(of, _)| *of == kind);
        all.map(|(_, address)| typed_address(address)).collect()
    };
    match target {
        Target::Waiting | Target::Impossible(_) => BTreeSet::new(),
        Target::Host(host) => [("CNAME", host.trim_end_matches('.').to_lowercase())].into(),
        Target::Addresses(all) => all.iter().map(typed_address).collect(),
        Target::Workers(kind) => addresses(*kind, &|_, worker| worker),
        Target::Node(node, kind) => addresses(*kind, &|name, _| name == node),
    }
}

fn typed_address(address: &IpAddr) -> (&'static str, String) {
    let record_type = if address.is_ipv4() { "A" } else { "AAAA" };
    (record_type, address.to_string())
}

fn record_sets(
    name: &str,
    values: impl Iterator<Item = (&'static str, String)>,
    rules: &NameRules,
) -> BTreeMap<RecordKey, RecordContent> {
    let mut by_type: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (record_type, value) in values {
        by_type.entry(record_type).or_default().insert(value);
    }
    let set = |(record_type, values): (&str, BTreeSet<String>)| {
        let key = RecordKey {
            name: name.to_owned(),
            record_type: record_type.to_owned(),
            identifier: Some(rules.identifier.clone()),
        };
        let content = RecordContent {
            values: values.into_iter().take(MAX_VALUES).collect(),
            ttl: TTL,
            weight: WEIGHT,
        };
        (key, content)
    };
    by_type.into_iter().map(set).collect()
}
