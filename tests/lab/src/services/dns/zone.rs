//! One hosted zone as its name servers answer it: wildcards (RFC 4592), names that exist because something is below
//! them, aliases, delegations.

use crate::aws_state;
use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{Name, RData, RecordType};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// Names are kept as AWS prints them in lower case: no dot at the end, `*` for a wildcard.
pub fn plain_name(name: &str) -> String {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name.replace("\\052", "*")
}

/// Whether `name` is `parent` or below it.
pub fn is_within(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.') || parent.is_empty())
}

/// `name` without its first label; `None` of the root.
pub fn parent_name(name: &str) -> Option<&str> {
    let above = name.split_once('.').map_or("", |(_, above)| above);
    (!name.is_empty()).then_some(above)
}

/// The records of one name and type.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordSet {
    /// TTL in seconds.
    Plain(u32, Vec<RData>),
    Alias(String),
    /// A value that is no value of its type; why.
    Bad(String),
}

/// What a zone says of a name and a type.
#[derive(Debug, Clone, PartialEq)]
pub enum ZoneAnswer<'a> {
    Set(&'a RecordSet),
    /// The name is another one's.
    Cname(&'a RecordSet),
    /// The name exists, the type does not.
    NoData,
    NxDomain,
    /// Other name servers are asked: those of the zone of this name.
    Delegated(&'a str),
}

/// What a negative answer says of how long it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    pub zone: String,
    pub soa: SOA,
    /// Seconds: the lesser of the SOA record's TTL and its minimum (RFC 2308, 5).
    pub ttl: u32,
}

impl Denial {
    /// Of a zone that the lab does not hold, by a SOA record made up with this minimum.
    pub fn for_unknown_zone(zone: &str, ttl: u32) -> Self {
        let server = dns_name(&format!("ns.{zone}"));
        let soa = SOA::new(
            server,
            dns_name(&format!("hostmaster.{zone}")),
            1,
            7200,
            900,
            1_209_600,
            ttl,
        );
        Self {
            zone: zone.to_owned(),
            soa,
            ttl,
        }
    }
}

/// A DNS name of a plain one; what cannot be one (a label over 63 bytes) is the root, which nobody asks for.
pub fn dns_name(plain: &str) -> Name {
    let mut name = Name::from_ascii(plain).unwrap_or_else(|_| Name::root());
    name.set_fqdn(true);
    name
}

/// A hosted zone, ready to be asked.
#[derive(Debug)]
pub struct Zone {
    pub name: String,
    pub private: bool,
    pub vpcs: Vec<String>,
    sets: BTreeMap<String, BTreeMap<RecordType, RecordSet>>,
    /// Every name that has records or has one below it that has.
    existing: BTreeSet<String>,
}

impl Zone {
    pub fn new(zone: &aws_state::HostedZone) -> Self {
        let apex = plain_name(&zone.name);
        let mut sets: BTreeMap<String, BTreeMap<RecordType, RecordSet>> = BTreeMap::new();
        for record in &zone.records {
            // A type that the wire format does not know cannot be asked for either.
            let Ok(kind) = RecordType::from_str(&record.record_type) else {
                continue;
            };
            let of_name = sets.entry(plain_name(&record.name)).or_default();
            let set = record_set(kind, record);
            match (of_name.get_mut(&kind), set) {
                // Weighted and other sets of one name and type: each of their values may come.
                (Some(RecordSet::Plain(_, all)), RecordSet::Plain(_, more)) => all.extend(more),
                (_, set) => {
                    of_name.insert(kind, set);
                }
            }
        }
        let mut existing = BTreeSet::from([apex.clone()]);
        for name in sets.keys().filter(|name| is_within(name, &apex)) {
            let mut above = name.as_str();
            while above != apex && existing.insert(above.to_owned()) {
                above = parent_name(above).unwrap_or_default();
            }
        }
        Self {
            name: apex,
            private: zone.private,
            vpcs: zone.vpcs.clone(),
            sets,
            existing,
        }
    }

    /// Looks the name up, which is within the zone.
    pub fn find_records(&self, name: &str, kind: RecordType) -> ZoneAnswer<'_> {
        if let Some(child) = self.find_delegation(name) {
            return ZoneAnswer::Delegated(child);
        }
        if let Some(sets) = self.sets.get(name) {
            return of_type(sets, kind);
        }
        if self.existing.contains(name) {
            return ZoneAnswer::NoData;
        }
        let mut encloser = name;
        while !self.existing.contains(encloser) {
            match parent_name(encloser) {
                Some(above) => encloser = above,
                None => return ZoneAnswer::NxDomain,
            }
        }
        let wildcard = self.sets.get(&format!("*.{encloser}"));
        wildcard.map_or(ZoneAnswer::NxDomain, |sets| of_type(sets, kind))
    }

    /// The name servers at this name, as told by this zone.
    pub fn name_servers(&self, name: &str) -> BTreeSet<String> {
        let sets = self.sets.get(name);
        match sets.and_then(|sets| sets.get(&RecordType::NS)) {
            Some(RecordSet::Plain(_, data)) => {
                data.iter().map(|ns| plain_name(&ns.to_string())).collect()
            }
            _ => BTreeSet::new(),
        }
    }

    pub fn negative_answer(&self) -> Denial {
        let sets = self.sets.get(&self.name);
        match sets.and_then(|sets| sets.get(&RecordType::SOA)) {
            Some(RecordSet::Plain(ttl, data)) => match data.first() {
                Some(RData::SOA(soa)) => Denial {
                    zone: self.name.clone(),
                    soa: soa.clone(),
                    ttl: soa.minimum.min(*ttl),
                },
                _ => Denial::for_unknown_zone(&self.name, NEGATIVE_TTL),
            },
            _ => Denial::for_unknown_zone(&self.name, NEGATIVE_TTL),
        }
    }

    fn find_delegation(&self, name: &str) -> Option<&str> {
        let mut at = name;
        let mut topmost = None;
        while at != self.name {
            if let Some((cut, sets)) = self.sets.get_key_value(at)
                && sets.contains_key(&RecordType::NS)
            {
                topmost = Some(cut.as_str());
            }
            at = parent_name(at)?;
        }
        topmost
    }
}

