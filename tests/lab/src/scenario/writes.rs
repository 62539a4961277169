//! Continuous writes to a cluster's API, and the check that all acknowledged writes are there.

use super::Lab;
use crate::ledger::{Ledger, LedgerEntry};
use crate::operator;
use crate::process::Process;
use anyhow::{Context, Result, ensure};
use base64::Engine;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = include_str!("writes.py");

/// Bytes of a large object; etcd accepts requests up to 1.5 MiB.
const LARGE: &str = "1000000";

/// Result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The API server acknowledged the write.
    Done,
    /// The API server refused it: it has no effect.
    Refused,
    /// No answer, or a failure behind the API server: it may have had an effect.
    Unknown,
}

/// Kind of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    Create,
    Update,
    Delete,
}

/// One write. There is one writer, so attempts are in order.
#[derive(Debug, Clone, Deserialize)]
pub struct Attempt {
    /// Start of the attempt, in seconds since 1970.
    pub begun: f64,
    pub ended: f64,
    pub did: WriteKind,
    pub name: String,
    pub value: String,
    pub outcome: Outcome,
    /// Resource version after the write.
    pub version: Option<u64>,
    pub why: String,
}

/// A process that writes until this is dropped.
#[derive(Debug)]
pub struct Writer {
    child: Child,
    namespace: String,
    log: PathBuf,
}

impl Lab {
    /// Starts to write ten times a second, in a new namespace, with the kubeconfig that `kctl export kubeconfig` wrote.
    pub fn start_writer(&self, namespace: &str) -> Result<Writer> {
        let folder = self.write_client_files()?;
        self.run_kubectl(&["create", "namespace", namespace])?;
        let log = folder.join(namespace);
        let output = File::create(&log).with_context(|| format!("writing {}", log.display()))?;
        let mut command = self.writes_command(&folder, &[namespace, "write"])?;
        let child = command.stdin(Stdio::piped()).stdout(output).spawn();
        let child = child.context("starting the writer")?;
        Ledger::open(&self.place)
            .context("opening the ledger")?
            .record(&LedgerEntry::Process(Process::from_pid(child.id())?))?;
        Ok(Writer {
            child,
            namespace: namespace.to_owned(),
            log,
        })
    }

    /// Creates large objects in a namespace until three in a row fail, and returns all results.
    pub fn fill_etcd(&self, namespace: &str) -> Result<Vec<Attempt>> {
        let mut command =
            self.writes_command(&self.write_client_files()?, &[namespace, "fill", LARGE])?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting to fill etcd")?;
        // It would stop at the end of its input.
        let input = child.stdin.take();
        let output = child.wait_with_output().context("filling etcd")?;
        drop(input);
        ensure!(output.status.success(), "filling etcd: {}", output.status);
        parse_attempts(&String::from_utf8_lossy(&output.stdout))
    }

    fn writes_command(&self, folder: &Path, mode: &[&str]) -> Result<Command> {
        let said = self.read_kubeconfig()?;
        let of = |name: &str| {
            said.pointer(&format!("/clusters/0/cluster/{name}"))?
                .as_str()
        };
        let server = of("server").context("a server in the kubeconfig")?;
        let host = server.strip_prefix("https://").unwrap_or(server);
        let name = of("tls-server-name").unwrap_or(host);
        let folder = folder.display().to_string();
        let words = [&["python3", "-c", PROGRAM, &folder, server, name], mode].concat();
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        operator::operator_command(&self.place, &self.up, &words)
    }

    fn read_kubeconfig(&self) -> Result<Value> {
        let text = self.run_kubectl(&["config", "view", "--raw", "--output=json"])?;
        serde_json::from_str(&text).context("reading the kubeconfig")
    }

