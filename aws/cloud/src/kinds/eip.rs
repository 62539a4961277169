//! An elastic IP.

use super::ec2::{name_filter, owned_filter, read_tags, retag, tag_specification, without_retries};
use super::{Found, Have, Verbs, created_ready, find_same, observed_item};
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_ec2::types::{self, DomainType, Filter, ResourceType};
use cloud::{Cloud, Eip, Kind};
use engine::{Failure, Observed, Put, Refs, Removed};
use node::names::logical_name;

pub(crate) async fn fetch(
    world: &AwsWorld,
    more: Option<Filter>,
) -> Result<Vec<types::Address>, Failure> {
    let filters = more.into_iter().chain([owned_filter(world)]).collect();
    let call = world.clients.ec2.describe_addresses();
    let answer = call.set_filters(Some(filters)).send().await;
    let found = answer.classify_call("ec2:DescribeAddresses")?;
    Ok(found.addresses.unwrap_or_default())
}

pub(crate) fn observe(raw: &types::Address) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.tags());
    let address = Eip {
        name: logical_name(&tags)?,
        domain: raw.domain().map_or("vpc", DomainType::as_str).to_owned(),
        tags,
    };
    let mut seen = observed_item(address, raw.allocation_id()?);
    seen.in_use = raw.association_id().is_some();
    let public = raw.public_ip().map(ToOwned::to_owned);
    seen.attrs
        .extend(public.map(|public| ("public_ip".to_owned(), public)));
    Some(seen)
}

impl Verbs for Eip {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        let found = fetch(world, Some(name_filter(&want.name))).await?;
        Ok(find_same(found.iter().filter_map(observe), &want.id()))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:AllocateAddress";
        if let Some(have) = have {
            retag(world, have.physical, &have.resource.tags, &want.tags).await?;
            return Ok(created_ready(have.physical));
        }
        let call = world
            .clients
            .ec2
            .allocate_address()
            .domain(DomainType::from(want.domain.as_str()))
            .tag_specifications(tag_specification(ResourceType::ElasticIp, &want.tags));
        let answer = call
            .customize()
            .config_override(without_retries())
            .send()
            .await;
        let answer = answer.classify_creation(CALL)?;
        let mut put = created_ready(require_answer(answer.allocation_id, CALL)?);
        put.attrs
            .extend(answer.public_ip.map(|ip| ("public_ip".to_owned(), ip)));
        Ok(put)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.release_address();
        let call = call.allocation_id(have.physical).send();
        call.await.classify_call("ec2:ReleaseAddress")?;
        Ok(Removed::Done)
    }
}
