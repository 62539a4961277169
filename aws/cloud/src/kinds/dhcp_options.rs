//! DHCP options, and which of them the VPC uses.

use super::ec2::{name_filter, owned_filter, read_tags, retag, tag_specification, without_retries};
use super::vpc::{self, Raw};
use super::{Found, Have, Verbs, created_ready, find_same, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_ec2::types::{self, Filter, NewDhcpConfiguration, ResourceType};
use cloud::{Cloud, Kind, Vpc, VpcDhcpOptions, VpcDhcpOptionsAssociation};
use engine::{Failure, Observed, Put, Refs, Removed};
use node::names::{NAME_TAG, logical_name};

const DOMAIN: &str = "domain-name";
const RESOLVERS: &str = "domain-name-servers";

/// Behind the VPC in the physical id of the association.
const OPTIONS: &str = "/dhcp-options";

pub(crate) async fn fetch(
    world: &AwsWorld,
    more: Option<Filter>,
) -> Result<Vec<types::DhcpOptions>, Failure> {
    let call = world.clients.ec2.describe_dhcp_options();
    let filters = more.into_iter().chain([owned_filter(world)]).collect();
    let pages = call.set_filters(Some(filters)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeDhcpOptions")
}

pub(crate) fn observe(raw: &types::DhcpOptions) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.tags());
    let values = |key: &str| -> Vec<String> {
        let of = raw.dhcp_configurations().iter();
        of.filter(|one| one.key() == Some(key))
            .flat_map(types::DhcpConfiguration::values)
            .filter_map(|value| value.value().map(ToOwned::to_owned))
            .collect()
    };
    let options = VpcDhcpOptions {
        name: logical_name(&tags)?,
        domain_name: values(DOMAIN).join(" "),
        domain_name_servers: values(RESOLVERS),
        tags,
    };
    Some(observed_item(options, raw.dhcp_options_id()?))
}

/// The association, if the VPC uses options of the cluster's: what else it uses is what a VPC starts with.
pub(crate) fn observe_association(
    world: &AwsWorld,
    raw: &Raw,
    options: &[types::DhcpOptions],
    names: &Names,
) -> Option<Observed<Cloud>> {
    let (vpc, used) = (raw.vpc.vpc_id()?, raw.vpc.dhcp_options_id()?);
    options
        .iter()
        .find(|one| one.dhcp_options_id() == Some(used))?;
    let association = VpcDhcpOptionsAssociation {
        name: world.scope.cluster.clone(),
        vpc_id: names.reference::<Vpc>(vpc),
        dhcp_options_id: names.reference::<VpcDhcpOptions>(used),
    };
    Some(observed_item(association, format!("{vpc}{OPTIONS}")))
}

impl Verbs for VpcDhcpOptions {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        let name = want.tags.get(NAME_TAG).unwrap_or(&want.name);
        let found = fetch(world, Some(name_filter(name))).await?;
        Ok(find_same(found.iter().filter_map(observe), &want.id()))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:CreateDhcpOptions";
        if let Some(have) = have {
            retag(world, have.physical, &have.resource.tags, &want.tags).await?;
            return Ok(created_ready(have.physical));
        }
        let option = |key: &str, values: Vec<String>| {
            let option = NewDhcpConfiguration::builder().key(key);
            option.set_values(Some(values)).build()
        };
        let call = world
            .clients
            .ec2
            .create_dhcp_options()
            .dhcp_configurations(option(DOMAIN, vec![want.domain_name.clone()]))
            .dhcp_configurations(option(RESOLVERS, want.domain_name_servers.clone()))
            .tag_specifications(tag_specification(ResourceType::DhcpOptions, &want.tags));
        let answer = call
            .customize()
            .config_override(without_retries())
            .send()
            .await;
        let options = answer.classify_creation(CALL)?.dhcp_options;
        require_answer(options.and_then(|one| one.dhcp_options_id), CALL).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.delete_dhcp_options();
        let call = call.dhcp_options_id(have.physical).send();
        call.await.classify_call("ec2:DeleteDhcpOptions")?;
        Ok(Removed::Done)
    }
}

impl Verbs for VpcDhcpOptionsAssociation {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let (found, options) =
            futures::try_join!(vpc::fetch(world, Vec::new()), fetch(world, None))?;
        let items = found
            .iter()
            .filter_map(|raw| observe_association(world, raw, &options, &names));
        Ok(find_same(items, &want.id()))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        _have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:AssociateDhcpOptions";
        let vpc = physical(refs, &want.vpc_id, CALL)?;
        let options = physical(refs, &want.dhcp_options_id, CALL)?;
        associate(world, &vpc, &options)
            .await
            .classify_creation(CALL)?;
        Ok(created_ready(format!("{vpc}{OPTIONS}")))
    }

    /// A VPC always uses some options; without ours, AWS' own.
    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let vpc = have.physical.trim_end_matches(OPTIONS);
        let done = associate(world, vpc, "default").await;
        done.classify_call("ec2:AssociateDhcpOptions")?;
        Ok(Removed::Done)
    }
}

async fn associate(
    world: &AwsWorld,
    vpc: &str,
    options: &str,
) -> Result<
    (),
    aws_sdk_ec2::error::SdkError<
        aws_sdk_ec2::operation::associate_dhcp_options::AssociateDhcpOptionsError,
    >,
> {
    let call = world.clients.ec2.associate_dhcp_options().vpc_id(vpc);
    call.dhcp_options_id(options).send().await.map(drop)
}