    /// Writes the kubeconfig's certificates to files, and returns their folder.
    fn write_client_files(&self) -> Result<PathBuf> {
        let folder = self.place.run().join("writes");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .with_context(|| format!("making {}", folder.display()))?;
        let said = self.read_kubeconfig()?;
        for (name, of) in [
            ("ca.crt", "/clusters/0/cluster/certificate-authority-data"),
            ("client.crt", "/users/0/user/client-certificate-data"),
            ("client.key", "/users/0/user/client-key-data"),
        ] {
            let data = said.pointer(of).and_then(Value::as_str);
            let data = data.with_context(|| format!("the kubeconfig has no {of}"))?;
            let data = base64::engine::general_purpose::STANDARD.decode(data)?;
            let path = folder.join(name);
            let file = File::options()
                .create(true)
                .write(true)
                .truncate(true)
                .mode(0o600)
                .open(&path);
            file.and_then(|mut file| std::io::Write::write_all(&mut file, &data))
                .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(folder)
    }
}

impl Writer {
    /// All writes until now.
    pub fn read_attempts(&self) -> Result<Vec<Attempt>> {
        let text = fs::read_to_string(&self.log);
        let text = text.with_context(|| format!("reading {}", self.log.display()))?;
        // The last line may be incomplete.
        parse_attempts(text.rsplit_once('\n').map_or("", |(whole, _)| whole))
    }

    /// Waits until a write that started after now is acknowledged.
    pub fn goes_on(&self, lab: &Lab, limit: std::time::Duration) -> Result<()> {
        let before = self.read_attempts()?.len();
        // The next one may have started before.
        let new = |all: &[Attempt]| {
            all.iter()
                .skip(before + 1)
                .any(|one| one.outcome == Outcome::Done)
        };
        lab.wait_until("writes are acknowledged", limit, |_| {
            let all = self.read_attempts()?;
            let last = all.last().context("there was no write yet")?;
            ensure!(new(&all), "the last one of {}: {last:?}", all.len());
            Ok(())
        })
    }

    /// Ends the writer, and compares the acknowledged writes with the stored data.
    pub fn check_writes(mut self, lab: &Lab) -> Result<Tally> {
        self.end_process()?;
        let there = lab.get_objects(&["configmaps", "--namespace", &self.namespace])?;
        let there = there.get("items").and_then(Value::as_array);
        let there = there.context("a list of ConfigMaps")?;
        let text = |one: &Value, of: &str| one.pointer(of)?.as_str().map(str::to_owned);
        let value = |one: &Value| Some((text(one, "/metadata/name")?, text(one, "/data/value")?));
        let there: BTreeMap<String, String> = there.iter().filter_map(value).collect();
        judge_writes(&self.read_attempts()?, &there)
    }

