//! The queue of the node termination handler.

use super::ec2::is_owned;
use super::iam_documents::{as_wanted, sort_document};
use super::{Found, Have, Verbs, created_ready, desired_of_kind, not_ours, observed_item};
use crate::names::{TagChanges, tags};
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure, none_if_absent};
use aws_sdk_sqs::types::QueueAttributeName;
use cloud::{Cloud, SqsQueue, Tags};
use engine::{Attrs, Class, Failure, Observed, Put, Refs, Removed};
use serde_json::Value;
use std::collections::HashMap;

/// Attribute: the queue's URL, by which AWS calls it.
const URL: &str = "url";

/// The queue with its attributes and tags.
pub(crate) struct Raw {
    url: String,
    attributes: HashMap<QueueAttributeName, String>,
    tags: Tags,
}

pub(crate) async fn fetch(world: &AwsWorld) -> Result<Option<Raw>, Failure> {
    let found = fetch_named(world, &world.scope.queue).await?;
    Ok(found.filter(|raw| is_owned(world, &raw.tags)))
}

async fn fetch_named(world: &AwsWorld, name: &str) -> Result<Option<Raw>, Failure> {
    let sqs = &world.clients.sqs;
    let answer = sqs.get_queue_url().queue_name(name).send().await;
    let answer = none_if_absent(answer.classify_call("sqs:GetQueueUrl"))?;
    let Some(url) = answer.and_then(|answer| answer.queue_url) else {
        return Ok(None);
    };
    let attributes = async {
        let call = sqs.get_queue_attributes().queue_url(&url);
        let call = call.attribute_names(QueueAttributeName::All);
        call.send().await.classify_call("sqs:GetQueueAttributes")
    };
    let tags_of = async {
        let call = sqs.list_queue_tags().queue_url(&url);
        call.send().await.classify_call("sqs:ListQueueTags")
    };
    let both = none_if_absent(futures::try_join!(attributes, tags_of))?;
    Ok(both.map(|(attributes, tags_of)| Raw {
        url,
        attributes: attributes.attributes.unwrap_or_default(),
        tags: tags(tags_of.tags.unwrap_or_default()),
    }))
}

pub(crate) fn observe(world: &AwsWorld, raw: &Raw) -> Option<Observed<Cloud>> {
    let of = |name: QueueAttributeName| raw.attributes.get(&name);
    let arn = of(QueueAttributeName::QueueArn)?;
    let name = arn.rsplit(':').next()?;
    let policy = of(QueueAttributeName::Policy);
    let policy = policy.and_then(|text| serde_json::from_str(text).ok());
    let wanted = desired_of_kind::<SqsQueue>(world).find(|one| one.queue_name == name);
    let policy = sort_document(policy.unwrap_or(Value::Null));
    let queue = SqsQueue {
        queue_name: name.to_owned(),
        message_retention_period: of(QueueAttributeName::MessageRetentionPeriod)
            .and_then(|seconds| seconds.parse().ok())
            .unwrap_or_default(),
        policy: as_wanted(policy, wanted.map(|one| &one.policy)),
        tags: raw.tags.clone(),
    };
    Some(Observed {
        attrs: observed_attrs(&raw.url),
        ..observed_item(queue, arn)
    })
}

fn observed_attrs(url: &str) -> Attrs {
    Attrs::from([(URL.to_owned(), url.to_owned())])
}

/// SetQueueAttributes takes up to 60 seconds to show (its API reference), and a plan made before that is not empty.
const POLICY: &str = "its new policy to be seen";

impl Verbs for SqsQueue {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        match fetch_named(world, &want.queue_name).await? {
            Some(raw) if !is_owned(world, &raw.tags) => {
                let what = format!("the queue {}", want.queue_name);
                Err(not_ours(world, "sqs:GetQueueUrl", &what))
            }
            found => Ok(found.and_then(|raw| observe(world, &raw))),
        }
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "sqs:CreateQueue";
        if let Some(have) = have {
            update(world, &have, want).await?;
            let changed = have.resource.policy != want.policy;
            return Ok(Put {
                waiting_for: changed.then(|| POLICY.to_owned()),
                ..created_ready(have.physical)
            });
        }
        let call = world.clients.sqs.create_queue();
        let call = call
            .queue_name(&want.queue_name)
            .set_attributes(Some(attribute_values(want)))
            .set_tags(Some(want.tags.clone().into_iter().collect()));
        let url = call.send().await.classify_creation(CALL)?.queue_url;
        Ok(Put {
            attrs: observed_attrs(&url.unwrap_or_default()),
            ..created_ready(queue_arn(world, &want.queue_name))
        })
    }

    async fn ready(world: &AwsWorld, want: &Self, physical: &str) -> Result<Put, Failure> {
        let found = fetch_named(world, &want.queue_name).await?;
        let seen = found.and_then(|raw| observe(world, &raw));
        let same = |seen: &Observed<Cloud>| matches!(&seen.resource, Cloud::SqsQueue(queue) if queue.policy == want.policy);
        Ok(Put {
            waiting_for: (!seen.as_ref().is_some_and(same)).then(|| POLICY.to_owned()),
            attrs: seen.map(|seen| seen.attrs).unwrap_or_default(),
            ..created_ready(physical)
        })
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.sqs.delete_queue().queue_url(url(&have)?);
        call.send().await.classify_call("sqs:DeleteQueue")?;
        Ok(Removed::Done)
    }
}

fn queue_arn(world: &AwsWorld, name: &str) -> String {
    let scope = &world.scope;
    format!(
        "arn:{}:sqs:{}:{}:{name}",
        scope.partition, scope.region, scope.account
    )
}

fn url<'a>(have: &Have<'a, SqsQueue>) -> Result<&'a str, Failure> {
    let url = have.attrs.get(URL).map(String::as_str);
    url.ok_or_else(|| local_failure(Class::Invalid, "sqs:SetQueueAttributes", "no URL is known"))
}

fn attribute_values(of: &SqsQueue) -> HashMap<QueueAttributeName, String> {
    HashMap::from([
        (
            QueueAttributeName::MessageRetentionPeriod,
            of.message_retention_period.to_string(),
        ),
        (QueueAttributeName::Policy, of.policy.to_string()),
    ])
}

async fn update(
    world: &AwsWorld,
    have: &Have<'_, SqsQueue>,
    want: &SqsQueue,
) -> Result<(), Failure> {
    let (sqs, url) = (&world.clients.sqs, url(have)?);
    if attribute_values(have.resource) != attribute_values(want) {
        let call = sqs.set_queue_attributes().queue_url(url);
        let done = call
            .set_attributes(Some(attribute_values(want)))
            .send()
            .await;
        done.classify_call("sqs:SetQueueAttributes")?;
    }
    let changes = TagChanges::tag_changes_between(&have.resource.tags, &want.tags);
    if !changes.set.is_empty() {
        let call = sqs.tag_queue().queue_url(url);
        let tags = changes.set.into_iter().collect();
        let done = call.set_tags(Some(tags)).send().await;
        done.classify_call("sqs:TagQueue")?;
    }
    if !changes.unset.is_empty() {
        let call = sqs.untag_queue().queue_url(url);
        let done = call.set_tag_keys(Some(changes.unset)).send().await;
        done.classify_call("sqs:UntagQueue")?;
    }
    Ok(())
}
