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

/// How far the time of an event may be from now, seconds. The queue keeps messages for half of it.
const CURRENT_SECONDS: u64 = 600;

/// Time after an event for which AWS' other answers may not show it yet: they come from copies that may be old for seconds
/// (<https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>).
const SETTLES_WITHIN: Duration = Duration::seconds(30);

/// States of an instance that ends or has ended.
const ENDING: [&str; 4] = ["stopping", "shutting-down", "stopped", "terminated"];

/// One in so many workers may be out of service for scheduled events.
const SCHEDULED_SHARE: usize = 10;

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

/// What AWS itself says about an announced instance. Whoever may send to the queue says what he likes.
#[derive(Clone, Copy, Debug)]
pub struct SeenByAws<'a> {
    /// State in EC2: `running`, `stopping`, ...
    pub state: &'a str,
    /// True for a spot instance.
    pub spot: bool,
    /// Its Auto Scaling group, and its lifecycle state there (`InService`, `Terminating:Wait`); `None` if it is in none.
    pub scaling: Option<(&'a str, &'a str)>,
}

/// Whether AWS confirms an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    Confirmed,
    /// Its answers may be older than the event.
    NotYet,
    /// It says something else.
    Refused(String),
}

impl Announcement {
    /// True if the event is of now. An older one is over, and a later one was not sent by AWS.
    pub fn is_current(&self, now: OffsetDateTime) -> bool {
        let apart = self.time.unix_timestamp().abs_diff(now.unix_timestamp());
        apart <= CURRENT_SECONDS
    }

    /// Whether AWS confirms it. Nothing there says which instances AWS Health has announced; what scheduled events may do is limited
    /// by [`may_begin_maintenance`].
    pub fn confirm(&self, seen: SeenByAws<'_>, now: OffsetDateTime) -> Confirmation {
        let otherwise = match &self.cause {
            Cause::ScheduledEvent => return Confirmation::Confirmed,
            // An instance is a spot instance for life.
            Cause::SpotInterruption | Cause::RebalanceRecommendation if !seen.spot => {
                return Confirmation::Refused("it is no spot instance".to_owned());
            }
            Cause::SpotInterruption | Cause::RebalanceRecommendation => {
                return Confirmation::Confirmed;
            }
            Cause::Ending if ENDING.contains(&seen.state) => return Confirmation::Confirmed,
            Cause::Ending => format!("it is {}", seen.state),
            Cause::LifecycleHook { scaling_group, .. } => match seen.scaling {
                // An instance of a warm pool is `Warmed:Terminating:Wait`.
                Some((group, state))
                    if group == scaling_group && state.ends_with("Terminating:Wait") =>
                {
                    return Confirmation::Confirmed;
                }
                Some((group, state)) => format!("it is {state} in {group}"),
                None => "it is in no Auto Scaling group".to_owned(),
            },
        };
        if now < self.time.saturating_add(SETTLES_WITHIN) {
            return Confirmation::NotYet;
        }
        Confirmation::Refused(otherwise)
    }

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
        self.time.saturating_add(until_end - MARGIN)
    }
}

