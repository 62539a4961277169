//! Whether a chart is installed: from the HelmChart, the job in which helm runs, and the job's pods.

use serde_json::Value;

/// Longest reason that is shown, characters.
const LONGEST: usize = 300;

/// The job of a chart, and its pods, as the cluster has them.
#[derive(Clone, Debug, Default)]
pub struct ChartJob {
    pub job: Option<Value>,
    pub pods: Vec<Value>,
}

/// What keeps a chart from being installed.
pub fn find_chart_problem(chart: &Value, job: &ChartJob) -> Option<String> {
    let message = failure_of_pods(&job.pods);
    let said = |message: Option<String>| message.map_or(String::new(), |text| format!(": {text}"));
    if let Some(failed) = met_condition(chart, "Failed") {
        let why = failed["message"].as_str().filter(|text| !text.is_empty());
        let message = message.or_else(|| why.map(str::to_owned));
        return Some(format!("helm failed{}", said(message)));
    }
    let Some(job) = &job.job else {
        return Some("is not installed yet: helm-controller has not made its job".to_owned());
    };
    if met_condition(job, "Complete").is_some() {
        return None;
    }
    if met_condition(job, "Failed").is_some() || message.is_some() {
        return Some(format!("helm fails{}", said(message)));
    }
    Some("is being installed".to_owned())
}

fn met_condition<'a>(object: &'a Value, wanted: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    conditions.find(|one| one["type"] == wanted && one["status"] == "True")
}

/// What the newest pod in which helm failed has said: the end of it, on one line.
fn failure_of_pods(pods: &[Value]) -> Option<String> {
    let mut failures: Vec<(&str, &Value)> = pods.iter().filter_map(failure_of_pod).collect();
    failures.sort_by_key(|(finished, _)| *finished);
    let (_, ended) = failures.pop()?;
    let said = ended["message"].as_str().unwrap_or_default();
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    // Errors of helm begin so; what comes before is what it did.
    let from = lines
        .iter()
        .rposition(|line| line.starts_with("Error"))
        .unwrap_or(lines.len().saturating_sub(1));
    let text = lines.get(from..).unwrap_or_default().join(" ");
    let text = if text.is_empty() {
        format!("the job's pod ended with exit code {}", ended["exitCode"])
    } else {
        text
    };
    Some(
        text.chars()
            .filter(|char| !char.is_control())
            .take(LONGEST)
            .collect(),
    )
}

/// When helm failed in a pod for the last time, and how.
fn failure_of_pod(pod: &Value) -> Option<(&str, &Value)> {
    let states = pod.pointer("/status/containerStatuses/0")?;
    let ended = ["/state/terminated", "/lastState/terminated"];
    let ended = ended.into_iter().find_map(|at| states.pointer(at))?;
    if ended["exitCode"] == 0 {
        return None;
    }
    Some((ended["finishedAt"].as_str().unwrap_or_default(), ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(finished: &str, code: i32, message: &str) -> Value {
        json!({"status": {"containerStatuses": [{"state": {"waiting": {}}, "lastState": {"terminated": {
            "exitCode": code, "finishedAt": finished, "message": message}}}]}})
    }

    fn condition(kind: &str, message: &str) -> Value {
        json!({"status": {"conditions": [{"type": kind, "status": "True", "message": message}]}})
    }

    #[test]
    fn a_chart_is_installed_once_its_job_is_complete_and_what_helm_said_is_the_reason_until_then() {
        let told = |chart: &Value, job: Option<Value>, pods: &[Value]| {
            find_chart_problem(
                chart,
                &ChartJob {
                    job,
                    pods: pods.to_vec(),
                },
            )
        };
        let (none, running, complete) =
            (json!({}), json!({"status": {}}), condition("Complete", ""));
        let bad = pod(
            "2026-01-02T00:00:00Z",
            1,
            "Upgrading\nError: no kind \"x\"\nwhatever\n",
        );
        let older = pod("2026-01-01T00:00:00Z", 1, "Error: older");
        let good = pod("2026-01-03T00:00:00Z", 0, "Completed");
        assert_eq!(
            told(&none, None, &[]).unwrap(),
            "is not installed yet: helm-controller has not made its job"
        );
        assert_eq!(
            told(&none, Some(running.clone()), &[]).unwrap(),
            "is being installed"
        );
        assert_eq!(
            told(
                &none,
                Some(running.clone()),
                &[bad.clone(), older, good.clone()]
            )
            .unwrap(),
            "helm fails: Error: no kind \"x\" whatever"
        );
        assert_eq!(
            told(&none, Some(running), &[pod("", 137, "")]).unwrap(),
            "helm fails: the job's pod ended with exit code 137"
        );
        assert_eq!(
            told(&none, Some(complete.clone()), std::slice::from_ref(&bad)),
            None
        );
        let failed = condition("Failed", "Job has reached configured number of retries");
        assert_eq!(
            told(&failed, Some(complete.clone()), &[]).unwrap(),
            "helm failed: Job has reached configured number of retries"
        );
        assert_eq!(
            told(&failed, Some(complete), &[bad]).unwrap(),
            "helm failed: Error: no kind \"x\" whatever"
        );
    }
}
