//! An EventBridge rule. AWS lists tags rule by rule, so a digest of them is in the rule's description: where it
//! is that of the wanted tags, they are not read.

use super::ec2::is_owned;
use super::{Found, Have, Verbs, created_ready, desired_of_kind, not_ours, observed_item};
use crate::names::{TagChanges, tags};
use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_eventbridge::types::{self, RuleState, Tag};
use cloud::{Cloud, CloudwatchEventRule, Tags};
use engine::{Failure, Observed, Put, Refs, Removed};
use futures::future::try_join_all;
use node::digest::to_hex;
use serde_json::Value;
use sha2::{Digest, Sha256};

const LIST: &str = "events:ListRules";

/// What the description says before the digest.
const DIGEST: &str = "kctl.dev/tags=";

/// A rule and its tags.
pub(crate) struct Raw {
    pub(crate) rule: types::Rule,
    tags: Tags,
}

pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<Raw>, Failure> {
    let found = list(world, &world.scope.event_rule_prefix).await?;
    let found = try_join_all(found.into_iter().map(|rule| with_tags(world, rule))).await?;
    let ours = found.into_iter().filter(|raw| is_owned(world, &raw.tags));
    Ok(ours.collect())
}

async fn list(world: &AwsWorld, prefix: &str) -> Result<Vec<types::Rule>, Failure> {
    let (mut found, mut token) = (Vec::new(), None);
    loop {
        let call = world.clients.events.list_rules().name_prefix(prefix);
        let answer = call
            .set_next_token(token)
            .send()
            .await
            .classify_call(LIST)?;
        found.extend(answer.rules.unwrap_or_default());
        token = answer.next_token;
        if token.is_none() {
            return Ok(found);
        }
    }
}

async fn with_tags(world: &AwsWorld, rule: types::Rule) -> Result<Raw, Failure> {
    let wanted =
        desired_of_kind::<CloudwatchEventRule>(world).find(|one| rule.name() == Some(&one.name));
    let said = rule
        .description()
        .and_then(|text| text.strip_prefix(DIGEST));
    let vouched =
        wanted.filter(|one| !world.scope.refresh && said == Some(&tags_digest(&one.tags)));
    if let Some(wanted) = vouched {
        let tags = wanted.tags.clone();
        return Ok(Raw { rule, tags });
    }
    let call = world.clients.events.list_tags_for_resource();
    let answer = call.set_resource_arn(rule.arn.clone()).send().await;
    let found = answer.classify_call("events:ListTagsForResource")?.tags;
    let tags = tags(
        found
            .unwrap_or_default()
            .into_iter()
            .map(|tag| (tag.key, tag.value)),
    );
    Ok(Raw { rule, tags })
}

/// 16 hex digits of the sha256 of the tags' JSON, whose keys are sorted.
fn tags_digest(tags: &Tags) -> String {
    let json = serde_json::to_string(tags).unwrap_or_default();
    let mut digest = to_hex(&Sha256::digest(json));
    digest.truncate(16);
    digest
}

pub(crate) fn observe(raw: &Raw) -> Option<Observed<Cloud>> {
    let name = raw.rule.name()?;
    let pattern = raw.rule.event_pattern().unwrap_or_default();
    // A rule that is switched off, or whose digest is stale, has to be written again.
    let on = raw
        .rule
        .state()
        .is_none_or(|state| *state == RuleState::Enabled);
    let rule = CloudwatchEventRule {
        name: name.to_owned(),
        event_pattern: serde_json::from_str(pattern)
            .ok()
            .filter(|_| on)
            .unwrap_or(Value::Null),
        tags: raw.tags.clone(),
    };
    let mut seen = observed_item(rule, name);
    let arn = raw.rule.arn().map(ToOwned::to_owned);
    seen.attrs.extend(arn.map(|arn| (ARN.to_owned(), arn)));
    Some(seen)
}

/// Attribute: the rule's ARN, by which AWS tags it.
const ARN: &str = "arn";

impl Verbs for CloudwatchEventRule {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        let found = list(world, &want.name).await?;
        let mut found = found.into_iter();
        let Some(rule) = found.find(|rule| rule.name() == Some(&want.name)) else {
            return Ok(None);
        };
        let raw = with_tags(world, rule).await?;
        if is_owned(world, &raw.tags) {
            Ok(observe(&raw))
        } else {
            let what = format!("the EventBridge rule {}", want.name);
            Err(not_ours(world, LIST, &what))
        }
    }

    /// Tags first: the digest that vouches for them is written last. A new rule gets both at once.
    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        let mut created = Some(write_tags(&want.tags));
        if let Some(have) = &have {
            let arn = have.attrs.get(ARN).map_or("", String::as_str);
            retag(world, arn, &have.resource.tags, &want.tags).await?;
            created = None;
        }
        let call = world
            .clients
            .events
            .put_rule()
            .name(&want.name)
            .description(format!("{DIGEST}{}", tags_digest(&want.tags)))
            .event_pattern(want.event_pattern.to_string())
            .state(RuleState::Enabled)
            .set_tags(created);
        call.send().await.classify_creation("events:PutRule")?;
        Ok(created_ready(&want.name))
    }

    /// A rule with targets cannot go, so whatever targets it still has go with it.
    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let events = &world.clients.events;
        let call = events.list_targets_by_rule().rule(have.physical);
        let answer = call
            .send()
            .await
            .classify_call("events:ListTargetsByRule")?;
        let targets = answer.targets.unwrap_or_default();
        let ids: Vec<String> = targets.into_iter().map(|target| target.id).collect();
        if !ids.is_empty() {
            super::event_target::remove_targets(world, have.physical, ids).await?;
        }
        let call = events.delete_rule().name(have.physical);
        call.send().await.classify_call("events:DeleteRule")?;
        Ok(Removed::Done)
    }
}

fn write_tags(of: &Tags) -> Vec<Tag> {
    let write = |(key, value)| Tag::builder().key(key).value(value).build().ok();
    of.iter().filter_map(write).collect()
}

async fn retag(world: &AwsWorld, arn: &str, have: &Tags, want: &Tags) -> Result<(), Failure> {
    let events = &world.clients.events;
    let changes = TagChanges::tag_changes_between(have, want);
    if !changes.set.is_empty() {
        let call = events.tag_resource().resource_arn(arn);
        let done = call.set_tags(Some(write_tags(&changes.set))).send().await;
        done.classify_call("events:TagResource")?;
    }
    if !changes.unset.is_empty() {
        let call = events.untag_resource().resource_arn(arn);
        let done = call.set_tag_keys(Some(changes.unset)).send().await;
        done.classify_call("events:UntagResource")?;
    }
    Ok(())
}
