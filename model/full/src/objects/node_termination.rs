//! The queue in which the node termination handler hears of ending instances, and the rules that fill it.

use crate::{FullSpec, queue_arn, tags};
use cloud::{Cloud, CloudwatchEventRule, CloudwatchEventTarget, SqsQueue};
use node::names;
use serde_json::{Value, json};

/// Seconds that a message stays: older than that, the instance is gone.
const RETENTION: i32 = 300;

pub(super) fn build(full: &FullSpec) -> Vec<Cloud> {
    let Some(termination) = full.node_termination.as_ref().filter(|one| one.queue) else {
        return Vec::new();
    };
    let mut all = vec![queue(full).into()];
    for (event, pattern) in events(termination.rebalance) {
        all.extend(rule(full, event, pattern));
    }
    all
}

fn queue(full: &FullSpec) -> SqsQueue {
    let queue_name = names::queue(&full.name);
    SqsQueue {
        message_retention_period: RETENTION,
        policy: json!({
            "Statement": [{
                "Action": "sqs:SendMessage",
                "Effect": "Allow",
                // Rules of our own account only: anybody's EventBridge is the same principal
                // (https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html).
                "Condition": {"StringEquals": {"aws:SourceAccount": full.placement.account}},
                "Principal": {"Service": "events.amazonaws.com"},
                "Resource": queue_arn(full),
            }],
            "Version": crate::iam::VERSION,
        }),
        tags: tags(full, &queue_name),
        queue_name,
    }
}

fn events(rebalance: bool) -> Vec<(&'static str, Value)> {
    let of =
        |source: &str, detail_type: &str| json!({"source": [source], "detail-type": [detail_type]});
    let mut events = vec![
        (
            "ASGLifecycle",
            of("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action"),
        ),
        (
            "InstanceScheduledChange",
            json!({
                "source": ["aws.health"],
                "detail-type": ["AWS Health Event"],
                "detail": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
            }),
        ),
        (
            "InstanceStateChange",
            of("aws.ec2", "EC2 Instance State-change Notification"),
        ),
        (
            "SpotInterruption",
            of("aws.ec2", "EC2 Spot Instance Interruption Warning"),
        ),
    ];
    if rebalance {
        let pattern = of("aws.ec2", "EC2 Instance Rebalance Recommendation");
        events.push(("RebalanceRecommendation", pattern));
    }
    events
}

fn rule(full: &FullSpec, event: &str, event_pattern: Value) -> [Cloud; 2] {
    let name = names::event_rule(&full.name, event);
    let target = CloudwatchEventTarget {
        name: format!("{name}-Target"),
        rule: super::own::<CloudwatchEventRule>(&name),
        arn: super::own::<SqsQueue>(names::queue(&full.name)),
    };
    let rule = CloudwatchEventRule {
        event_pattern,
        tags: tags(full, &name),
        name,
    };
    [rule.into(), target.into()]
}
