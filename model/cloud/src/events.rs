//! The queue and the EventBridge rules by which the node termination handler hears of ending instances.

use super::{Kind, Rename, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqsQueue {
    /// `NAME-with-dashes-nth`.
    pub queue_name: String,
    /// Seconds.
    pub message_retention_period: i32,
    /// Who may send.
    pub policy: Value,
    /// Tags.
    pub tags: Tags,
}

impl Kind for SqsQueue {
    const TYPE: &'static str = "sqs_queue";

    fn name(&self) -> String {
        self.queue_name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        Vec::new()
    }
}

/// An EventBridge rule on the default bus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CloudwatchEventRule {
    /// `NAME-ASGLifecycle`, ...
    pub name: String,
    /// Which events.
    pub event_pattern: Value,
    /// Tags. AWS lists them rule by rule only, so they are compared through a digest in the rule's description.
    pub tags: Tags,
}

impl Kind for CloudwatchEventRule {
    const TYPE: &'static str = "cloudwatch_event_rule";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        Vec::new()
    }
}

/// Where a rule sends its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudwatchEventTarget {
    /// `RULE-Target`.
    pub name: String,
    /// The rule.
    pub rule: Ref,
    /// The queue.
    pub arn: Ref,
}

impl Kind for CloudwatchEventTarget {
    const TYPE: &'static str = "cloudwatch_event_target";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.rule.clone(), self.arn.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            rule: rename(&self.rule),
            arn: rename(&self.arn),
            ..self.clone()
        }
    }
}