    fn end_process(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().context("waiting for the writer")?;
        ensure!(status.success(), "the writer ended with {status}");
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // It ends with its input. `check` reports its exit status.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn parse_attempts(text: &str) -> Result<Vec<Attempt>> {
    let line = |line: &str| serde_json::from_str(line).with_context(|| line.to_owned());
    text.lines().map(line).collect()
}

/// The longest time without an acknowledged write between two times, in seconds.
pub fn longest_gap(writes: &[Attempt], from: f64, to: f64) -> f64 {
    let done = writes.iter().filter(|one| one.outcome == Outcome::Done);
    let times = done
        .map(|one| one.ended)
        .filter(|at| (from..to).contains(at));
    let mut last = from;
    let mut longest: f64 = 0.0;
    for at in times.chain([to]) {
        longest = longest.max(at - last);
        last = at;
    }
    longest
}

/// Number of writes by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
}

/// Every acknowledged write must be there, no refused one may be, and versions must grow.
fn judge_writes(writes: &[Attempt], there: &BTreeMap<String, String>) -> Result<Tally> {
    let mut may: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
    let mut version = 0;
    for one in writes {
        let after = (one.did != WriteKind::Delete).then_some(one.value.as_str());
        let states = may.entry(&one.name).or_insert_with(|| vec![None]);
        match one.outcome {
            Outcome::Done => *states = vec![after],
            Outcome::Unknown => states.push(after),
            Outcome::Refused => {}
        }
        if one.outcome == Outcome::Done
            && let Some(new) = one.version
        {
            ensure!(new > version, "after version {version} came {one:?}");
            version = new;
        }
    }
    for (name, states) in &may {
        let now = there.get(*name).map(String::as_str);
        ensure!(
            states.contains(&now),
            "{name} is {now:?}, and may be {states:?} after {:#?}",
            writes
                .iter()
                .filter(|one| one.name == *name)
                .collect::<Vec<_>>()
        );
    }
    let foreign = there.keys().find(|name| !may.contains_key(name.as_str()));
    ensure!(foreign.is_none(), "nobody wrote {foreign:?}");
    let count = |outcome| writes.iter().filter(|one| one.outcome == outcome).count();
    Ok(Tally {
        acknowledged: count(Outcome::Done),
        refused: count(Outcome::Refused),
        unknown: count(Outcome::Unknown),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_attempt(
        did: WriteKind,
        name: &str,
        value: &str,
        outcome: Outcome,
        version: u64,
    ) -> Attempt {
        Attempt {
            begun: 0.0,
            ended: f64::from(u32::try_from(version).unwrap()),
            did,
            name: name.into(),
            value: value.into(),
            outcome,
            version: (did != WriteKind::Delete).then_some(version),
            why: String::new(),
        }
    }

    fn judge_pairs(writes: &[Attempt], there: &[(&str, &str)]) -> Result<Tally> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        judge_writes(writes, &there.iter().map(own).collect())
    }

    #[test]
    fn every_acknowledged_write_has_to_be_there_and_no_other() {
        use Outcome::{Done, Refused, Unknown};
        use WriteKind::{Create, Delete, Update};
        let made = new_attempt(Create, "a", "1", Done, 1);
        let tally = judge_pairs(std::slice::from_ref(&made), &[("a", "1")]).unwrap();
        assert_eq!((tally.acknowledged, tally.unknown), (1, 0));
        for lost in [&[][..], &[("a", "0")], &[("a", "1"), ("b", "1")]] {
            assert!(
                judge_pairs(std::slice::from_ref(&made), lost).is_err(),
                "{lost:?}"
            );
        }
        let changed = [made.clone(), new_attempt(Update, "a", "2", Done, 2)];
        assert!(judge_pairs(&changed, &[("a", "2")]).is_ok());
        assert!(judge_pairs(&changed, &[("a", "1")]).is_err());
        let deleted = [made.clone(), new_attempt(Delete, "a", "", Done, 2)];
        assert!(judge_pairs(&deleted, &[]).is_ok());
        assert!(judge_pairs(&deleted, &[("a", "1")]).is_err());
        let refused = [new_attempt(Create, "a", "1", Refused, 1)];
        assert!(judge_pairs(&refused, &[]).is_ok());
        assert!(judge_pairs(&refused, &[("a", "1")]).is_err());
        let back = [made.clone(), new_attempt(Create, "b", "1", Done, 1)];
        assert!(judge_pairs(&back, &[("a", "1"), ("b", "1")]).is_err());
        // A write without an answer may have had its effect, or none.
        let unknown = [made, new_attempt(Update, "a", "2", Unknown, 0)];
        assert!(judge_pairs(&unknown, &[("a", "1")]).is_ok());
        assert!(judge_pairs(&unknown, &[("a", "2")]).is_ok());
        assert!(judge_pairs(&unknown, &[("a", "3")]).is_err());
        assert!(judge_pairs(&unknown, &[]).is_err());
    }

    #[test]
    fn a_gap_is_the_longest_time_without_an_acknowledgement() {
        let at = |version, outcome| new_attempt(WriteKind::Create, "a", "", outcome, version);
        let writes = [
            at(1, Outcome::Done),
            at(2, Outcome::Done),
            at(4, Outcome::Unknown),
            at(7, Outcome::Done),
        ];
        for (from, to, gap) in [(0.0, 8.0, 5.0), (0.0, 20.0, 13.0), (6.0, 8.0, 1.0)] {
            assert!(
                (longest_gap(&writes, from, to) - gap).abs() < 0.01,
                "{from} {to}"
            );
        }
    }
}
