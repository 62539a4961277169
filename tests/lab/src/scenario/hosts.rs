//! Hosts in a scenario: find them by group, wait for them, run programs in them, crash and isolate them.

use super::{LIMIT, Lab, Stage, parse_stages};
use crate::aws_state::{Instance, InstanceState};
use crate::host;
use crate::ledger::Ledger;
use crate::network::faults::{self, Partition};
use anyhow::{Context, Result, bail, ensure};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The tag that names an instance's Auto Scaling group.
const GROUP: &str = "aws:autoscaling:groupName";

/// Result of a connection from a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectResult {
    Open,
    /// The host rejected it: no packet filter dropped it.
    Refused,
    /// There was no answer within the time limit.
    Silent,
}

/// Connects to address and port within three seconds; exit code 0, 7 (refused) or 28 (no answer), like curl.
const CONNECT: &str = "\
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3)
except ConnectionRefusedError:
    sys.exit(7)
except TimeoutError:
    sys.exit(28)
";

impl Lab {
    /// The pending and running instances of an Auto Scaling group, by id.
    pub fn group_instances(&self, group: &str) -> Result<Vec<Instance>> {
        use InstanceState::{Pending, Running};
        let mut members = self.fetch_world()?.instances;
        members.retain(|one| one.tags.get(GROUP).is_some_and(|name| name == group));
        members.retain(|one| matches!(one.state, Pending | Running));
        members.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(members)
    }

    /// Waits until a group has `count` instances, all running.
    pub fn wait_for_members(&self, group: &str, count: usize) -> Result<Vec<Instance>> {
        self.wait_until(&format!("{count} of {group} run"), LIMIT, |lab| {
            let members = lab.group_instances(group)?;
            let on = |one: &Instance| one.state == InstanceState::Running;
            ensure!(
                members.len() == count && members.iter().all(on),
                "there are {:?}",
                members
                    .iter()
                    .map(|one| (&one.id, one.state))
                    .collect::<Vec<_>>()
            );
            Ok(members)
        })
    }

    /// An instance in the simulator.
    pub fn find_instance(&self, id: &str) -> Result<Instance> {
        let found = self
            .fetch_world()?
            .instances
            .into_iter()
            .find(|one| one.id == id);
        found.with_context(|| format!("AWS has no instance {id}"))
    }

    /// Waits for an instance's state.
    pub fn wait_for_instance_state(&self, id: &str, state: InstanceState) -> Result<Instance> {
        self.wait_until(&format!("{id} is {state:?}"), LIMIT, |lab| {
            let instance = lab.find_instance(id)?;
            ensure!(instance.state == state, "it is {:?}", instance.state);
            Ok(instance)
        })
    }

    /// The stages on an instance's console.
    pub fn read_stages(&self, id: &str) -> Result<Vec<Stage>> {
        Ok(parse_stages(&host::read_console(&self.place, id)?))
    }

    /// Waits for a stage, for example `nodeup fetch finished`, and returns all stages until then.
    pub fn wait_for_stage(&self, id: &str, words: &str) -> Result<Vec<Stage>> {
        self.wait_until(&format!("{id} says {words:?}"), LIMIT, |lab| {
            let mut stages = lab.read_stages(id)?;
            let at = stages.iter().position(|stage| stage.to_words() == words);
            let Some(at) = at else {
                bail!(
                    "it said {:?}",
                    stages.iter().map(Stage::to_words).collect::<Vec<_>>()
                );
            };
            stages.truncate(at + 1);
            Ok(stages)
        })
    }

