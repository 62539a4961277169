//! Reports of an instance's boot: one line per stage on the console, and a boot report at the end, so that operators learn why an
//! instance has not joined.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Format of boot reports.
pub const REPORT_FORMAT: u32 = 1;

/// The `source` of protokube's stage lines, and the first part of its stages' names.
pub const PROTOKUBE: &str = "protokube";

/// Limit of a line's detail, characters. journald cuts longer lines, and truncated JSON cannot be parsed.
const DETAIL: usize = 4000;

/// Limit of named changes in a report. A first boot makes about a hundred.
const NAMED: usize = 20;

/// Limit of a change's name in a report, characters. Files from the spec may have long paths.
const NAME: usize = 120;

/// Status of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The stage began, or continues with a note.
    Started,
    Finished,
    /// The stage or one of its attempts failed.
    Failed,
}

/// A line on the serial console, as JSON. User data, nodeup and protokube write the same format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageLine {
    /// Time, RFC 3339.
    pub time: String,
    /// Program: `user-data`, `nodeup`, `protokube`.
    pub source: String,
    /// Name of the stage: `identify`, `fetch`, ...
    pub stage: String,
    /// Status of the stage.
    pub status: Status,
    /// Duration so far in seconds; user data does not set it.
    #[serde(default)]
    pub seconds: f64,
    /// The error with its causes, or empty.
    #[serde(default)]
    pub detail: String,
}

impl StageLine {
    /// A line with this time and a duration of zero. A detail longer than the limit is cut.
    pub fn new(
        time: OffsetDateTime,
        source: &str,
        stage: &str,
        status: Status,
        detail: &str,
    ) -> Self {
        Self {
            time: time.format(&Rfc3339).unwrap_or_default(),
            source: source.to_owned(),
            stage: stage.to_owned(),
            status,
            seconds: 0.0,
            detail: detail.chars().take(DETAIL).collect(),
        }
    }
}

/// The report of one nodeup run. Unknown fields are ignored, because the instance may have a newer release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootReport {
    /// [`REPORT_FORMAT`].
    pub format: u32,
    /// Instance id, `i-...`.
    pub instance: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the instance group.
    pub group: String,
    pub release: String,
    /// True if nodeup's cryptography is AWS-LC's FIPS module. False in reports of releases that had none.
    #[serde(default)]
    pub fips: bool,
    /// sha256 (hex) of the NodeConfig.
    pub node_config: String,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Stages in order, each once.
    pub stages: Vec<Stage>,
    /// Number of changes that the run made, even if it failed.
    pub changes: usize,
    /// Ids of the first changes: `file//etc/hosts`, `unit/kubelet.service`. Empty in reports of older releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The error that ended the run, with its causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A stage of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// `identify`, `fetch`, `verify`, `build`, `apply`, `report`.
    pub name: String,
    /// Status of the stage.
    pub status: Status,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The first changes, shortened, as many as a report may name.
pub fn first_changes(changes: &BTreeSet<String>) -> Vec<String> {
    let short = |name: &String| name.chars().take(NAME).collect();
    changes.iter().take(NAMED).map(short).collect()
}

/// Summarizes changes in one line: `3 changes: file//etc/hosts, unit/kubelet.service and 1 more`.
pub fn changed_line(changes: usize, changed: &[String]) -> String {
    let count = match changes {
        0 => return "no changes".to_owned(),
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    };
    let names = changed.join(", ");
    match changes.saturating_sub(changed.len()) {
        0 => format!("{count}: {names}"),
        // A report of an older release names none.
        _ if changed.is_empty() => count,
        more => format!("{count}: {names} and {more} more"),
    }
}

/// Key of an instance's boot report, relative to the cluster's base in the state store.
pub fn report_key(instance: &str) -> String {
    format!("nodes/{instance}.json")
}

/// Parses the stage lines in the text of a console, in order. Other lines are ignored.
pub fn stage_lines(console: &str) -> Vec<StageLine> {
    let lines = console.lines().filter_map(|line| {
        let json = line.get(line.find("{\"")?..)?;
        serde_json::from_str(json.trim_end()).ok()
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_enough_for_the_journal_and_is_read_back() {
        let long = "ü".repeat(DETAIL + 1);
        let now = OffsetDateTime::UNIX_EPOCH;
        let line = StageLine::new(now, "nodeup", "apply", Status::Failed, &long);
        assert_eq!(line.detail.chars().count(), DETAIL);
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(stage_lines(&text), [line]);
    }

    #[test]
    fn changes_are_named_as_far_as_a_report_has_room() {
        let changes: BTreeSet<String> = (0..NAMED + 5)
            .map(|index| format!("file//{index:03}/{}", "long/".repeat(1000)))
            .collect();
        let named = first_changes(&changes);
        assert_eq!(named.len(), NAMED);
        assert!(named.iter().all(|name| name.chars().count() == NAME));
        let line = |changes, changed: &[&str]| {
            let changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
            changed_line(changes, &changed)
        };
        assert_eq!(line(0, &[]), "no changes");
        assert_eq!(line(1, &["file//a"]), "1 change: file//a");
        assert_eq!(
            line(3, &["file//a", "unit/b"]),
            "3 changes: file//a, unit/b and 1 more"
        );
        assert_eq!(line(3, &[]), "3 changes");
    }

    #[test]
    fn reports_of_older_and_newer_releases_are_read() {
        let report = r#"{"format":1,"instance":"i-1","cluster":"a","group":"b","release":"9","nodeConfig":"",
            "started":"t","stages":[{"name":"apply","status":"finished","seconds":1,"new":1}],"changes":3,"new":[]}"#;
        let report: BootReport = serde_json::from_str(report).unwrap();
        assert_eq!((report.changes, report.changed.len()), (3, 0));
        assert!(!report.fips);
    }

    #[test]
    fn stage_lines_are_found_among_everything_else() {
        let console = "[ 1.0] booting {\n[ 5.1] cloud-init: {\"time\":\"t\",\"source\":\"user-data\",\"stage\":\"fetch\",\"status\":\"failed\",\"detail\":\"wrong sha256\"}\r\nlogin:";
        let lines = stage_lines(console);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].status, Status::Failed);
        assert_eq!(lines[0].detail, "wrong sha256");
    }
}
