//! What an Auto Scaling group has tried: why it has fewer instances than it wants is written there and nowhere else.

use crate::CloudClients;
use aws_client::failure::Classify;
use aws_sdk_autoscaling::types::{Activity, ScalingActivityStatusCode};
use engine::Failure;
use fleet::LaunchFailure;

/// Newest activities to look at; launches alternate with little else while a group lacks instances.
const RECENT: i32 = 20;

/// Why a group's newest launch failed; `None`: it did not. One call; for groups that lack instances only.
pub async fn last_launch_failure(
    clients: &CloudClients,
    scaling_group: &str,
) -> Result<Option<LaunchFailure>, Failure> {
    let call = clients.autoscaling.describe_scaling_activities();
    let call = call
        .auto_scaling_group_name(scaling_group)
        .max_records(RECENT);
    let answer = call.send().await;
    let answer = answer.classify_call("autoscaling:DescribeScalingActivities")?;
    Ok(newest_launch(&answer.activities.unwrap_or_default()))
}

/// Activities come newest first. A launch under way says nothing yet.
fn newest_launch(activities: &[Activity]) -> Option<LaunchFailure> {
    let launches = activities.iter().filter(|one| {
        let what = one.description().unwrap_or_default();
        what.starts_with("Launching") || what.starts_with("Starting")
    });
    let mut ended = launches.filter(|one| one.end_time().is_some());
    let newest = ended.next()?;
    match newest.status_code()? {
        ScalingActivityStatusCode::Failed | ScalingActivityStatusCode::Cancelled => {
            let message = newest.status_message().or(newest.cause());
            Some(LaunchFailure {
                message: message.unwrap_or_default().to_owned(),
                at: newest.end_time().map(aws_smithy_types::DateTime::secs),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_smithy_types::DateTime;

    fn sample_activity(what: &str, ended: bool, status: ScalingActivityStatusCode) -> Activity {
        Activity::builder()
            .activity_id("1")
            .auto_scaling_group_name("g")
            .cause("a change of capacity")
            .description(format!("{what} EC2 instance: i-1"))
            .start_time(DateTime::from_secs(1))
            .set_end_time(ended.then(|| DateTime::from_secs(2)))
            .status_code(status)
            .status_message("no capacity")
            .build()
    }

    #[test]
    fn the_newest_launch_that_ended_decides() {
        use ScalingActivityStatusCode::{Failed, InProgress, Successful};
        let failed = sample_activity("Launching a new", true, Failed);
        let good = sample_activity("Launching a new", true, Successful);
        let begun = sample_activity("Launching a new", false, InProgress);
        let other = sample_activity("Terminating", true, Successful);
        let why = |all: &[Activity]| newest_launch(all).map(|failure| failure.message);
        let begun_again = [begun, other, failed.clone(), good.clone()];
        assert_eq!(why(&begun_again).as_deref(), Some("no capacity"));
        assert_eq!(why(&[good, failed]), None);
        assert_eq!(why(&[]), None);
    }
}
