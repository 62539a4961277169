//! Route 53 records.

use super::{Found, Have, Verbs, created_ready, desired_of_kind, find_same, observed_item};
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure};
use aws_client::record_sets::send_changes;
use aws_sdk_route53::types::{self, Change, ChangeAction, ResourceRecord, RrType};
use cloud::{AliasTarget, Cloud, ETCD_TAG, EbsVolume, Kind, Lb, Route53Record, Variant};
use engine::{Class, Failure, Id, Observed, Put, Ref, Refs, Removed, Text};
use node::components::EtcdMemberNames;
use std::collections::{BTreeMap, BTreeSet};

const CHANGE: &str = "route53:ChangeResourceRecordSets";

/// Types of records that can be ours.
const TYPES: [RrType; 3] = [RrType::A, RrType::Aaaa, RrType::Txt];

/// The zone's records below the cluster's name, and those of the cluster's names that lie elsewhere.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<types::ResourceRecordSet>, Failure> {
    let Some(zone) = &world.scope.hosted_zone else {
        return Ok(Vec::new());
    };
    let cluster = &world.scope.cluster;
    let suffix = format!(".{cluster}");
    let below = |name: &str| name == cluster || name.ends_with(&suffix);
    let mut found = list_records(world, zone, cluster, below).await?;
    let elsewhere = world.scope.record_names.iter().filter(|name| !below(name));
    for name in elsewhere {
        found.extend(list_records(world, zone, name, |one| one == name).await?);
    }
    Ok(found)
}

/// The records from `first` on whose names are `among` what is asked for: Route 53 lists them by reversed name, so
/// those below a name stand together.
async fn list_records(
    world: &AwsWorld,
    zone: &str,
    first: &str,
    among: impl Fn(&str) -> bool,
) -> Result<Vec<types::ResourceRecordSet>, Failure> {
    let among = |one: &types::ResourceRecordSet| among(&plain_name(one.name()));
    let (mut found, mut next) = (Vec::new(), Some((first.to_owned(), None, None)));
    while let Some((name, kind, set)) = next.take() {
        let call = world.clients.route53.list_resource_record_sets();
        let call = call.hosted_zone_id(zone).start_record_name(name);
        let call = call
            .set_start_record_type(kind)
            .set_start_record_identifier(set);
        let page = call
            .send()
            .await
            .classify_call("route53:ListResourceRecordSets")?;
        let last = page.resource_record_sets().last();
        let past = last.is_some_and(|last| !among(last));
        found.extend(page.resource_record_sets.into_iter().filter(among));
        if page.is_truncated && !past {
            let more = (page.next_record_type, page.next_record_identifier);
            next = page.next_record_name.map(|name| (name, more.0, more.1));
        }
    }
    Ok(found)
}

/// A name as people write it: no dot at the end, no octal for the asterisk.
fn plain_name(name: &str) -> String {
    name.trim_end_matches('.').replace("\\052", "*")
}

