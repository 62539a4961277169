//! Clients of a cluster's API that write, read and watch without end, and the check that all they saw fits one order of writes.

use super::history::{Attempt, History, Outcome, Seen, Tally};
use super::{LIMIT, Lab};
use crate::aws_state::InstanceState;
use crate::daemon::simulator::SimulatorClient;
use crate::host::Host;
use crate::json_file;
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use crate::operator;
use crate::process::Process;
use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PROGRAM: &str = include_str!("writes.py");

/// The client of the API's public name, in the records of all.
pub const PUBLIC: &str = "public";

/// Bytes of a large object; etcd accepts requests up to 1.5 MiB.
const LARGE: &str = "1000000";

/// The tag of control planes.
const CONTROL_PLANE: &str = "k8s.io/role/control-plane";

/// Time between two looks at which control planes there are.
const PAUSE: Duration = Duration::from_millis(500);

/// Bytes at the end of the attempts that hold more than those of the last second.
const TAIL: u64 = 64 * 1024;

/// The longest time in seconds from the last acknowledgement to a fault that happens after it.
const JUST_BEFORE: f64 = 0.1;

/// A process that writes until this is dropped, as clients of the API's public name and of each API server.
#[derive(Debug)]
pub struct Writers {
    child: Child,
    attempts: PathBuf,
    seen: PathBuf,
    over: Arc<AtomicBool>,
    servers: Option<JoinHandle<Result<()>>>,
}

/// Seconds since 1970, like the times of [`Attempt`].
pub fn unix_time() -> Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}

