//! The SSH key pair.

use super::ec2::{filter, is_owned, owned_filter, read_tags, retag, tag_specification};
use super::{Found, Have, Verbs, created_ready, not_ours, observed_item, rfc3339_time};
use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_ec2::primitives::Blob;
use aws_sdk_ec2::types::{self, Filter, ResourceType};
use cloud::{Cloud, KeyPair};
use engine::{Failure, Observed, Put, Refs, Removed};

const DESCRIBE: &str = "ec2:DescribeKeyPairs";

pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<types::KeyPairInfo>, Failure> {
    fetch_by(world, owned_filter(world)).await
}

async fn fetch_by(world: &AwsWorld, by: Filter) -> Result<Vec<types::KeyPairInfo>, Failure> {
    let call = world.clients.ec2.describe_key_pairs().filters(by);
    let answer = call.include_public_key(true).send().await;
    Ok(answer
        .classify_call(DESCRIBE)?
        .key_pairs
        .unwrap_or_default())
}

pub(crate) fn observe(raw: &types::KeyPairInfo) -> Option<Observed<Cloud>> {
    // Type and key; AWS puts the pair's name behind them.
    let words = raw.public_key().unwrap_or_default().split_whitespace();
    let words: Vec<&str> = words.take(2).collect();
    let key = KeyPair {
        key_name: raw.key_name()?.to_owned(),
        public_key: words.join(" "),
        tags: read_tags(raw.tags()),
    };
    Some(Observed {
        created: rfc3339_time(raw.create_time()),
        ..observed_item(key, raw.key_name()?)
    })
}

impl Verbs for KeyPair {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        let found = fetch_by(world, filter("key-name", &want.key_name)).await?;
        match found.first() {
            Some(raw) if !is_owned(world, &read_tags(raw.tags())) => {
                let what = format!("the key pair {}", want.key_name);
                Err(not_ours(world, DESCRIBE, &what))
            }
            found => Ok(found.and_then(observe)),
        }
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        match have {
            Some(have) if have.resource.public_key == want.public_key => {
                let tags = &have.resource.tags;
                if let Some(id) = fetch_by(world, filter("key-name", have.physical))
                    .await?
                    .first()
                    .and_then(|raw| raw.key_pair_id())
                {
                    retag(world, id, tags, &want.tags).await?;
                }
                return Ok(created_ready(have.physical));
            }
            // Another key under the same name: only its removal lets the right one in.
            Some(have) => remove(world, have.physical).await?,
            None => {}
        }
        let call = world
            .clients
            .ec2
            .import_key_pair()
            .key_name(&want.key_name)
            .public_key_material(Blob::new(want.public_key.as_bytes()))
            .tag_specifications(tag_specification(ResourceType::KeyPair, &want.tags));
        call.send().await.classify_creation("ec2:ImportKeyPair")?;
        Ok(created_ready(&want.key_name))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        remove(world, have.physical).await?;
        Ok(Removed::Done)
    }
}

async fn remove(world: &AwsWorld, name: &str) -> Result<(), Failure> {
    let call = world.clients.ec2.delete_key_pair().key_name(name);
    call.send()
        .await
        .classify_call("ec2:DeleteKeyPair")
        .map(drop)
}
