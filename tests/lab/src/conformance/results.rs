//! How conformance tests ended, as ginkgo reports it.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fmt;
use std::fs;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The result of a run. Tests that were not selected are not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Results {
    pub passed: usize,
    /// When each test that passed began.
    pub began: Vec<OffsetDateTime>,
    /// Names of the tests that failed, and of what else did, such as the preparation of all tests.
    pub failed: Vec<String>,
    /// Names of the tests that found that they cannot run here.
    pub skipped: Vec<String>,
    /// Of the whole run.
    pub seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    spec_reports: Vec<Spec>,
    /// Nanoseconds.
    run_time: u64,
}

/// A test or another step of a run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    start_time: String,
    num_attempts: u64,
}

impl Spec {
    fn name(&self) -> String {
        let mut words = self.container_hierarchy_texts.clone().unwrap_or_default();
        words.push(self.leaf_node_text.clone());
        let name = words.join(" ").trim().to_owned();
        if name.is_empty() {
            return self.leaf_node_type.clone();
        }
        name
    }
}

impl Results {
    /// What a run wrote to its folder.
    pub fn read_from(folder: &Path) -> Result<Self> {
        let path = report_file(folder);
        let reading = || format!("reading {}", path.display());
        let file = fs::File::open(&path).with_context(reading)?;
        let reports: Vec<Report> =
            serde_json::from_reader(BufReader::new(file)).with_context(reading)?;
        let mut results = Self::default();
        for report in reports {
            results.seconds += report.run_time / 1_000_000_000;
            for spec in report.spec_reports {
                results.add_spec(&spec).with_context(reading)?;
            }
        }
        Ok(results)
    }

    fn add_spec(&mut self, spec: &Spec) -> Result<()> {
        match spec.state.as_str() {
            "passed" if spec.leaf_node_type == "It" => {
                let began = OffsetDateTime::parse(&spec.start_time, &Rfc3339)
                    .with_context(|| format!("{:?} is no time", spec.start_time))?;
                self.began.push(began);
                self.passed += 1;
            }
            // Tests that were not selected are skipped too, without having begun.
            "skipped" if spec.num_attempts > 0 => self.skipped.push(spec.name()),
            "passed" | "skipped" | "pending" => {}
            _ => self.failed.push(spec.name()),
        }
        Ok(())
    }

    /// All tests that were selected.
    pub fn count(&self) -> usize {
        self.passed + self.failed.len() + self.skipped.len()
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failed, skipped) = (self.failed.len(), self.skipped.len());
        write!(
            f,
            "{} passed, {failed} failed, {skipped} skipped in {} s",
            self.passed, self.seconds
        )?;
        for name in &self.failed {
            write!(f, "\nFAILED {name}")?;
        }
        for name in &self.skipped {
            write!(f, "\nskipped {name}")?;
        }
        Ok(())
    }
}

/// Removes the report of an earlier run: it would be read if the next one wrote none.
pub fn remove_earlier(folder: &Path) -> Result<()> {
    let path = report_file(folder);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Where e2e.test writes ginkgo's own report: the JUnit report does not tell tests that skipped themselves from those that were not
/// selected, and not when a test began.
fn report_file(folder: &Path) -> PathBuf {
    folder.join("ginkgo/report.json")
}

#[cfg(test)]
mod tests {
    use super::{Results, remove_earlier, report_file};
    use time::macros::datetime;

    const REPORT: &str = r#"[{"SuitePath": "/", "RunTime": 12500000000, "SpecReports": [
        {"ContainerHierarchyTexts": null, "LeafNodeType": "SynchronizedBeforeSuite", "LeafNodeText": "", "State": "passed", "StartTime": "2026-11-30T20:59:00+01:00", "NumAttempts": 1},
        {"ContainerHierarchyTexts": ["[sig-cli] Kubectl", "logs"], "LeafNodeType": "It", "LeafNodeText": "work", "State": "passed", "StartTime": "2026-11-30T21:00:00.250000000+01:00", "NumAttempts": 1},
        {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "run", "State": "timedout", "StartTime": "2026-11-30T21:00:01+01:00", "NumAttempts": 1},
        {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "fly", "State": "skipped", "StartTime": "2026-11-30T21:00:02+01:00", "NumAttempts": 1},
        {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "swim", "State": "skipped", "StartTime": "0001-01-01T00:00:00Z", "NumAttempts": 0}
    ]}]"#;

    #[test]
    fn tests_that_were_not_selected_are_not_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = report_file(folder.path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, REPORT).unwrap();
        let results = Results::read_from(folder.path()).unwrap();
        assert_eq!(results.passed, 1);
        assert_eq!(results.began, [datetime!(2026-11-30 20:00:00.25 UTC)]);
        assert_eq!(results.failed, ["[sig-node] Pods run"]);
        assert_eq!(results.skipped, ["[sig-node] Pods fly"]);
        assert_eq!((results.count(), results.seconds), (3, 12));
        remove_earlier(folder.path()).unwrap();
        remove_earlier(folder.path()).unwrap();
        assert!(Results::read_from(folder.path()).is_err());
    }
}