impl Lab {
    /// Starts to write in a new namespace, with the kubeconfig that `kctl export kubeconfig` wrote: ten times a second by the public
    /// name, and three times at each API server that there is.
    pub fn start_writers(&self, namespace: &str) -> Result<Writers> {
        let folder = self.write_client_files()?;
        self.run_kubectl(&["create", "namespace", namespace])?;
        let file = folder.join("servers");
        let log = self.place.run().join("writes").display().to_string();
        let client =
            || SimulatorClient::connect_to(self.up.simulator.clone(), self.up.region.clone());
        let (client, place, over) = (
            client()?,
            self.place.clone(),
            Arc::new(AtomicBool::new(false)),
        );
        let end = over.clone();
        let servers = spawn(move || name_servers(&client, &place, &file, &end));
        let mut command = self.writes_command(&folder, &[namespace, "record", &log])?;
        let child = command.stdin(Stdio::piped()).spawn();
        let child = child.context("starting the writers")?;
        let process = Process::from_pid(child.id());
        let writers = Writers {
            child,
            attempts: format!("{log}.attempts").into(),
            seen: format!("{log}.seen").into(),
            over,
            servers: Some(servers),
        };
        Ledger::open(&self.place)
            .context("opening the ledger")?
            .record(&LedgerEntry::Process(process?))?;
        self.wait_until("writes are recorded", LIMIT, |_| {
            ensure!(!writers.last_attempts()?.is_empty(), "there is none");
            Ok(())
        })?;
        Ok(writers)
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
        parse_lines(&String::from_utf8_lossy(&output.stdout))
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
        let folder = self.place.run().join("writers");
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

impl Writers {
    /// All attempts until now.
    pub fn read_attempts(&self) -> Result<Vec<Attempt>> {
        read_lines(&self.attempts)
    }

    /// The attempts of the last second and some more.
    fn last_attempts(&self) -> Result<Vec<Attempt>> {
        let mut text = String::new();
        let mut file = match File::open(&self.attempts) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context("opening the attempts"),
        };
        let start = file.metadata()?.len().saturating_sub(TAIL);
        file.seek(SeekFrom::Start(start))?;
        file.read_to_string(&mut text).context("reading attempts")?;
        let first = if start == 0 {
            Some(text.as_str())
        } else {
            text.split_once('\n').map(|(_, rest)| rest)
        };
        parse_lines(whole_lines(first.unwrap_or_default()))
    }

    /// Waits until a write by the API's public name that started after now is acknowledged.
    pub fn goes_on(&self, lab: &Lab, limit: Duration) -> Result<()> {
        let now = unix_time()?;
        lab.wait_until("writes are acknowledged", limit, |_| {
            let last = self.last_attempts()?;
            let mut own = last.iter().filter(|one| one.client == PUBLIC);
            let new = |one: &&Attempt| one.begun > now && one.is_acknowledged();
            ensure!(
                own.clone().any(|one| new(&one)),
                "the last one: {:?}",
                own.next_back()
            );
            Ok(())
        })
    }

    /// Lets a fault happen at most 100 ms after a write was acknowledged. A machine that is busy for longer between the two looks again.
    pub fn acknowledged_just_before<T>(
        &self,
        lab: &Lab,
        fault: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let begun = loop {
            let acknowledged = self.wait_for_acknowledgement(lab)?;
            let now = unix_time()?;
            if now - acknowledged <= JUST_BEFORE {
                break now;
            }
        };
        let done = fault()?;
        let before = begun - last_acknowledgement(&self.read_attempts()?, begun);
        ensure!(
            before <= JUST_BEFORE,
            "the last acknowledgement was {before:.3} s before the fault"
        );
        Ok(done)
    }

    /// When the last write was acknowledged, once that is a moment ago.
    fn wait_for_acknowledgement(&self, lab: &Lab) -> Result<f64> {
        lab.wait_until("a write is acknowledged", LIMIT, |_| {
            for _ in 0..100 {
                // The clock is read last: reading the file takes long on a busy machine.
                let attempts = self.last_attempts()?;
                let now = unix_time()?;
                let acknowledged = last_acknowledgement(&attempts, now);
                if now - acknowledged < JUST_BEFORE / 2.0 {
                    return Ok(acknowledged);
                }
                sleep(Duration::from_millis(2));
            }
            bail!("the last attempt: {:?}", self.last_attempts()?.last())
        })
    }

    /// Ends the writers. What they did and saw must fit one order of writes.
    pub fn check_history(self) -> Result<Tally> {
        let files = format!("{}, {}", self.attempts.display(), self.seen.display());
        self.end()?.judge().with_context(|| files)
    }

    /// Ends the writers, and returns what they did and saw.
    pub fn end(mut self) -> Result<History> {
        self.end_process()?;
        self.read_history()
    }

    /// Kills the writers of a cluster that is gone: nobody can list its final state. Returns what they did and saw.
    pub fn stop(mut self) -> Result<History> {
        self.child.kill().context("killing the writers")?;
        // Its error is that they were killed.
        let _ = self.end_process();
        self.read_history()
    }

    fn read_history(&self) -> Result<History> {
        Ok(History {
            attempts: self.read_attempts()?,
            seen: read_lines::<Seen>(&self.seen)?,
        })
    }

    fn end_process(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().context("waiting for the writers")?;
        self.over.store(true, Ordering::Relaxed);
        let named = self.servers.take().map(JoinHandle::join);
        match named {
            Some(Ok(named)) => named.context("naming the API servers to the writers")?,
            Some(Err(_)) => bail!("the thread that names the API servers panicked"),
            None => {}
        }
        ensure!(status.success(), "the writers ended with {status}");
        Ok(())
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        // It would wait for the final state. If it has ended, `check_history` has reported how.
        let _ = self.child.kill();
        let _ = self.end_process();
    }
}

/// Writes the address and the network namespace of each API server that runs to a file, by instance, until it is over.
fn name_servers(
    simulator: &SimulatorClient,
    place: &LabPaths,
    file: &Path,
    over: &AtomicBool,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting a runtime")?;
    while !over.load(Ordering::Relaxed) {
        let world = runtime.block_on(simulator.fetch_world(None, Duration::ZERO))?;
        let mut servers = BTreeMap::new();
        for instance in world.instances {
            let runs = instance.state == InstanceState::Running;
            if !runs || !instance.tags.contains_key(CONTROL_PLANE) {
                continue;
            }
            // A host that is off, or that is being made or removed, has no process.
            let host = Host::read_host(place, &instance.id);
            let Ok(Some(init)) = host.and_then(|host| host.init_process()) else {
                continue;
            };
            let network = format!("/proc/{}/ns/net", init.pid);
            let server = json!({"address": instance.address, "network": network});
            servers.insert(instance.id, server);
        }
        json_file::write_json(file, &servers)?;
        sleep(PAUSE);
    }
    Ok(())
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("reading {}", path.display()))?;
    parse_lines(whole_lines(&text))
}

