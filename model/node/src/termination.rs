//! What AWS announces before it ends an instance, in the form in which EventBridge delivers it, and what protokube does then.

use crate::config::{Rebalance, Termination};
use crate::names;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Seconds for which Auto Scaling waits for the hook, and for which the queue keeps messages.
pub const HOOK_SECONDS: i32 = 300;

/// Time between the warning of a spot interruption and the interruption
/// (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html>).
const SPOT_WARNING: Duration = Duration::seconds(120);

/// Time of the last attempts before an instance ends.
const MARGIN: Duration = Duration::seconds(20);

/// An announcement about one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Id of the event.
    pub event: String,
    /// `i-...`.
    pub instance: String,
    pub time: OffsetDateTime,
    pub cause: Cause,
}

/// Why an instance ends, or may end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Auto Scaling ends it and waits for a lifecycle hook.
    LifecycleHook {
        /// Name of the Auto Scaling group.
        scaling_group: String,
        hook: String,
    },
    SpotInterruption,
    RebalanceRecommendation,
    /// Maintenance of AWS: a reboot, a retirement.
    ScheduledEvent,
    /// EC2 stops or terminates it now.
    Ending,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LifecycleHook { .. } => "Auto Scaling terminates the instance",
            Self::SpotInterruption => "spot interruption",
            Self::RebalanceRecommendation => "rebalance recommendation",
            Self::ScheduledEvent => "scheduled event of AWS",
            Self::Ending => "EC2 stops or terminates the instance",
        })
    }
}

impl Cause {
    /// Key of the taint with `taintNode: true`: the keys of the node termination handler, for which pods may have tolerations.
    pub fn taint_key(&self) -> &'static str {
        match self {
            Self::LifecycleHook { .. } => "aws-node-termination-handler/asg-lifecycle-termination",
            Self::SpotInterruption => "aws-node-termination-handler/spot-itn",
            Self::RebalanceRecommendation => {
                "aws-node-termination-handler/rebalance-recommendation"
            }
            Self::ScheduledEvent => "aws-node-termination-handler/scheduled-maintenance",
            Self::Ending => "aws-node-termination-handler/ec2-instance-state-change",
        }
    }
}

/// What happens to a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    Ignore,
    /// No new pods.
    Cordon,
    /// No new pods, and its pods are evicted.
    Drain,
}

impl Announcement {
    /// What happens to the Node, by the settings of the cluster. `group`: the instance group of the instance.
    pub fn reaction(&self, settings: &Termination, group: &str) -> Reaction {
        let drain_if = |on: bool| {
            if on {
                Reaction::Drain
            } else {
                Reaction::Ignore
            }
        };
        match &self.cause {
            // A hook that somebody else has added to the group is completed by somebody else.
            Cause::LifecycleHook { hook, .. } => drain_if(*hook == names::lifecycle_hook(group)),
            Cause::SpotInterruption => drain_if(settings.spot_interruption),
            Cause::ScheduledEvent => drain_if(settings.scheduled_events),
            Cause::RebalanceRecommendation => match settings.rebalance {
                Rebalance::Ignore => Reaction::Ignore,
                Rebalance::Cordon => Reaction::Cordon,
                Rebalance::Drain => Reaction::Drain,
            },
            Cause::Ending => Reaction::Drain,
        }
    }

    /// The time at which a drain that has not ended is given up.
    pub fn deadline(&self) -> OffsetDateTime {
        let until_end = match self.cause {
            Cause::SpotInterruption => SPOT_WARNING,
            _ => Duration::seconds(HOOK_SECONDS.into()),
        };
        self.time + until_end - MARGIN
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Event {
    #[serde(default)]
    id: String,
    source: String,
    detail_type: String,
    time: String,
    detail: Value,
}

/// Why a message is not an event.
#[derive(Debug, thiserror::Error)]
#[error("a message in the queue is not an event of EventBridge: {0}")]
pub struct NotAnEvent(String);

/// The announcements in a message: none for events that announce no end, several for an event of AWS Health. The forms:
/// <https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pools-eventbridge-events.html>,
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html>,
/// <https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html>.
pub fn read_announcements(message: &str) -> Result<Vec<Announcement>, NotAnEvent> {
    let event: Event =
        serde_json::from_str(message).map_err(|error| NotAnEvent(error.to_string()))?;
    let time = OffsetDateTime::parse(&event.time, &Rfc3339);
    let time = time.map_err(|error| NotAnEvent(format!("time {:?}: {error}", event.time)))?;
    let detail = &event.detail;
    let text = |name: &str| detail[name].as_str().unwrap_or_default().to_owned();
    let (cause, instances) = match (event.source.as_str(), event.detail_type.as_str()) {
        ("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action") => (
            Cause::LifecycleHook {
                scaling_group: text("AutoScalingGroupName"),
                hook: text("LifecycleHookName"),
            },
            vec![text("EC2InstanceId")],
        ),
        ("aws.ec2", "EC2 Spot Instance Interruption Warning") => {
            (Cause::SpotInterruption, vec![text("instance-id")])
        }
        ("aws.ec2", "EC2 Instance Rebalance Recommendation") => {
            (Cause::RebalanceRecommendation, vec![text("instance-id")])
        }
        ("aws.ec2", "EC2 Instance State-change Notification")
            if ["stopping", "shutting-down"].contains(&text("state").as_str()) =>
        {
            (Cause::Ending, vec![text("instance-id")])
        }
        ("aws.health", _)
            if text("service") == "EC2" && text("eventTypeCategory") == "scheduledChange" =>
        {
            let entities = detail["affectedEntities"].as_array().into_iter().flatten();
            let ids = entities.filter_map(|entity| entity["entityValue"].as_str());
            (Cause::ScheduledEvent, ids.map(str::to_owned).collect())
        }
        _ => return Ok(Vec::new()),
    };
    Ok(instances
        .into_iter()
        .map(|instance| Announcement {
            event: event.id.clone(),
            instance,
            time,
            cause: cause.clone(),
        })
        .collect())
}

/// True if etcd and the API keep running without one control plane: more than half of the members are on others that are ready. A
/// lone control plane is never kept back: there is nothing to wait for.
pub fn others_have_quorum(members: usize, others_ready: usize) -> bool {
    members <= 1 || others_ready > members / 2
}