    /// Runs a program in a host and returns its output. An error has its output too.
    pub fn exec_in_host(&self, id: &str, words: &[&str]) -> Result<String> {
        let output = host::exec_output(&self.place, id, words)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            let shown = words.first().unwrap_or(&"");
            bail!(
                "{shown} in {id} ended with {}:\n{text}{error}",
                output.status
            );
        }
        Ok(text)
    }

    /// Runs a shell script in a host and returns its trimmed output.
    pub fn run_script(&self, id: &str, script: &str) -> Result<String> {
        let said = self.exec_in_host(id, &["sh", "-ec", script]);
        Ok(said.with_context(|| script.to_owned())?.trim().to_owned())
    }

    /// The IPv4 addresses of a name in a host; empty if it does not exist.
    pub fn resolve_name(&self, id: &str, name: &str) -> Result<Vec<Ipv4Addr>> {
        let output = host::exec_output(&self.place, id, &["getent", "ahostsv4", name])?;
        match output.status.code() {
            // "One or more supplied key could not be found in the database."
            Some(2) => return Ok(Vec::new()),
            Some(0) => {}
            _ => bail!("getent in {id} ended with {}", output.status),
        }
        let mut addresses = Vec::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let word = line.split_whitespace().next().unwrap_or_default();
            let address = word.parse();
            addresses.push(address.with_context(|| format!("getent says {line:?}"))?);
        }
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    /// Connects from a host by TCP.
    pub fn connect_from(&self, id: &str, to: IpAddr, port: u16) -> Result<ConnectResult> {
        let (to, port) = (to.to_string(), port.to_string());
        let words = ["python3", "-c", CONNECT, &to, &port];
        let output = host::exec_output(&self.place, id, &words)?;
        match output.status.code() {
            Some(0) => Ok(ConnectResult::Open),
            Some(7) => Ok(ConnectResult::Refused),
            Some(28) => Ok(ConnectResult::Silent),
            _ => bail!(
                "connecting from {id} to {to}:{port}: {}",
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    /// Crashes a host like a power failure: data that was not flushed to its volumes is lost, all processes are killed, its own disk
    /// stays. AWS does not see it.
    pub fn kill_host(&self, id: &str) -> Result<()> {
        host::kill9(&self.place, id)
    }

    /// Crashes several hosts at once.
    pub fn kill_all(&self, ids: &[&str]) -> Result<()> {
        let place = &self.place;
        std::thread::scope(|scope| {
            let all: Vec<_> = ids
                .iter()
                .map(|id| scope.spawn(|| host::kill9(place, id)))
                .collect();
            all.into_iter().try_for_each(|one| {
                let ended = one.join();
                ended.unwrap_or_else(|_| bail!("a thread panicked"))
            })
        })
    }

    /// Starts a host that is off or was killed.
    pub fn start_host(&self, id: &str) -> Result<()> {
        let ledger = Ledger::open(&self.place).context("opening the ledger")?;
        host::start_host(&self.place, &ledger, id).map(drop)
    }

    /// Whether the system of a host runs, which says nothing of what AWS sees.
    pub fn is_on(&self, id: &str) -> Result<bool> {
        let host = host::Host::read_host(&self.place, id)?;
        Ok(host.current_state(&self.place)? == host::HostState::Running)
    }

    /// Lets a host write at most so many times a second to each of its volumes; `None`: as fast as it can.
    pub fn limit_writes(&self, id: &str, per_second: Option<u32>) -> Result<()> {
        host::limit_writes(&self.place, id, per_second)
    }

    /// From now on volumes take so much longer until their instance has them.
    pub fn delay_attachments(&self, delay: Duration) -> Result<()> {
        host::delay_attachments(&self.place, delay)
    }

    /// The boot id of a host.
    pub fn boot_id(&self, id: &str) -> Result<String> {
        self.run_script(id, "cat /proc/sys/kernel/random/boot_id")
    }

    /// Waits for another boot than `before`, until its units are up.
    pub fn booted_again(&self, id: &str, before: &str) -> Result<()> {
        self.wait_until(&format!("{id} boots again"), LIMIT, |lab| {
            ensure!(lab.boot_id(id)? != before, "it is the same boot");
            // Not the default target: nodeup may still run, or wait.
            lab.run_script(id, "systemctl is-active basic.target")
                .map(drop)
        })
    }

    pub fn partition_host(&self, what: &Partition) -> Result<()> {
        Ok(faults::partition_host(&self.place, what)?)
    }

    /// Removes all network faults of a host.
    pub fn heal_host(&self, id: &str) -> Result<()> {
        Ok(faults::remove_faults(&self.place, Some(id))?)
    }
}
