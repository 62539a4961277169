//! One sweep over everything that belongs to a cluster: asks each service side by side, in bulk, then reads the
//! answers. The number of calls grows with kinds and pages, not with objects.

use crate::kinds::{
    autoscaling_group, dhcp_options, discovery_document, ebs_volume, ec2,
    egress_only_internet_gateway, eip, event_rule, event_target, iam_instance_profile,
    iam_openid_connect_provider, iam_policies, iam_role, internet_gateway, key_pair,
    launch_template, lb, lb_listener, lb_tags, lb_target_group, lifecycle_hook, nat_gateway, route,
    route_table, route53_record, route53_zone_association, s3_object, security_group,
    security_group_rule, sqs_queue, subnet, vpc, vpc_cidr, vpc_endpoint, warm_pool,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_sdk_autoscaling::types::AutoScalingGroup;
use cloud::Cloud;
use engine::{Class, Failure, Id, Observed, Ref, Resource, Snapshot};
use futures::future::{LocalBoxFuture, try_join_all};
use futures::try_join;
use node::names::WARM_POOL_HOOK;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

/// The cluster as AWS and the store have it, in logical names.
pub(crate) async fn observe_cluster(world: &AwsWorld) -> Result<Snapshot<Cloud>, Failure> {
    // What went between being listed and being described: the next sweep will not list it.
    let listed = |failure: Failure| match failure.class {
        Class::Gone => Failure {
            class: Class::NotYet,
            ..failure
        },
        _ => failure,
    };
    observe_once(world).await.map_err(listed)
}

async fn observe_once(world: &AwsWorld) -> Result<Snapshot<Cloud>, Failure> {
    let (answers, records, zone_vpcs, objects) = try_join!(
        try_join_all(questions(world)),
        Box::pin(route53_record::fetch(world)),
        Box::pin(route53_zone_association::fetch(world)),
        Box::pin(s3_object::fetch(world)),
    )?;
    let read = |names: &Names| -> Vec<Observed<Cloud>> {
        answers.iter().flat_map(|answer| answer(names)).collect()
    };
    // What an object is called depends on itself alone, what it refers to on the others: read twice.
    let unnamed = read(&Names::default());
    let names = Names::from_items(&unnamed);
    let mut items = read(&names);
    note_uses(&mut items, &unnamed);
    let balancers = route53_record::balancers_by_name(&items);
    let former = route53_record::former_member_names(world, &items);
    let records = records
        .iter()
        .filter_map(|raw| route53_record::observe(world, raw, &balancers, &former));
    items.extend(records);
    let associations = zone_vpcs.iter();
    let associations =
        associations.filter_map(|raw| route53_zone_association::observe(world, raw, &names));
    items.extend(associations);
    items.extend(objects);
    Ok(Snapshot { items })
}

/// Notes on each object which others of the cluster it refers to, by physical id. The logical name says it of
/// what is there once; of duplicates, what the reference was before it was translated.
fn note_uses(items: &mut [Observed<Cloud>], unnamed: &[Observed<Cloud>]) {
    let mut by_name: BTreeMap<Id, Vec<String>> = BTreeMap::new();
    for item in items.iter() {
        let same = by_name.entry(item.resource.id()).or_default();
        same.push(item.physical.clone());
    }
    let twice = by_name.values().filter(|same| same.len() > 1).flatten();
    let twice: BTreeSet<String> = twice.cloned().collect();
    let key =
        |item: &Observed<Cloud>| (item.resource.id().kind().to_owned(), item.physical.clone());
    let unnamed: BTreeMap<_, &Cloud> = unnamed
        .iter()
        .map(|one| (key(one), &one.resource))
        .collect();
    for item in items {
        let given = unnamed.get(&key(item)).map(|one| one.refs());
        let given = given.into_iter().flatten();
        let given = given.filter_map(|reference| match reference {
            Ref::Given(physical) => twice.get(&physical).cloned(),
            Ref::Own { .. } => None,
        });
        let own = item.resource.refs().into_iter();
        let own = own.filter_map(
            |reference| match by_name.get(&reference.id()?)?.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
        );
        item.uses = given.chain(own).collect();
    }
}

/// An answer of AWS, read with the names of what it refers to.
type Answer<'a> = Box<dyn Fn(&Names) -> Vec<Observed<Cloud>> + 'a>;

/// A request. On the heap: together they are more than a stack holds.
type Question<'a> = LocalBoxFuture<'a, Result<Answer<'a>, Failure>>;

/// Everything that is asked side by side: one line for each answer of AWS that can be read by itself.
fn questions(world: &AwsWorld) -> Vec<Question<'_>> {
    let (owned, tables) = (ec2::owned_filter(world), vec![ec2::owned_filter(world)]);
    let nat_gateways = nat_gateway::alive_filter(world);
    vec![
        Box::pin(ask_vpcs(world)),
        ask_each(
            internet_gateway::fetch(world, None),
            internet_gateway::observe,
        ),
        ask_each(
            egress_only_internet_gateway::fetch(world, None),
            egress_only_internet_gateway::observe,
        ),
        ask_each(subnet::fetch(world, owned), |raw, names| {
            subnet::observe(world, raw, names)
        }),
        ask_each(route_table::fetch(world, tables), |raw, names| {
            observe_table(world, raw, names)
        }),
        ask_each(eip::fetch(world, None), |raw, _| eip::observe(raw)),
        ask_each(
            nat_gateway::fetch(world, nat_gateways),
            nat_gateway::observe,
        ),
        ask_each(security_group::fetch(world), |raw, names| {
            security_group::observe(world, raw, names)
        }),
        ask_each(security_group_rule::fetch(world), |raw, names| {
            security_group_rule::observe(world, raw, names)
        }),
        ask_each(key_pair::fetch(world), |raw, _| key_pair::observe(raw)),
        ask_each(ebs_volume::fetch(world, None), |raw, _| {
            ebs_volume::observe(world, raw)
        }),
        ask_each(launch_template::fetch(world), |raw, names| {
            launch_template::observe(world, raw, names)
        }),
        Box::pin(ask_endpoints(world)),
        Box::pin(ask_auto_scaling(world)),
        Box::pin(ask_load_balancing(world)),
        Box::pin(ask_iam(world)),
        Box::pin(ask_events(world)),
    ]
}

