//! More IPv4 ranges of the VPC.

use super::ec2::without_retries;
use super::vpc::{self, Raw};
use super::{Found, Have, Verbs, created_ready, find_same, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use cloud::{Cloud, Kind, Vpc, VpcIpv4CidrBlockAssociation};
use engine::{Class, Failure, Observed, Put, Refs, Removed};

pub(crate) fn observe(raw: &Raw, names: &Names) -> Vec<Observed<Cloud>> {
    let Some(vpc) = raw.vpc.vpc_id() else {
        return Vec::new();
    };
    let more = raw.vpc.cidr_block_association_set().iter();
    more.filter_map(|range| {
        let state = range.cidr_block_state()?.state()?.as_str();
        let first = range.cidr_block() == raw.vpc.cidr_block();
        if first || !state.starts_with("associat") {
            return None;
        }
        let association = VpcIpv4CidrBlockAssociation {
            vpc_id: names.reference::<Vpc>(vpc),
            cidr_block: range.cidr_block()?.to_owned(),
        };
        Some(observed_item(association, range.association_id()?))
    })
    .collect()
}

/// EC2 has no code of its own for a range that the VPC has already.
async fn explain_taken_range(
    world: &AwsWorld,
    want: &VpcIpv4CidrBlockAssociation,
    refs: &Refs,
    failure: Failure,
) -> Result<Failure, Failure> {
    let there = failure.class == Class::Invalid && Verbs::find(world, want, refs).await?.is_some();
    let class = if there { Class::Exists } else { failure.class };
    Ok(Failure { class, ..failure })
}

impl Verbs for VpcIpv4CidrBlockAssociation {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let found = vpc::fetch(world, Vec::new()).await?;
        let items = found.iter().flat_map(|raw| observe(raw, &names));
        Ok(find_same(items, &want.id()))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        _have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:AssociateVpcCidrBlock";
        let vpc = physical(refs, &want.vpc_id, CALL)?;
        let call = world.clients.ec2.associate_vpc_cidr_block().vpc_id(vpc);
        let call = call.cidr_block(&want.cidr_block).customize();
        let answer = call.config_override(without_retries()).send().await;
        let range = match answer.classify_creation(CALL) {
            Ok(answer) => answer.cidr_block_association,
            Err(failure) => return Err(explain_taken_range(world, want, refs, failure).await?),
        };
        require_answer(range.and_then(|range| range.association_id), CALL).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.disassociate_vpc_cidr_block();
        let call = call.association_id(have.physical).send();
        call.await.classify_call("ec2:DisassociateVpcCidrBlock")?;
        Ok(Removed::Done)
    }
}
