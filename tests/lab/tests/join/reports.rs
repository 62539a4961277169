//! Boot reports, as they lie in the state store.

use super::{CLUSTER, PATIENCE};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use model::report::{BootReport, report_key};
use serde_json::json;
use std::fmt::Write;

/// Key in the store of something that the cluster has there.
pub fn key(of: &str) -> String {
    format!("{CLUSTER}/{of}")
}

/// What lies under a key of the store.
pub fn object(lab: &Lab, key: &str) -> Result<String> {
    let asked = json!({"Bucket": lab.bucket(), "Key": key});
    let got = lab.aws("s3", "GetObject", &asked)?;
    Ok(got["Body"].as_str().context("a body")?.to_owned())
}

/// The report of a machine's last run.
pub fn last(lab: &Lab, id: &str) -> Result<BootReport> {
    let text = object(lab, &key(&report_key(id)))?;
    serde_json::from_str(&text).with_context(|| text.clone())
}

/// Waits for a report without an error.
pub fn told(lab: &Lab, id: &str) -> Result<BootReport> {
    after(lab, id, "")
}

/// Waits for that of a later run than the one that began at `before`.
pub fn after(lab: &Lab, id: &str, before: &str) -> Result<BootReport> {
    lab.until(&format!("{id} reports"), PATIENCE, |lab| {
        let report = last(lab, id)?;
        ensure!(report.started != before, "the last run is that of {before}");
        ensure!(report.error.is_none(), "{:?}", report.error);
        Ok(report)
    })
}

/// Seconds of its stages.
pub fn figures(report: &BootReport) -> String {
    let mut text = format!("{} {}:", report.instance, report.group);
    for stage in &report.stages {
        // A String takes all that is written to it.
        let _ = write!(text, " {} {:.1} s,", stage.name, stage.seconds);
    }
    let _ = write!(text, " {} changes", report.changes);
    text
}
