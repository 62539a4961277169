//! Whether conformance tests ran while a control plane was away, by the times of AWS, of the Nodes and of the tests.

use super::super::super::cluster::CONTROL_PLANES;
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::conformance::Results;
use lab::scenario::Lab;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Tests that passed have begun after the end of one of the `old` control planes and before its replacement was a Ready Node. `old` and
/// `new` are in the order of [`CONTROL_PLANES`].
pub fn expect_tests_meanwhile(
    lab: &Lab,
    old: &[Instance],
    new: &[Instance],
    runs: &[Results],
) -> Result<()> {
    let mut all = 0;
    for ((group, old), new) in CONTROL_PLANES.iter().zip(old).zip(new) {
        let away = find_end(lab, group, &old.id)?..find_ready(lab, &new.id)?;
        let began = runs.iter().flat_map(|run| &run.began);
        let count = began.filter(|at| away.contains(*at)).count();
        eprintln!(
            "       {count} tests that passed began in the {:.0} s from the end of {} until {} was Ready",
            (away.end - away.start).as_seconds_f64(),
            old.id,
            new.id
        );
        all += count;
    }
    // Which moments of a run meet a replacement is chance: not each control plane has to have some.
    ensure!(all > 0, "no test began while a control plane was away");
    Ok(())
}

/// When Auto Scaling saw that an instance had ended.
fn find_end(lab: &Lab, group: &str, id: &str) -> Result<OffsetDateTime> {
    let asked = json!({"AutoScalingGroupName": group});
    let said = lab.call_aws("autoscaling", "DescribeScalingActivities", &asked)?;
    let all = said["Activities"].as_array().context("activities")?;
    let wanted = format!("Terminating EC2 instance: {id}");
    let activity = all
        .iter()
        .find(|one| one["Description"] == wanted.as_str())
        .with_context(|| format!("{id} was not terminated: {said}"))?;
    let end = activity["EndTime"].as_str();
    parse_time(end.with_context(|| format!("{id} has not ended: {activity}"))?)
}

/// Since when a node has been Ready.
fn find_ready(lab: &Lab, id: &str) -> Result<OffsetDateTime> {
    let node = lab.get_objects(&["node", id])?;
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .context("conditions")?
        .iter()
        .find(|one| one["type"] == "Ready" && one["status"] == "True")
        .with_context(|| format!("{id} is not Ready: {node}"))?;
    parse_time(ready["lastTransitionTime"].as_str().context("a time")?)
}

fn parse_time(time: &str) -> Result<OffsetDateTime> {
    OffsetDateTime::parse(time, &Rfc3339).with_context(|| time.to_owned())
}