/// Asks, and reads every element of the answer with `observe`.
fn ask_each<'a, T: 'a, I>(
    fetch: impl Future<Output = Result<Vec<T>, Failure>> + 'a,
    observe: impl Fn(&T, &Names) -> I + 'a,
) -> Question<'a>
where
    I: IntoIterator<Item = Observed<Cloud>>,
{
    Box::pin(async move {
        let found = fetch.await?;
        Ok(read_answer(move |names| {
            found.iter().flat_map(|raw| observe(raw, names)).collect()
        }))
    })
}

/// An answer that this reads.
fn read_answer<'a>(read: impl Fn(&Names) -> Vec<Observed<Cloud>> + 'a) -> Answer<'a> {
    Box::new(read)
}

async fn ask_vpcs(world: &AwsWorld) -> Result<Answer<'_>, Failure> {
    let (vpcs, options) = try_join!(
        vpc::fetch(world, Vec::new()),
        dhcp_options::fetch(world, None)
    )?;
    Ok(read_answer(move |names| {
        let mut items: Vec<Observed<Cloud>> = Vec::new();
        for raw in &vpcs {
            items.extend(vpc::observe(raw));
            items.extend(vpc_cidr::observe(raw, names));
            let used = dhcp_options::observe_association(world, raw, &options, names);
            items.extend(used);
        }
        items.extend(options.iter().filter_map(dhcp_options::observe));
        items
    }))
}

async fn ask_endpoints(world: &AwsWorld) -> Result<Answer<'_>, Failure> {
    let found = vpc_endpoint::fetch(world).await?;
    Ok(read_answer(move |names| {
        vpc_endpoint::observe(world, &found, names)
    }))
}

fn observe_table(
    world: &AwsWorld,
    raw: &aws_sdk_ec2::types::RouteTable,
    names: &Names,
) -> Vec<Observed<Cloud>> {
    let mut items: Vec<Observed<Cloud>> = route_table::observe(raw, names).into_iter().collect();
    items.extend(route_table::observe_associations(world, raw, names));
    items.extend(route::observe(world, raw, names));
    items
}

