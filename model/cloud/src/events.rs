//! The queue and the EventBridge rules by which the node termination handler hears of ending instances.

use super::listing::{ListingPosition, PartOf, Section};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqsQueue {
    /// `NAME-with-dashes-nth`.
    pub queue_name: String,
    /// Seconds.
    pub message_retention_period: i32,
    pub policy: Value,
    pub tags: Tags,
}

impl Kind for SqsQueue {
    const TYPE: &'static str = "sqs_queue";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::TerminationEvents, 0);
    const CAN_BE_REMADE: bool = false;

    fn name(&self) -> String {
        self.queue_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }
}

/// An EventBridge rule on the default bus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CloudwatchEventRule {
    /// `NAME-ASGLifecycle`, ...
    pub name: String,
    pub event_pattern: Value,
    /// Tags. AWS lists them rule by rule only, so they are compared through a digest in the rule's description.
    pub tags: Tags,
}

impl Kind for CloudwatchEventRule {
    const TYPE: &'static str = "cloudwatch_event_rule";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::TerminationEvents, 1);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }
}

/// Where a rule sends its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudwatchEventTarget {
    /// `RULE-Target`.
    pub name: String,
    pub rule: Ref,
    pub arn: Ref,
}

impl Kind for CloudwatchEventTarget {
    const TYPE: &'static str = "cloudwatch_event_target";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::TerminationEvents, 2);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.rule, &mut self.arn]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.rule, "target", "targets")
    }
}
