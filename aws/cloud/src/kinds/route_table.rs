//! A route table, and which subnets use it.

use super::ec2::{filter, name_filter, owned_filter, read_tags, retag, tag_specification};
use super::{
    Found, Have, Verbs, client_token, created_ready, desired_of_kind, find_same, observed_item,
    physical,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_ec2::types::{self, Filter, ResourceType, RouteTableAssociationStateCode};
use cloud::{Cloud, Kind, RouteTable, RouteTableAssociation, Subnet, Vpc};
use engine::{Failure, Observed, Put, Ref, Refs, Removed};
use node::names::{ROUTE_TABLE_ROLE_TAG, logical_name};

pub(crate) async fn fetch(
    world: &AwsWorld,
    filters: Vec<Filter>,
) -> Result<Vec<types::RouteTable>, Failure> {
    let call = world.clients.ec2.describe_route_tables();
    let pages = call.set_filters(Some(filters)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeRouteTables")
}

pub(crate) fn observe(raw: &types::RouteTable, names: &Names) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.tags());
    let table = RouteTable {
        name: logical_name(&tags)?,
        vpc_id: names.reference::<Vpc>(raw.vpc_id()?),
        tags,
    };
    Some(observed_item(table, raw.route_table_id()?))
}

pub(crate) fn observe_associations(
    world: &AwsWorld,
    raw: &types::RouteTable,
    names: &Names,
) -> Vec<Observed<Cloud>> {
    let private = read_tags(raw.tags())
        .get(ROUTE_TABLE_ROLE_TAG)
        .is_some_and(|role| role.starts_with("private-"));
    let used = raw.associations().iter();
    used.filter_map(|one| {
        let state = one.association_state().and_then(|state| state.state());
        let going = matches!(
            state,
            Some(
                RouteTableAssociationStateCode::Disassociating
                    | RouteTableAssociationStateCode::Disassociated
            )
        );
        let subnet_id = names.reference::<Subnet>(one.subnet_id().filter(|_| !going)?);
        let association = RouteTableAssociation {
            name: association_name(world, &subnet_id, private),
            route_table_id: names.reference::<RouteTable>(raw.route_table_id()?),
            subnet_id,
        };
        Some(observed_item(
            association,
            one.route_table_association_id()?,
        ))
    })
    .collect()
}

/// AWS keeps no names of associations: the subnet tells them apart, so one that is wanted has the name by
/// which it is wanted.
fn association_name(world: &AwsWorld, subnet: &Ref, private: bool) -> String {
    let wanted =
        desired_of_kind::<RouteTableAssociation>(world).find(|one| one.subnet_id == *subnet);
    let prefix = if private { "private-" } else { "" };
    match (wanted, subnet) {
        (Some(wanted), _) => wanted.name.clone(),
        (None, Ref::Own { name, .. } | Ref::Given(name)) => format!("{prefix}{name}"),
    }
}

impl Verbs for RouteTable {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let found = fetch(world, vec![owned_filter(world), name_filter(&want.name)]).await?;
        Ok(find_same(
            found.iter().filter_map(|raw| observe(raw, &names)),
            &want.id(),
        ))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:CreateRouteTable";
        if let Some(have) = have {
            retag(world, have.physical, &have.resource.tags, &want.tags).await?;
            return Ok(created_ready(have.physical));
        }
        let vpc = physical(refs, &want.vpc_id, CALL)?;
        let call = world
            .clients
            .ec2
            .create_route_table()
            .client_token(client_token(world, &want.id(), &[&vpc]))
            .vpc_id(vpc)
            .tag_specifications(tag_specification(ResourceType::RouteTable, &want.tags));
        let table = call.send().await.classify_creation(CALL)?.route_table;
        require_answer(table.and_then(|table| table.route_table_id), CALL).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.delete_route_table();
        let call = call.route_table_id(have.physical).send();
        call.await.classify_call("ec2:DeleteRouteTable")?;
        Ok(Removed::Done)
    }
}

impl Verbs for RouteTableAssociation {
    /// The subnet's association, to whichever table it is: it can be replaced.
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let subnet = physical(refs, &want.subnet_id, "ec2:DescribeRouteTables")?;
        let names = Names::for_references(&want.refs(), refs);
        let by = vec![filter("association.subnet-id", subnet)];
        let found = fetch(world, by).await?;
        let mut items = found
            .iter()
            .flat_map(|raw| observe_associations(world, raw, &names));
        Ok(items.find_map(|mut item| {
            let Cloud::RouteTableAssociation(one) = &mut item.resource else {
                return None;
            };
            one.name.clone_from(&want.name);
            (one.subnet_id == want.subnet_id).then_some(item)
        }))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:AssociateRouteTable";
        const REPLACE: &str = "ec2:ReplaceRouteTableAssociation";
        let table = physical(refs, &want.route_table_id, CALL)?;
        let Some(have) = have else {
            let subnet = physical(refs, &want.subnet_id, CALL)?;
            let call = world.clients.ec2.associate_route_table();
            let call = call.route_table_id(table).subnet_id(subnet).send();
            return require_answer(call.await.classify_creation(CALL)?.association_id, CALL)
                .map(created_ready);
        };
        let call = world.clients.ec2.replace_route_table_association();
        let call = call.association_id(have.physical).route_table_id(table);
        let answer = call.send().await.classify_creation(REPLACE)?;
        require_answer(answer.new_association_id, REPLACE).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.disassociate_route_table();
        let call = call.association_id(have.physical).send();
        call.await.classify_call("ec2:DisassociateRouteTable")?;
        Ok(Removed::Done)
    }
}
