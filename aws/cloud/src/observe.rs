//! One sweep over everything that belongs to a cluster: asks each service side by side, in bulk, then reads the
//! answers. The number of calls grows with kinds and pages, not with objects.

use crate::kinds::{
    autoscaling_group, dhcp_options, ebs_volume, ec2, eip, event_rule, event_target,
    iam_instance_profile, iam_policies, iam_role, internet_gateway, key_pair, launch_template, lb,
    lb_listener, lb_tags, lb_target_group, lifecycle_hook, nat_gateway, refs, route, route_table,
    route53_record, route53_zone_association, s3_object, security_group, security_group_rule,
    sqs_queue, subnet, vpc, vpc_cidr,
};
use crate::names::Names;
use crate::world::AwsWorld;
use cloud::Cloud;
use engine::{Class, Failure, Id, Observed, Ref, Resource, Snapshot};
use futures::try_join;
use std::collections::{BTreeMap, BTreeSet};

/// The cluster as AWS and the store have it, in logical names.
pub(crate) async fn sweep(world: &AwsWorld) -> Result<Snapshot<Cloud>, Failure> {
    // What went between being listed and being described: the next sweep will not list it.
    let listed = |failure: Failure| match failure.class {
        Class::Gone => Failure {
            class: Class::NotYet,
            ..failure
        },
        _ => failure,
    };
    once(world).await.map_err(listed)
}

/// Requests lie on the heap: together they are more than a stack holds.
async fn once(world: &AwsWorld) -> Result<Snapshot<Cloud>, Failure> {
    let (network, machines, scaling, balancing, identity, events, records, zone_vpcs, objects) = try_join!(
        Box::pin(Network::fetch(world)),
        Box::pin(Machines::fetch(world)),
        Box::pin(Scaling::fetch(world)),
        Box::pin(Balancing::fetch(world)),
        Box::pin(Identity::fetch(world)),
        Box::pin(Events::fetch(world)),
        Box::pin(route53_record::fetch(world)),
        Box::pin(route53_zone_association::fetch(world)),
        Box::pin(s3_object::fetch(world)),
    )?;
    let read = |names: &Names| {
        let mut items = network.observe(world, names);
        items.extend(machines.observe(world, names));
        items.extend(scaling.observe(world, names));
        items.extend(balancing.observe(names));
        items.extend(identity.observe(world, names));
        items.extend(events.observe(world, names));
        items
    };
    // What an object is called depends on itself alone, what it refers to on the others: read twice.
    let unnamed = read(&Names::default());
    let names = Names::of(&unnamed);
    let mut items = read(&names);
    note_uses(&mut items, &unnamed);
    let balancers = route53_record::balancers(&items);
    let records = records
        .iter()
        .filter_map(|raw| route53_record::observe(world, raw, &balancers));
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
    for (item, unnamed) in items.iter_mut().zip(unnamed) {
        let given = refs(&unnamed.resource).into_iter();
        let given = given.filter_map(|reference| match reference {
            Ref::Given(physical) => twice.get(&physical).cloned(),
            Ref::Own { .. } => None,
        });
        let own = refs(&item.resource).into_iter();
        let own = own.filter_map(
            |reference| match by_name.get(&reference.id()?)?.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
        );
        item.uses = given.chain(own).collect();
    }
}

struct Network {
    vpcs: Vec<vpc::Raw>,
    dhcp_options: Vec<aws_sdk_ec2::types::DhcpOptions>,
    gateways: Vec<aws_sdk_ec2::types::InternetGateway>,
    subnets: Vec<aws_sdk_ec2::types::Subnet>,
    tables: Vec<aws_sdk_ec2::types::RouteTable>,
    addresses: Vec<aws_sdk_ec2::types::Address>,
    nat_gateways: Vec<aws_sdk_ec2::types::NatGateway>,
    groups: Vec<aws_sdk_ec2::types::SecurityGroup>,
    rules: Vec<aws_sdk_ec2::types::SecurityGroupRule>,
}

