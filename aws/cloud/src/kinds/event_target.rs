//! Where an EventBridge rule sends its events: the queue.

use super::event_rule::Raw as RawRule;
use super::{Found, Have, Verbs, created_ready, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, item_failure, local_failure, none_if_absent};
use aws_sdk_eventbridge::types::Target;
use cloud::{Cloud, CloudwatchEventRule, CloudwatchEventTarget, SqsQueue};
use engine::{Class, Failure, Observed, Put, Refs, Removed};

/// The id of the one target within its rule, as kOps gives it.
const TARGET: &str = "1";

/// Between a target's rule and id in its physical id.
const BETWEEN: char = '/';

/// Names of all rules that send to the cluster's queue.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<String>, Failure> {
    rules_to(world, &world.scope.queue_arn()).await
}

async fn rules_to(world: &AwsWorld, arn: &str) -> Result<Vec<String>, Failure> {
    let (mut found, mut token) = (Vec::new(), None);
    loop {
        let call = world.clients.events.list_rule_names_by_target();
        let call = call.target_arn(arn).set_next_token(token);
        let answer = call
            .send()
            .await
            .classify_call("events:ListRuleNamesByTarget")?;
        found.extend(answer.rule_names.unwrap_or_default());
        token = answer.next_token;
        if token.is_none() {
            return Ok(found);
        }
    }
}

pub(crate) fn observe(
    world: &AwsWorld,
    rules: &[RawRule],
    to_queue: &[String],
    names: &Names,
) -> Vec<Observed<Cloud>> {
    let queue = names.reference::<SqsQueue>(&world.scope.queue_arn());
    let rules = rules.iter().filter_map(|raw| raw.rule.name());
    rules
        .filter(|rule| to_queue.iter().any(|one| one == rule))
        .map(|rule| {
            let target = CloudwatchEventTarget {
                name: format!("{rule}-Target"),
                rule: names.reference::<CloudwatchEventRule>(rule),
                arn: queue.clone(),
            };
            observed_item(target, format!("{rule}{BETWEEN}{TARGET}"))
        })
        .collect()
}

impl Verbs for CloudwatchEventTarget {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        const CALL: &str = "events:ListRuleNamesByTarget";
        let rule = physical(refs, &want.rule, CALL)?;
        let arn = physical(refs, &want.arn, CALL)?;
        let found = none_if_absent(rules_to(world, &arn).await)?.unwrap_or_default();
        let there = found.contains(&rule);
        Ok(there.then(|| observed_item(want.clone(), format!("{rule}{BETWEEN}{TARGET}"))))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        _have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "events:PutTargets";
        let rule = physical(refs, &want.rule, CALL)?;
        let target = Target::builder().id(TARGET);
        let target = target.arn(physical(refs, &want.arn, CALL)?).build();
        let target =
            target.map_err(|error| local_failure(Class::Invalid, CALL, error.to_string()))?;
        let call = world.clients.events.put_targets().rule(&rule);
        let answer = call.targets(target).send().await.classify_creation(CALL)?;
        // A target that was refused is part of a successful answer.
        if let Some(refused) = answer.failed_entries().first() {
            let code = refused.error_code().unwrap_or_default();
            return Err(item_failure(CALL, code, refused.error_message()));
        }
        Ok(created_ready(format!("{rule}{BETWEEN}{TARGET}")))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let parts = have.physical.rsplit_once(BETWEEN);
        let (rule, target) = parts.unwrap_or((have.physical, TARGET));
        remove_targets(world, rule, vec![target.to_owned()]).await?;
        Ok(Removed::Done)
    }
}

/// Takes these targets from a rule. A target that stays is part of a successful answer.
pub(super) async fn remove_targets(
    world: &AwsWorld,
    rule: &str,
    ids: Vec<String>,
) -> Result<(), Failure> {
    const CALL: &str = "events:RemoveTargets";
    let call = world.clients.events.remove_targets().rule(rule);
    let answer = call.set_ids(Some(ids)).send().await.classify_call(CALL)?;
    for refused in answer.failed_entries() {
        let code = refused.error_code().unwrap_or_default();
        let failure = item_failure(CALL, code, refused.error_message());
        if failure.class != Class::Gone {
            return Err(failure);
        }
    }
    Ok(())
}
