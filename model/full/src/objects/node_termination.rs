//! The SQS queue from which protokube learns of instances that AWS is about to end, and the EventBridge rules that send events to it.

use crate::{FullSpec, cluster_tags, queue_arn};
use cloud::{Cloud, CloudwatchEventRule, CloudwatchEventTarget, SqsQueue};
use node::config::Rebalance;
use node::names;
use node::termination::HOOK_SECONDS;
use serde_json::{Value, json};

pub(super) fn build_node_termination(full: &FullSpec) -> Vec<Cloud> {
    let Some(termination) = &full.node_termination else {
        return Vec::new();
    };
    let patterns = event_patterns(termination.rebalance != Rebalance::Ignore);
    let events = patterns.iter().map(|(event, _)| *event);
    let mut all = vec![sqs_queue(full, events).into()];
    for (event, pattern) in patterns {
        all.extend(event_rule(full, event, pattern));
    }
    all
}

/// The queue. Only the cluster's own rules may send to it: EventBridge is the same principal for all rules of all accounts
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html>), and in the same account an identity's own policy would
/// be enough without the Deny (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html>).
fn sqs_queue<'a>(full: &FullSpec, events: impl Iterator<Item = &'a str>) -> SqsQueue {
    let queue_name = names::queue_name(&full.name);
    let rules: Vec<String> = events.map(|event| rule_arn(full, event)).collect();
    SqsQueue {
        message_retention_period: HOOK_SECONDS,
        policy: json!({
            "Statement": [
                {
                    "Action": "sqs:SendMessage",
                    "Effect": "Allow",
                    "Condition": {
                        "StringEquals": {"aws:SourceAccount": full.placement.account},
                        "ArnEquals": {"aws:SourceArn": rules},
                    },
                    "Principal": {"Service": "events.amazonaws.com"},
                    "Resource": queue_arn(full),
                },
                {
                    "Action": "sqs:SendMessage",
                    "Effect": "Deny",
                    "Condition": {"Bool": {"aws:PrincipalIsAWSService": "false"}},
                    "Principal": "*",
                    "Resource": queue_arn(full),
                },
            ],
            "Version": crate::iam::VERSION,
        }),
        tags: cluster_tags(full, &queue_name),
        queue_name,
    }
}

/// ARN of a rule on the default bus.
fn rule_arn(full: &FullSpec, event: &str) -> String {
    let place = &full.placement;
    let name = names::event_rule(&full.name, event);
    format!(
        "arn:{}:events:{}:{}:rule/{name}",
        place.partition, place.region, place.account
    )
}

fn event_patterns(rebalance: bool) -> Vec<(&'static str, Value)> {
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

fn event_rule(full: &FullSpec, event: &str, event_pattern: Value) -> [Cloud; 2] {
    let name = names::event_rule(&full.name, event);
    let target = CloudwatchEventTarget {
        name: format!("{name}-Target"),
        rule: super::own_ref::<CloudwatchEventRule>(&name),
        arn: super::own_ref::<SqsQueue>(names::queue_name(&full.name)),
    };
    let rule = CloudwatchEventRule {
        event_pattern,
        tags: cluster_tags(full, &name),
        name,
    };
    [rule.into(), target.into()]
}
