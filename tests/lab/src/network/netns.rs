//! Network namespaces of the lab: made, commanded. A command is `ip` or `nft` with its input; nothing is parsed from
//! human output. What a command makes is inside a namespace and goes with it, so only the namespace itself is in the ledger.

use super::error::{Error, Result, add_context};
use super::family::Family;
use crate::ledger::{Ledger, LedgerEntry};
use crate::netns::netns_path;
use crate::{teardown, tool};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `statfs` type of a mounted namespace (`NSFS_MAGIC`).
const NSFS: u64 = 0x6e73_6673;

/// How often something is set that needs links to stay as they are.
const ATTEMPTS: usize = 5;

/// Whether the name stands for a namespace; a file that a killed `ip netns add` left does not.
pub fn netns_exists(netns: &str) -> bool {
    rustix::fs::statfs(netns_path(netns)).is_ok_and(|stat| u64::try_from(stat.f_type) == Ok(NSFS))
}

/// Makes it unless it is there; the ledger knows first.
pub fn add_netns(ledger: &Ledger, netns: &str) -> Result<()> {
    let name = netns.to_owned();
    ledger
        .record(&LedgerEntry::Netns { name })
        .map_err(add_context(format!("recording network namespace {netns}")))?;
    if netns_exists(netns) {
        return Ok(());
    }
    if netns_path(netns).exists() {
        delete_netns(netns)?;
    }
    let made = ledger
        .locked_command("ip")
        .map_err(anyhow::Error::from)
        .and_then(|mut ip| tool::run(ip.args(["netns", "add", netns])));
    made.map(drop).map_err(Error::Tool)
}

/// Removes the name; the namespace itself goes with the last process in it.
pub fn delete_netns(netns: &str) -> Result<()> {
    teardown::remove_netns(netns).map_err(Error::Tool)
}

/// Runs `work` on a thread of its own inside the namespace.
pub fn run_inside<T: Send>(netns: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(crate::netns::run_inside(netns, work)?)
}

/// `ip -netns NETNS ARGUMENTS`.
pub fn run_ip(netns: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("ip");
    run(netns, command.args(["-netns", netns]).args(arguments), "").map(drop)
}

/// All lines through one `ip -batch` of a family; stops at the first that fails.
pub fn ip_batch(netns: &str, family: Family, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut input = lines.join("\n");
    input.push('\n');
    let mut command = Command::new("ip");
    run(
        netns,
        command.args(["-netns", netns, family.option(), "-batch", "-"]),
        &input,
    )
    .map(drop)
}

/// Runs `ip -j -netns NETNS ARGUMENTS` of a family and parses its JSON.
pub fn ip_json<T: serde::de::DeserializeOwned>(
    netns: &str,
    family: Family,
    arguments: &[&str],
) -> Result<Vec<T>> {
    let mut command = Command::new("ip");
    command
        .args(["-netns", netns, "-j", family.option()])
        .args(arguments);
    let output = run(netns, &mut command, "")?;
    // With nothing to show, `ip -j` prints nothing at all.
    if output.stdout.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Error::Answer {
        command: format!("ip -j {}", arguments.join(" ")),
        netns: netns.to_owned(),
        problem: error.to_string(),
    })
}

/// Loads a ruleset, all of it or nothing.
pub fn load_ruleset(netns: &str, ruleset: &str) -> Result<()> {
    let mut command = Command::new("nsenter");
    let net = format!("--net={}", netns_path(netns).display());
    run(netns, command.args([&net, "nft", "-f", "-"]), ruleset).map(drop)
}

/// Writes settings below `/proc/sys/net`, which shows the namespace of the thread that looks.
pub fn write_settings(netns: &str, settings: &[(String, &str)]) -> Result<()> {
    run_inside(netns, || {
        settings.iter().try_for_each(|(name, value)| {
            let path = Path::new("/proc/sys/net").join(name);
            std::fs::write(&path, value).map_err(add_context(format!(
                "writing {value} to {}",
                path.display()
            )))
        })
    })?
}

/// Looks and sets again when setting fails: hosts come and go, and a link that vanished in between is no error.
pub fn retry_until_settled<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(error) => tracing::debug!(%error, "links changed meanwhile; once more"),
        }
    }
    attempt()
}

fn run(netns: &str, command: &mut Command, input: &str) -> Result<Output> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let failed = |problem: String| Error::Command {
        command: words.join(" "),
        netns: netns.to_owned(),
        problem,
    };
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().map_err(|error| failed(error.to_string()))?;
    // The tools read all input before they answer, so writing first cannot block for ever.
    let written = child
        .stdin
        .take()
        .map_or(Ok(()), |mut pipe| pipe.write_all(input.as_bytes()));
    let output = child
        .wait_with_output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(failed(text.trim().to_owned()));
    }
    written.map_err(|error| failed(error.to_string()))?;
    Ok(output)
}