impl Network {
    async fn fetch(world: &AwsWorld) -> Result<Self, Failure> {
        let (vpcs, dhcp_options, gateways, subnets, tables, addresses, nat_gateways, groups, rules) =
            try_join!(
                Box::pin(vpc::fetch(world, Vec::new())),
                Box::pin(dhcp_options::fetch(world, None)),
                Box::pin(internet_gateway::fetch(world, None)),
                Box::pin(subnet::fetch(world, ec2::owned(world))),
                Box::pin(route_table::fetch(world, vec![ec2::owned(world)])),
                Box::pin(eip::fetch(world, None)),
                Box::pin(nat_gateway::fetch(world, nat_gateway::alive(world))),
                Box::pin(security_group::fetch(world)),
                Box::pin(security_group_rule::fetch(world)),
            )?;
        Ok(Self {
            vpcs,
            dhcp_options,
            gateways,
            subnets,
            tables,
            addresses,
            nat_gateways,
            groups,
            rules,
        })
    }

    fn observe(&self, world: &AwsWorld, names: &Names) -> Vec<Observed<Cloud>> {
        let mut items: Vec<Observed<Cloud>> = Vec::new();
        for raw in &self.vpcs {
            items.extend(vpc::observe(raw));
            items.extend(vpc_cidr::observe(raw, names));
            items.extend(dhcp_options::observe_association(
                world,
                raw,
                &self.dhcp_options,
                names,
            ));
        }
        items.extend(self.dhcp_options.iter().filter_map(dhcp_options::observe));
        let gateways = self.gateways.iter();
        items.extend(gateways.filter_map(|raw| internet_gateway::observe(raw, names)));
        let subnets = self.subnets.iter();
        items.extend(subnets.filter_map(|raw| subnet::observe(world, raw, names)));
        for raw in &self.tables {
            items.extend(route_table::observe(raw, names));
            items.extend(route_table::observe_associations(world, raw, names));
            items.extend(route::observe(world, raw, names));
        }
        items.extend(self.addresses.iter().filter_map(eip::observe));
        let nat_gateways = self.nat_gateways.iter();
        items.extend(nat_gateways.filter_map(|raw| nat_gateway::observe(raw, names)));
        let groups = self.groups.iter();
        items.extend(groups.filter_map(|raw| security_group::observe(raw, names)));
        let rules = self.rules.iter();
        items.extend(rules.filter_map(|raw| security_group_rule::observe(raw, names)));
        items
    }
}

struct Machines {
    key_pairs: Vec<aws_sdk_ec2::types::KeyPairInfo>,
    volumes: Vec<aws_sdk_ec2::types::Volume>,
    templates: Vec<launch_template::Raw>,
}

impl Machines {
    async fn fetch(world: &AwsWorld) -> Result<Self, Failure> {
        let (key_pairs, volumes, templates) = try_join!(
            key_pair::fetch(world),
            ebs_volume::fetch(world, None),
            launch_template::fetch(world),
        )?;
        Ok(Self {
            key_pairs,
            volumes,
            templates,
        })
    }

    fn observe(&self, world: &AwsWorld, names: &Names) -> Vec<Observed<Cloud>> {
        let volumes = self.volumes.iter();
        let volumes = volumes.filter_map(|raw| ebs_volume::observe(world, raw));
        let templates = self.templates.iter();
        let templates = templates.filter_map(|raw| launch_template::observe(world, raw, names));
        let key_pairs = self.key_pairs.iter().filter_map(key_pair::observe);
        key_pairs.chain(volumes).chain(templates).collect()
    }
}

struct Scaling {
    groups: Vec<aws_sdk_autoscaling::types::AutoScalingGroup>,
    hooks: Vec<aws_sdk_autoscaling::types::LifecycleHook>,
}

impl Scaling {
    async fn fetch(world: &AwsWorld) -> Result<Self, Failure> {
        let groups = autoscaling_group::fetch(world).await?;
        let hooks = lifecycle_hook::fetch(world, &groups).await?;
        Ok(Self { groups, hooks })
    }

