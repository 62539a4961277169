//! Boot reports in the state store.

use super::PATIENCE;
use super::cluster::CLUSTER;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use node::report::{BootReport, report_key};
use serde_json::json;
use std::fmt::Write;

/// Key of an object of the cluster in the state store.
pub fn store_key(of: &str) -> String {
    format!("{CLUSTER}/{of}")
}

/// Reads an object of the state store.
pub fn read_object(lab: &Lab, key: &str) -> Result<String> {
    let asked = json!({"Bucket": lab.store_bucket(), "Key": key});
    let got = lab.call_aws("s3", "GetObject", &asked)?;
    Ok(got["Body"].as_str().context("a body")?.to_owned())
}

/// The report of nodeup's last run on an instance.
pub fn read_report(lab: &Lab, id: &str) -> Result<BootReport> {
    let text = read_object(lab, &store_key(&report_key(id)))?;
    serde_json::from_str(&text).with_context(|| text.clone())
}

/// Waits for a report without an error.
pub fn wait_for_report(lab: &Lab, id: &str) -> Result<BootReport> {
    wait_for_later_report(lab, id, "")
}

/// Waits for the report, without an error, of another run than the one that started at `before`.
pub fn wait_for_later_report(lab: &Lab, id: &str, before: &str) -> Result<BootReport> {
    lab.wait_until(&format!("{id} reports"), PATIENCE, |lab| {
        let report = read_report(lab, id)?;
        ensure!(report.started != before, "the last run is that of {before}");
        ensure!(report.error.is_none(), "{:?}", report.error);
        Ok(report)
    })
}

/// The duration of each stage, and the number of changes.
pub fn format_figures(report: &BootReport) -> String {
    let mut text = format!("{} {}:", report.instance, report.group);
    for stage in &report.stages {
        // Writing to a String cannot fail.
        let _ = write!(text, " {} {:.1} s,", stage.name, stage.seconds);
    }
    let _ = write!(text, " {} changes", report.changes);
    text
}