/// The last line may be incomplete.
fn whole_lines(text: &str) -> &str {
    text.rsplit_once('\n').map_or("", |(whole, _)| whole)
}

fn parse_lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>> {
    let line = |line: &str| serde_json::from_str(line).with_context(|| line.to_owned());
    text.lines().map(line).collect()
}

/// When the last write until then was acknowledged.
fn last_acknowledgement(attempts: &[Attempt], until: f64) -> f64 {
    let done = attempts.iter().filter(|one| one.is_acknowledged());
    let times = done.map(|one| one.ended).filter(|at| *at <= until);
    times.fold(0.0, f64::max)
}

/// The longest time without an acknowledged write of a client between two times, in seconds.
pub fn longest_gap(attempts: &[Attempt], client: &str, from: f64, to: f64) -> f64 {
    let done = attempts
        .iter()
        .filter(|one| one.client == client && one.is_acknowledged());
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

/// The longest gap by the API's public name, and that at each server, from its first acknowledgement to its last attempt.
pub fn describe_gaps(attempts: &[Attempt], from: f64, to: f64) -> String {
    let public = longest_gap(attempts, PUBLIC, from, to);
    let mut servers: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for one in attempts {
        if one.client == PUBLIC || !(from..to).contains(&one.begun) {
            continue;
        }
        if one.is_acknowledged() {
            servers.entry(&one.client).or_insert((one.begun, one.begun));
        }
        if let Some(life) = servers.get_mut(one.client.as_str()) {
            life.1 = one.ended.min(to);
        }
    }
    let gap = |(client, (first, last)): (&&str, &(f64, f64))| {
        format!(
            "{:.1} s at {client}",
            longest_gap(attempts, client, *first, *last)
        )
    };
    let servers: Vec<String> = servers.iter().map(gap).collect();
    format!(
        "the longest gap in writes: {public:.1} s ({})",
        servers.join(", ")
    )
}

/// Writes by the API's public name that were not acknowledged.
pub fn count_failures(attempts: &[Attempt]) -> usize {
    let failed =
        |one: &&Attempt| one.client == PUBLIC && one.is_write() && one.outcome != Outcome::Done;
    attempts.iter().filter(failed).count()
}

#[cfg(test)]
mod tests {
    use super::super::history::AttemptKind;
    use super::*;

    #[test]
    fn a_gap_is_the_longest_time_without_an_acknowledgement() {
        let at = |client: &str, ended: f64, outcome| Attempt {
            client: client.to_owned(),
            begun: ended,
            ended,
            did: AttemptKind::Create,
            name: "a".to_owned(),
            value: String::new(),
            expected: None,
            outcome,
            version: None,
            why: String::new(),
        };
        let read = Attempt {
            did: AttemptKind::Read,
            ..at(PUBLIC, 6.0, Outcome::Done)
        };
        let attempts = [
            at(PUBLIC, 1.0, Outcome::Done),
            at(PUBLIC, 2.0, Outcome::Done),
            at(PUBLIC, 4.0, Outcome::Unknown),
            at("i-1", 4.0, Outcome::Done),
            read,
            at("i-1", 6.5, Outcome::Done),
            at(PUBLIC, 7.0, Outcome::Done),
        ];
        for (from, to, gap) in [(0.0, 8.0, 5.0), (0.0, 20.0, 13.0), (6.0, 8.0, 1.0)] {
            let found = longest_gap(&attempts, PUBLIC, from, to);
            assert!((found - gap).abs() < 0.01, "{from} {to}");
        }
        assert_eq!(
            describe_gaps(&attempts, 0.0, 8.0),
            "the longest gap in writes: 5.0 s (2.5 s at i-1)"
        );
        assert_eq!(count_failures(&attempts), 1);
    }
}