    fn observe(&self, world: &AwsWorld, names: &Names) -> Vec<Observed<Cloud>> {
        let groups = self.groups.iter();
        let groups = groups.filter_map(|raw| autoscaling_group::observe(raw, names));
        let hooks = self.hooks.iter();
        let hooks = hooks.filter_map(|raw| lifecycle_hook::observe(raw, names));
        let sealed = lifecycle_hook::observe_sealed(world, &self.groups);
        groups.chain(hooks).chain(sealed).collect()
    }
}

struct Balancing {
    balancers: Vec<lb::Raw>,
    groups: Vec<lb_target_group::Raw>,
    listeners: Vec<aws_sdk_elasticloadbalancingv2::types::Listener>,
}

impl Balancing {
    async fn fetch(world: &AwsWorld) -> Result<Self, Failure> {
        let (balancers, groups) = try_join!(lb::fetch(world), lb_target_group::fetch(world))?;
        let of_balancers = balancers.iter().filter_map(|one| one.load_balancer_arn());
        let of_groups = groups.iter().filter_map(|one| one.target_group_arn());
        let arns = of_balancers.chain(of_groups).map(ToOwned::to_owned);
        let tags = lb_tags::fetch(&world.clients, &arns.collect::<Vec<_>>()).await?;
        let (balancers, groups) = try_join!(
            lb::complete(world, balancers, &tags),
            lb_target_group::complete(world, groups, &tags)
        )?;
        let listeners = lb_listener::fetch(world, &balancers).await?;
        Ok(Self {
            balancers,
            groups,
            listeners,
        })
    }

    fn observe(&self, names: &Names) -> Vec<Observed<Cloud>> {
        let balancers = self.balancers.iter();
        let balancers = balancers.filter_map(|raw| lb::observe(raw, names));
        let groups = self.groups.iter();
        let groups = groups.filter_map(|raw| lb_target_group::observe(raw, names));
        let listeners = self.listeners.iter();
        let listeners = listeners.filter_map(|raw| lb_listener::observe(raw, names));
        balancers.chain(groups).chain(listeners).collect()
    }
}

struct Identity {
    roles: Vec<aws_sdk_iam::types::Role>,
    policies: Vec<iam_policies::Raw>,
    profiles: Vec<aws_sdk_iam::types::InstanceProfile>,
}

impl Identity {
    async fn fetch(world: &AwsWorld) -> Result<Self, Failure> {
        let roles = iam_role::fetch(world).await?;
        let (policies, profiles) = try_join!(
            iam_policies::fetch(world, &roles),
            iam_instance_profile::fetch(world, &roles)
        )?;
        Ok(Self {
            roles,
            policies,
            profiles,
        })
    }

    fn observe(&self, world: &AwsWorld, names: &Names) -> Vec<Observed<Cloud>> {
        let roles = self.roles.iter().map(|raw| iam_role::observe(world, raw));
        let policies = self.policies.iter();
        let policies = policies.flat_map(|raw| iam_policies::observe(world, raw, names));
        let profiles = self.profiles.iter();
        let profiles = profiles.map(|raw| iam_instance_profile::observe(raw, names));
        roles.chain(policies).chain(profiles).collect()
    }
}

struct Events {
    queue: Option<sqs_queue::Raw>,
    rules: Vec<event_rule::Raw>,
    /// Names of the rules that send to the queue.
    to_queue: Vec<String>,
}

impl Events {
    async fn fetch(world: &AwsWorld) -> Result<Self, Failure> {
        let (queue, rules, to_queue) = try_join!(
            sqs_queue::fetch(world),
            event_rule::fetch(world),
            event_target::fetch(world)
        )?;
        Ok(Self {
            queue,
            rules,
            to_queue,
        })
    }

    fn observe(&self, world: &AwsWorld, names: &Names) -> Vec<Observed<Cloud>> {
        let queue = self.queue.iter();
        let queue = queue.filter_map(|raw| sqs_queue::observe(world, raw));
        let rules = self.rules.iter().filter_map(event_rule::observe);
        let targets = event_target::observe(world, &self.rules, &self.to_queue, names);
        queue.chain(rules).chain(targets).collect()
    }
}