pub(crate) fn observe(
    world: &AwsWorld,
    raw: &types::ResourceRecordSet,
    balancers: &Balancers,
    former_members: &BTreeSet<String>,
) -> Option<Observed<Cloud>> {
    let name = plain_name(raw.name());
    let of_former = former_members.contains(&name)
        && *raw.r#type() == RrType::A
        && raw.alias_target().is_none();
    let known = world.scope.record_names.contains(&name) && TYPES.contains(raw.r#type());
    let ours = of_former || known;
    // Weighted and located records are the user's.
    if !ours || raw.set_identifier().is_some() {
        return None;
    }
    let zone = world.scope.hosted_zone.clone()?;
    let record_type = raw.r#type().as_str().to_owned();
    let physical = format!("{zone}/{name}/{record_type}");
    let wanted = desired_of_kind::<Route53Record>(world)
        .find(|one| one.name == name && one.record_type == record_type);
    // What protokube publishes is not wanted here and yet stays, until the cluster or the member goes.
    let published = wanted.is_none() && raw.alias_target().is_none() && !of_former;
    if published && !world.scope.is_deletion() {
        return None;
    }
    // Who else publishes the values changes them as it likes.
    let of_others =
        wanted.filter(|one| one.resource_records.is_none() && one.alias_target.is_none());
    if let Some(wanted) = of_others.filter(|_| raw.alias_target().is_none()) {
        return Some(observed_item(wanted.clone(), physical));
    }
    let alias = raw.alias_target();
    let mut values: Vec<String> = raw
        .resource_records()
        .iter()
        .map(|one| one.value().to_owned())
        .collect();
    values.sort();
    let record = Route53Record {
        name,
        record_type,
        hosted_zone_id: zone,
        alias_target: alias.map(|alias| read_alias(alias, balancers)),
        resource_records: alias.is_none().then_some(values),
        initial: Vec::new(),
        ttl: raw.ttl(),
    };
    Some(observed_item(record, physical))
}

/// AWS names the balancer by its DNS name only, here with a dot behind, in lower case, and at times with
/// `dualstack.` before.
fn read_alias(alias: &types::AliasTarget, balancers: &Balancers) -> AliasTarget {
    let name = plain_name(alias.dns_name());
    let short = name.strip_prefix("dualstack.").unwrap_or(&name);
    let found = balancers.get(&short.to_lowercase());
    let (of, dns_name) = match found {
        Some((id, known)) => (Ref::own(id), known.as_str()),
        None => (Ref::Given(short.to_owned()), short),
    };
    AliasTarget {
        of,
        dns_name: Text::literal(dns_name),
        hosted_zone_id: Text::literal(alias.hosted_zone_id()),
        evaluate_target_health: alias.evaluate_target_health(),
    }
}

/// Balancers, each with its DNS name, by that name in lower case.
pub(crate) type Balancers = BTreeMap<String, (Id, String)>;

/// The balancers among these objects.
pub(crate) fn balancers_by_name(of: &[Observed<Cloud>]) -> Balancers {
    let one = |item: &Observed<Cloud>| {
        let id = Lb::of(&item.resource)?.id();
        let name = item.attrs.get(DNS_NAME)?.clone();
        Some((name.to_lowercase(), (id, name)))
    };
    of.iter().filter_map(one).collect()
}

/// The names of etcd members that the spec does not have any more. The tags of a volume name its member, and no update deletes a
/// volume: the names below the cluster's that nobody can prove to be its own stay.
pub(crate) fn former_member_names(world: &AwsWorld, of: &[Observed<Cloud>]) -> BTreeSet<String> {
    let volumes = of.iter().filter_map(|item| EbsVolume::of(&item.resource));
    let tags = volumes.flat_map(|volume| &volume.tags);
    let names = tags.filter_map(|(key, value)| {
        let etcd = key.strip_prefix(ETCD_TAG)?;
        let (member, _) = value.split_once('/')?;
        let names = EtcdMemberNames::new(etcd, [], &world.scope.cluster);
        Some(names.member_host(member))
    });
    let current = &world.scope.record_names;
    names.filter(|name| !current.contains(name)).collect()
}

/// The attribute of a balancer that its records lead to.
const DNS_NAME: &str = "dns_name";

impl Verbs for Route53Record {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let balancer = want.alias_target.iter().filter_map(|alias| {
            let id = alias.of.id()?;
            let name = refs.attr(&id, DNS_NAME)?;
            Some((name.to_lowercase(), (id, name)))
        });
        let balancers = balancer.collect();
        let found = fetch(world).await?;
        let items = found
            .iter()
            .filter_map(|raw| observe(world, raw, &balancers, &BTreeSet::new()));
        Ok(find_same(items, &want.id()))
    }

    /// Values that others publish are written once, and only if nothing is there.
    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        let action = if have.is_some() {
            ChangeAction::Upsert
        } else {
            ChangeAction::Create
        };
        let set = record_set_request(want)?;
        match change(world, &want.hosted_zone_id, action, set).await {
            Err(mut failure) if failure.message.contains("already exists") => {
                failure.class = Class::Exists;
                Err(failure)
            }
            done => done.map(|()| {
                created_ready(format!(
                    "{}/{}/{}",
                    want.hosted_zone_id, want.name, want.record_type
                ))
            }),
        }
    }

    /// AWS removes a record only if it is described exactly as it is.
    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let record = have.resource;
        let found = fetch(world).await?;
        let exact = found.into_iter().find(|one| {
            plain_name(one.name()) == record.name
                && one.r#type().as_str() == record.record_type
                && one.set_identifier().is_none()
        });
        if let Some(exact) = exact {
            change(world, &record.hosted_zone_id, ChangeAction::Delete, exact).await?;
        }
        Ok(Removed::Done)
    }
}

fn record_set_request(want: &Route53Record) -> Result<types::ResourceRecordSet, Failure> {
    let bug = |error: aws_sdk_route53::error::BuildError| {
        local_failure(Class::Invalid, CHANGE, error.to_string())
    };
    let known = |text: &Text| {
        let text = text.as_known().map(ToOwned::to_owned);
        text.ok_or_else(|| {
            local_failure(Class::Invalid, CHANGE, "the balancer's name is not known")
        })
    };
    let set = types::ResourceRecordSet::builder()
        .name(&want.name)
        .r#type(RrType::from(want.record_type.as_str()));
    let set = if let Some(alias) = &want.alias_target {
        let to = types::AliasTarget::builder()
            .dns_name(known(&alias.dns_name)?)
            .hosted_zone_id(known(&alias.hosted_zone_id)?)
            .evaluate_target_health(alias.evaluate_target_health);
        set.alias_target(to.build().map_err(bug)?)
    } else {
        let values = want.resource_records.as_ref().unwrap_or(&want.initial);
        let values: Result<Vec<_>, _> = values
            .iter()
            .map(|value| ResourceRecord::builder().value(value).build())
            .collect();
        set.set_resource_records(Some(values.map_err(bug)?))
            .set_ttl(want.ttl)
    };
    set.build().map_err(bug)
}

async fn change(
    world: &AwsWorld,
    zone: &str,
    action: ChangeAction,
    set: types::ResourceRecordSet,
) -> Result<(), Failure> {
    let bug = |error: aws_sdk_route53::error::BuildError| {
        local_failure(Class::Invalid, CHANGE, error.to_string())
    };
    let change = Change::builder().action(action).resource_record_set(set);
    let change = change.build().map_err(bug)?;
    send_changes(&world.clients.route53, zone, vec![change]).await
}