async fn ask_auto_scaling(world: &AwsWorld) -> Result<Answer<'_>, Failure> {
    let groups = autoscaling_group::fetch(world).await?;
    let hooks = lifecycle_hook::fetch(world, &groups).await?;
    Ok(read_answer(move |names| {
        let sealed = lifecycle_hook::observe_sealed(world, &groups);
        let hooks = hooks.iter();
        let hooks = hooks.filter_map(|raw| lifecycle_hook::observe(raw, names));
        let hooks: Vec<Observed<Cloud>> = hooks.chain(sealed).collect();
        let pools = observe_pools(world, &groups, &hooks, names);
        let groups = groups.iter();
        let groups = groups.filter_map(|raw| autoscaling_group::observe(raw, names));
        groups.chain(hooks).chain(pools).collect()
    }))
}

/// The warm pools of groups. Those of a cluster that goes, AWS deletes with their groups.
fn observe_pools(
    world: &AwsWorld,
    groups: &[AutoScalingGroup],
    hooks: &[Observed<Cloud>],
    names: &Names,
) -> Vec<Observed<Cloud>> {
    let groups = groups.iter().filter(|_| !world.scope.is_deletion());
    let pools = groups.filter_map(|raw| {
        let hook = lifecycle_hook::physical_id(raw.auto_scaling_group_name()?, WARM_POOL_HOOK);
        let hook = hooks.iter().find(|one| one.physical == hook);
        warm_pool::observe(raw, hook.map(|one| one.physical.as_str()), names)
    });
    pools.collect()
}

async fn ask_load_balancing(world: &AwsWorld) -> Result<Answer<'_>, Failure> {
    let (balancers, groups) = try_join!(lb::fetch(world), lb_target_group::fetch(world))?;
    let of_balancers = balancers.iter().filter_map(|one| one.load_balancer_arn());
    let of_groups = groups.iter().filter_map(|one| one.target_group_arn());
    let arns = of_balancers.chain(of_groups).map(ToOwned::to_owned);
    let tags = lb_tags::fetch(&world.clients, &arns.collect::<Vec<_>>()).await?;
    let (balancers, groups) = try_join!(
        lb::read_owned_attributes(world, balancers, &tags),
        lb_target_group::read_owned_attributes(world, groups, &tags)
    )?;
    let listeners = lb_listener::fetch(world, &balancers).await?;
    Ok(read_answer(move |names| {
        let balancers = balancers.iter();
        let balancers = balancers.filter_map(|raw| lb::observe(world, raw, names));
        let groups = groups.iter();
        let groups = groups.filter_map(|raw| lb_target_group::observe(raw, names));
        let listeners = listeners.iter();
        let listeners = listeners.filter_map(|raw| lb_listener::observe(raw, names));
        balancers.chain(groups).chain(listeners).collect()
    }))
}

async fn ask_iam(world: &AwsWorld) -> Result<Answer<'_>, Failure> {
    let stores = discovery_document::fetch(world).await?;
    let issuers: Vec<String> = stores.iter().map(|store| store.issuer.clone()).collect();
    let (roles, providers) = try_join!(
        iam_role::fetch(world, &issuers),
        iam_openid_connect_provider::fetch(world, &issuers)
    )?;
    let (policies, profiles) = try_join!(
        iam_policies::fetch(world, &roles),
        iam_instance_profile::fetch(world, &roles)
    )?;
    Ok(read_answer(move |names| {
        let roles = roles.iter().map(|raw| iam_role::observe(world, raw));
        let policies = policies.iter();
        let policies = policies.flat_map(|raw| iam_policies::observe(world, raw, names));
        let profiles = profiles.iter();
        let profiles = profiles.map(|raw| iam_instance_profile::observe(raw, names));
        let providers = providers.iter();
        let providers = providers.map(iam_openid_connect_provider::observe);
        let all = roles.chain(policies).chain(profiles);
        let documents = stores.iter().flat_map(discovery_document::observe_store);
        all.chain(providers).chain(documents).collect()
    }))
}

async fn ask_events(world: &AwsWorld) -> Result<Answer<'_>, Failure> {
    let (queue, rules, to_queue) = try_join!(
        sqs_queue::fetch(world),
        event_rule::fetch(world),
        event_target::fetch(world)
    )?;
    Ok(read_answer(move |names| {
        let queue = queue.iter();
        let queue = queue.filter_map(|raw| sqs_queue::observe(world, raw));
        let targets = event_target::observe(world, &rules, &to_queue, names);
        let rules = rules.iter().filter_map(event_rule::observe);
        queue.chain(rules).chain(targets).collect()
    }))
}
