//! An etcd volume. Volumes of pods carry the cluster's tag too; they are the cluster's only when it is deleted.

use super::controllers::{is_claimed_volume, name_in_plan};
use super::ec2::{name_filter, owned_filter, read_tags, retag, tag_specification};
use super::{
    Found, Have, Verbs, client_token, created_ready, desired_of_kind, find_same, observed_item,
    rfc3339_time,
};
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_ec2::types::{self, Filter, ResourceType, VolumeState, VolumeType};
use cloud::{Cloud, ETCD_TAG, EbsVolume, Kind};
use engine::{Failure, Observed, Put, Refs, Removed};

pub(crate) async fn fetch(
    world: &AwsWorld,
    more: Option<Filter>,
) -> Result<Vec<types::Volume>, Failure> {
    let call = world.clients.ec2.describe_volumes();
    // A tag that every etcd volume has keeps those of pods out of the answer.
    let etcd = super::ec2::filter("tag-key", format!("{ETCD_TAG}*"));
    let etcd = Some(etcd).filter(|_| !world.scope.is_deletion());
    let owned = [owned_filter(world)].into_iter();
    let filters = owned.chain(etcd).chain(more).collect();
    let pages = call.set_filters(Some(filters)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeVolumes")
}

pub(crate) fn observe(world: &AwsWorld, raw: &types::Volume) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.tags());
    let of_etcd = tags.keys().any(|key| key.starts_with(ETCD_TAG));
    let going = matches!(
        raw.state(),
        Some(VolumeState::Deleting | VolumeState::Deleted)
    );
    if going || !(of_etcd || is_claimed_volume(world, &tags)) {
        return None;
    }
    let name = name_in_plan(world, &tags, raw.volume_id()?)?;
    let kind = raw.volume_type()?.as_str().to_owned();
    // AWS says what gp2 comes to as well; it is nobody's choice.
    let provisioned = matches!(kind.as_str(), "gp3" | "io1" | "io2");
    let volume = EbsVolume {
        availability_zone: raw.availability_zone()?.to_owned(),
        size: raw.size()?,
        iops: raw.iops().filter(|_| provisioned),
        throughput: raw.throughput().filter(|_| kind == "gp3"),
        volume_type: kind,
        encrypted: raw.encrypted().unwrap_or_default(),
        kms_key_id: chosen_key(world, &name, raw.kms_key_id()),
        name,
        tags,
    };
    Some(Observed {
        created: rfc3339_time(raw.create_time()),
        in_use: !raw.attachments().is_empty(),
        ..observed_item(volume, raw.volume_id()?)
    })
}

/// AWS names a key for every encrypted volume. If the spec names none, it is the account's default.
fn chosen_key(world: &AwsWorld, name: &str, key: Option<&str>) -> Option<String> {
    let wanted = desired_of_kind::<EbsVolume>(world).find(|one| one.name == name);
    match wanted.map(|one| one.kms_key_id.as_deref()) {
        Some(None) => None,
        // The spec may name it by its id, AWS by its ARN.
        Some(Some(wanted)) if key.is_some_and(|key| key.ends_with(wanted)) => {
            Some(wanted.to_owned())
        }
        _ => key.map(ToOwned::to_owned),
    }
}

impl Verbs for EbsVolume {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        let found = fetch(world, Some(name_filter(&want.name))).await?;
        let items = found.iter().filter_map(|raw| observe(world, raw));
        Ok(find_same(items, &want.id()))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:CreateVolume";
        if let Some(have) = have {
            modify(world, &have, want).await?;
            retag(world, have.physical, &have.resource.tags, &want.tags).await?;
            return Ok(created_ready(have.physical));
        }
        let call = world
            .clients
            .ec2
            .create_volume()
            .client_token(client_token(world, &want.id(), &[]))
            .availability_zone(&want.availability_zone)
            .size(want.size)
            .volume_type(VolumeType::from(want.volume_type.as_str()))
            .set_iops(want.iops)
            .set_throughput(want.throughput)
            .encrypted(want.encrypted)
            .set_kms_key_id(want.kms_key_id.clone())
            .tag_specifications(tag_specification(ResourceType::Volume, &want.tags));
        let volume = call.send().await.classify_creation(CALL)?.volume_id;
        require_answer(volume, CALL).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.delete_volume().volume_id(have.physical);
        call.send().await.classify_call("ec2:DeleteVolume")?;
        Ok(Removed::Done)
    }
}

async fn modify(
    world: &AwsWorld,
    have: &Have<'_, EbsVolume>,
    want: &EbsVolume,
) -> Result<(), Failure> {
    let shape = |one: &EbsVolume| (one.size, one.volume_type.clone(), one.iops, one.throughput);
    if shape(have.resource) == shape(want) {
        return Ok(());
    }
    let call = world
        .clients
        .ec2
        .modify_volume()
        .volume_id(have.physical)
        .size(want.size)
        .volume_type(VolumeType::from(want.volume_type.as_str()))
        .set_iops(want.iops)
        .set_throughput(want.throughput);
    call.send()
        .await
        .classify_call("ec2:ModifyVolume")
        .map(drop)
}
