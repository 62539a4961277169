//! What a machine says of its start: one line per stage while it runs, and a report at the end, so that operators learn
//! why one has not joined.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The format of reports.
pub const REPORT_FORMAT: u32 = 1;

/// What a line says at most, in characters: journald cuts longer ones, and half a line of JSON is none.
const DETAIL: usize = 4000;

/// Changes that a report names at most: a first boot makes some hundred.
const NAMED: usize = 20;

/// How much of a change's name a report has at most, in characters: users' files may have long paths.
const NAME: usize = 120;

/// How far a stage came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It began.
    Started,
    /// It ended well.
    Finished,
    /// It ended with an error, or an attempt of it did.
    Failed,
}

/// One line on the serial console, as JSON; user data, nodeup and protokube write the same form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageLine {
    /// RFC 3339.
    pub time: String,
    /// `user-data`, `nodeup`, `protokube`.
    pub source: String,
    /// `identify`, `fetch`, ...
    pub stage: String,
    /// How far it came.
    pub status: Status,
    /// How long it took; user data does not say.
    #[serde(default)]
    pub seconds: f64,
    /// The error with its causes, or empty.
    #[serde(default)]
    pub detail: String,
}

impl StageLine {
    /// A line of that time, which nothing took any time for yet. A detail that is too long is cut.
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

/// One run of nodeup. Fields that a reader does not know are passed over: the machine may be of a newer release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootReport {
    /// [`REPORT_FORMAT`].
    pub format: u32,
    /// `i-...`.
    pub instance: String,
    /// The cluster's name.
    pub cluster: String,
    /// The instance group's name.
    pub group: String,
    /// nodeup's version.
    pub release: String,
    /// sha256 (hex) of the NodeConfig.
    pub node_config: String,
    /// When this run began, RFC 3339.
    pub started: String,
    /// Stages in their order, each once.
    pub stages: Vec<Stage>,
    /// How many changes this run made, however it ended.
    pub changes: usize,
    /// The first of them, by name: `file//etc/hosts`, `unit/kubelet.service`. Empty in reports of older releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The last error, with its causes; none once all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A stage of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// `identify`, `fetch`, `verify`, `build`, `apply`, `report`.
    pub name: String,
    /// How far it came.
    pub status: Status,
    /// How long it took so far.
    pub seconds: f64,
}

/// As many of these names as a report has.
pub fn named(changes: &BTreeSet<String>) -> Vec<String> {
    let short = |name: &String| name.chars().take(NAME).collect();
    changes.iter().take(NAMED).map(short).collect()
}

/// What was changed in one line: `3 changes: file//etc/hosts, unit/kubelet.service and 1 more`.
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

/// Key of a machine's boot report, relative to the cluster's base in the state store.
pub fn report_key(instance: &str) -> String {
    format!("nodes/{instance}.json")
}

/// The stage lines in the text of a console, in their order; whatever else is there is passed over.
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
        let named = named(&changes);
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
