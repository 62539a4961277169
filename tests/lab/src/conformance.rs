//! Kubernetes' conformance tests, run in the operator's place against the cluster of a lab. Their results are the files that the CNCF asks
//! for: `junit_01.xml` and `e2e.log`. See docs/lab/conformance.md.

mod results;

pub use results::Results;

use crate::daemon::LabAddresses;
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use crate::operator;
use crate::process::Process;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

/// Run Kubernetes' conformance tests against the cluster of the operator's kubeconfig
///
/// Needs `lab up --conformance`. Example: lab conformance --parallel 4
#[derive(Debug, Clone, Args)]
pub struct Conformance {
    /// Only tests whose name matches
    #[arg(long, value_name = "REGEX", default_value = r"\[Conformance\]")]
    pub focus: String,
    /// No test whose name matches
    #[arg(long, value_name = "REGEX")]
    pub skip: Option<String>,
    /// Only the tests that a file names, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "focus")]
    pub tests: Option<PathBuf>,
    /// How many tests run at once; serial ones run alone after the others
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub parallel: u64,
    /// Do not wait until all Nodes and all pods of kube-system are Ready, neither before the tests nor after each
    #[arg(long)]
    pub allow_not_ready: bool,
    /// Select the tests and run none
    #[arg(long)]
    pub dry_run: bool,
    /// Folder of the results, made if it is not there
    #[arg(long, value_name = "DIR", default_value = "conformance")]
    pub output: PathBuf,
}

impl Conformance {
    /// Runs the tests and shows how they ended; fails if one of them failed.
    pub fn run(
        &self,
        place: &LabPaths,
        up: &LabAddresses,
        out: &mut dyn Write,
    ) -> Result<ExitCode> {
        let folder = self.output.display();
        writeln!(out, "{folder}/e2e.log shows how far it is")?;
        let results = self.run_tests(place, up)?;
        writeln!(out, "{results}\nthe report is {folder}/junit_01.xml")?;
        Ok(if results.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    /// Runs the tests. Tests that failed are results; an error is a run that has none, or not of all tests that were asked for.
    pub fn run_tests(&self, place: &LabPaths, up: &LabAddresses) -> Result<Results> {
        let program = up.tools.as_ref().map(|tools| tools.join("e2e.test"));
        let program = program.filter(|program| program.is_file());
        let program = program.context(
            "the lab serves no conformance tests: it has to be begun by `lab up --conformance`",
        )?;
        let names = self.tests.as_deref().map(read_names).transpose()?;
        let making = || format!("making {}", self.output.display());
        fs::create_dir_all(&self.output).with_context(making)?;
        let folder = self.output.canonicalize().with_context(making)?;
        let log = folder.join("e2e.log");
        let file = fs::File::create(&log).with_context(|| format!("making {}", log.display()))?;
        results::remove_earlier(&folder)?;
        let words = self.ginkgo_words(names.as_deref(), &program, &folder);
        let mut child = operator::operator_command(place, up, &words)?
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("starting ginkgo")?;
        Ledger::open(place)
            .context("opening the ledger")?
            .record(&LedgerEntry::Process(Process::from_pid(child.id())?))?;
        let status = child.wait().context("waiting for ginkgo")?;
        let without = || format!("ginkgo ended with {status}: see {}", log.display());
        let results = Results::read_from(&folder).with_context(without)?;
        ensure!(
            status.success() || !results.failed.is_empty(),
            "no test failed, but {}",
            without()
        );
        if let Some(names) = names {
            ensure!(
                results.count() == names.len(),
                "{} tests were named, and of these {results}\nsee {}",
                names.len(),
                log.display()
            );
        }
        Ok(results)
    }

    /// As the conformance image of Kubernetes starts it. The kubeconfig is in the environment.
    fn ginkgo_words(&self, names: Option<&[String]>, program: &Path, folder: &Path) -> Vec<String> {
        // It refuses to select tests with several processes.
        let processes = if self.dry_run { 1 } else { self.parallel };
        let focus = names.map_or_else(|| self.focus.clone(), matching_any);
        let mut words = vec![
            "ginkgo".to_owned(),
            format!("--procs={processes}"),
            format!("--focus={focus}"),
            "--timeout=24h".to_owned(),
            "--no-color=true".to_owned(),
        ];
        words.extend(self.skip.iter().map(|skip| format!("--skip={skip}")));
        if self.dry_run {
            words.push("--dry-run=true".to_owned());
        }
        words.extend([
            program.display().to_string(),
            "--".to_owned(),
            "--provider=skeleton".to_owned(),
            "--disable-log-dump".to_owned(),
            "--report-complete-ginkgo".to_owned(),
            format!("--report-dir={}", folder.display()),
        ]);
        if self.allow_not_ready {
            words.push("--allowed-not-ready-nodes=-1".to_owned());
        }
        words
    }
}

/// The names in a file of tests, one a line; lines that begin with # say why.
pub fn read_names(file: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let lines = text.lines().map(str::trim);
    let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let names: Vec<_> = names.map(str::to_owned).collect();
    // An empty expression would select every test of Kubernetes.
    ensure!(!names.is_empty(), "{} names no test", file.display());
    Ok(names)
}

/// An expression that matches these names.
fn matching_any(names: &[String]) -> String {
    let literal = |name: &String| {
        let mut literal = String::new();
        for one in name.chars() {
            if one.is_ascii_punctuation() {
                literal.push('\\');
            }
            literal.push(one);
        }
        literal
    };
    names.iter().map(literal).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::matching_any;

    #[test]
    fn names_are_matched_literally() {
        let names = ["[sig-cli] Kubectl logs (a|b)".to_owned(), "two".to_owned()];
        assert_eq!(
            matching_any(&names),
            r"\[sig\-cli\] Kubectl logs \(a\|b\)|two"
        );
    }
}