/// Whether one more Node may go out of service for a scheduled event: one control plane at a time, and one in ten workers, at least
/// one. `nodes`: of each Node whether it belongs to a control plane, and whether it is out of service for such an event.
pub fn may_begin_maintenance(
    control_plane: bool,
    nodes: impl IntoIterator<Item = (bool, bool)>,
) -> bool {
    let alike = nodes.into_iter().filter(|(role, _)| *role == control_plane);
    let alike: Vec<(bool, bool)> = alike.collect();
    let out = alike.iter().filter(|(_, out)| *out).count();
    let most = if control_plane {
        1
    } else {
        (alike.len() / SCHEDULED_SHARE).max(1)
    };
    out < most
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

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const NOW: OffsetDateTime = datetime!(2026-01-01 12:00 UTC);

    fn announced(cause: Cause, time: OffsetDateTime) -> Announcement {
        Announcement {
            event: "e".to_owned(),
            instance: "i-1".to_owned(),
            time,
            cause,
        }
    }

    fn hook_of(group: &str) -> Cause {
        Cause::LifecycleHook {
            scaling_group: group.to_owned(),
            hook: "nodes-NTHLifecycleHook".to_owned(),
        }
    }

    #[test]
    fn only_an_event_of_now_counts_whatever_time_a_message_has() {
        for (time, current) in [
            ("2026-01-01T12:00:00Z", true),
            ("2026-01-01T11:55:00Z", true),
            ("2026-01-01T14:00:00+02:00", true),
            ("2026-01-01T11:49:59Z", false),
            ("2026-01-01T12:10:01Z", false),
            ("9999-12-31T23:59:59Z", false),
            ("9999-12-31T23:59:59-23:59", false),
            ("0000-01-01T00:00:00+23:59", false),
        ] {
            let message = format!(
                r#"{{"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", "time": "{time}",
                    "detail": {{"instance-id": "i-1"}}}}"#
            );
            let read = read_announcements(&message).unwrap();
            assert_eq!(read[0].is_current(NOW), current, "{time}");
            // No time ends the process.
            for cause in [hook_of("a"), Cause::SpotInterruption, Cause::Ending] {
                let one = announced(cause, read[0].time);
                let seen = SeenByAws {
                    state: "running",
                    spot: false,
                    scaling: None,
                };
                let _ = (one.deadline(), one.confirm(seen, NOW));
            }
        }
    }

    #[test]
    fn aws_is_believed_and_not_the_message() {
        let (old, new) = (NOW - Duration::minutes(1), NOW - Duration::seconds(1));
        let ask = |cause: Cause, time, state, spot, scaling| {
            let seen = SeenByAws {
                state,
                spot,
                scaling,
            };
            match announced(cause, time).confirm(seen, NOW) {
                Confirmation::Confirmed => "yes".to_owned(),
                Confirmation::NotYet => "later".to_owned(),
                Confirmation::Refused(why) => why,
            }
        };
        for state in ["stopping", "shutting-down", "stopped", "terminated"] {
            assert_eq!(ask(Cause::Ending, old, state, false, None), "yes");
        }
        for state in ["running", "pending", "unheard-of"] {
            assert_eq!(ask(Cause::Ending, new, state, false, None), "later");
            let refused = format!("it is {state}");
            assert_eq!(ask(Cause::Ending, old, state, false, None), refused);
        }
        for cause in [Cause::SpotInterruption, Cause::RebalanceRecommendation] {
            assert_eq!(ask(cause.clone(), new, "running", true, None), "yes");
            let refused = "it is no spot instance";
            assert_eq!(ask(cause, new, "running", false, None), refused);
        }
        for (scaling, early, late) in [
            (Some(("a", "Terminating:Wait")), "yes", "yes"),
            (Some(("a", "Warmed:Terminating:Wait")), "yes", "yes"),
            (
                Some(("b", "Terminating:Wait")),
                "later",
                "it is Terminating:Wait in b",
            ),
            (Some(("a", "InService")), "later", "it is InService in a"),
            (
                Some(("a", "Pending:Wait")),
                "later",
                "it is Pending:Wait in a",
            ),
            (
                Some(("a", "Terminating:Proceed")),
                "later",
                "it is Terminating:Proceed in a",
            ),
            (None, "later", "it is in no Auto Scaling group"),
        ] {
            assert_eq!(ask(hook_of("a"), new, "running", false, scaling), early);
            assert_eq!(ask(hook_of("a"), old, "running", false, scaling), late);
        }
    }

    #[test]
    fn scheduled_events_take_one_control_plane_and_a_tenth_of_the_workers() {
        for (workers, out, expected) in [
            (1, 0, true),
            (1, 1, false),
            (19, 0, true),
            (19, 1, false),
            (20, 1, true),
            (20, 2, false),
            (100, 9, true),
            (100, 10, false),
        ] {
            let nodes = (0..workers).map(|number| (false, number < out));
            // Those of control planes do not count, and the other way round.
            let all = nodes.clone().chain([(true, true), (true, false)]);
            assert_eq!(may_begin_maintenance(false, all), expected, "{workers}");
            let all = nodes.chain([(true, false), (true, false), (true, false)]);
            assert!(may_begin_maintenance(true, all));
        }
        assert!(!may_begin_maintenance(true, [(true, true), (true, false)]));
    }
}