/// The TTL of Route 53's SOA records, which is less than their minimum.
pub const NEGATIVE_TTL: u32 = 900;

fn of_type(sets: &BTreeMap<RecordType, RecordSet>, kind: RecordType) -> ZoneAnswer<'_> {
    match (sets.get(&kind), sets.get(&RecordType::CNAME)) {
        (Some(set), _) => ZoneAnswer::Set(set),
        (None, Some(cname)) => ZoneAnswer::Cname(cname),
        (None, None) => ZoneAnswer::NoData,
    }
}

fn record_set(kind: RecordType, record: &aws_state::Record) -> RecordSet {
    if let Some(target) = &record.alias {
        return RecordSet::Alias(plain_name(target));
    }
    let parse = |value: &String| {
        let bad = |error| format!("{} {kind} {value:?}: {error}", record.name);
        RData::try_from_str(kind, &absolute_name(kind, value)).map_err(bad)
    };
    match record.values.iter().map(parse).collect() {
        Ok(data) => RecordSet::Plain(record.ttl, data),
        Err(why) => RecordSet::Bad(why),
    }
}

/// Route 53 takes names in values as absolute, with or without the dot at the end.
fn absolute_name(kind: RecordType, value: &str) -> String {
    let names: &[usize] = match kind {
        RecordType::CNAME | RecordType::NS | RecordType::PTR => &[0],
        RecordType::MX => &[1],
        RecordType::SRV => &[3],
        RecordType::SOA => &[0, 1],
        _ => return value.to_owned(),
    };
    let fields = value.split_whitespace().enumerate();
    let with_dots = fields.map(|(place, field)| {
        let dot = names.contains(&place) && !field.ends_with('.');
        format!("{field}{}", if dot { "." } else { "" })
    });
    with_dots.collect::<Vec<_>>().join(" ")
}
