//! AWS calls, kctl and other programs in the operator's network.

use super::Lab;
use crate::ledger::{Ledger, LedgerEntry};
use crate::operator;
use crate::process::Process;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Bucket of the state store.
const BUCKET: &str = "kctl-lab-store";

/// Settings that a spec needs in the lab (docs/lab.md): hosts share one clock, and cannot reach a mirror of their distribution.
pub const SPEC: [&str; 2] = ["spec.ntp.managed=false", "spec.updatePolicy=external"];

/// Key of the catalog of the lab's download sites.
const CATALOG: &str = "catalog.yaml";

impl Lab {
    /// Makes an AWS call as administrator. The service is named as in boto3, operation and parameters as in AWS. An error response is
    /// an error.
    pub fn call_aws(&self, service: &str, operation: &str, parameters: &Value) -> Result<Value> {
        self.calls.call_aws(service, operation, parameters)
    }

    /// Creates the state store and returns the name of its bucket.
    pub fn create_store(&self) -> Result<&'static str> {
        self.call_aws("s3", "CreateBucket", &json!({"Bucket": BUCKET}))?;
        Ok(BUCKET)
    }

    /// Bucket of the state store.
    pub fn store_bucket(&self) -> &'static str {
        BUCKET
    }

    /// Runs `kctl create cluster NAME` with more arguments and the settings that the lab needs, in the store of [`Self::create_store`].
    pub fn create_cluster(&self, cluster: &str, words: &[&str]) -> Result<String> {
        let mut all = vec!["create", "cluster", cluster];
        all.extend(words);
        all.extend(SPEC.iter().flat_map(|set| ["--set", set]));
        let catalog = format!("spec.assets.catalog={CATALOG}");
        if let Some(path) = &self.catalog {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("reading {}", path.display()))?;
            let object = json!({"Bucket": BUCKET, "Key": CATALOG, "Body": text});
            self.call_aws("s3", "PutObject", &object)?;
            all.extend(["--set", &catalog]);
        }
        self.run_kctl(&all)
    }

    /// Runs kctl with that store and returns its output. `KCTL_BIN` names the program.
    pub fn run_kctl(&self, words: &[&str]) -> Result<String> {
        output_of(
            &mut self.kctl_command(words)?,
            &format!("kctl {}", words.join(" ")),
        )
    }

    /// Runs kctl like [`Self::run_kctl`] and returns its exit code and its output, whatever the code is.
    pub fn end_of_kctl(&self, words: &[&str]) -> Result<(Option<i32>, String)> {
        let output = self.kctl_command(words)?.stdin(Stdio::null()).output();
        let output = output.context("starting kctl")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.code(), text))
    }

    /// Runs kctl like [`Self::run_kctl`] and kills it with -9 after that time. False if it had ended before.
    pub fn kill_kctl(&self, words: &[&str], after: Duration) -> Result<bool> {
        let mut command = self.kctl_command(words)?;
        let quiet = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = quiet.spawn().context("starting kctl")?;
        Ledger::open(&self.place)
            .context("opening the ledger")?
            .record(&LedgerEntry::Process(Process::from_pid(child.id())?))?;
        sleep(after);
        let ended = child.try_wait().context("looking at kctl")?.is_some();
        // The error of a process that has just ended is that it cannot be killed.
        let _ = child.kill();
        child.wait().context("waiting for kctl")?;
        Ok(!ended)
    }

    fn kctl_command(&self, words: &[&str]) -> Result<Command> {
        let mut all = vec![kctl_program()?.display().to_string()];
        all.extend(words.iter().map(|&word| word.to_owned()));
        let mut command = self.operator_command(&all)?;
        command.env("KCTL_STATE_STORE", format!("s3://{BUCKET}"));
        if let Some(assets) = assets_folder()? {
            command.env("KCTL_ASSETS", assets);
        }
        Ok(command)
    }

    /// Runs a program in the operator's network and returns its output.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        output_of(&mut self.operator_command(&words)?, &words.join(" "))
    }

    fn operator_command(&self, words: &[String]) -> Result<Command> {
        operator::operator_command(&self.place, &self.up, words)
    }
}

fn output_of(command: &mut Command, shown: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {shown}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} ended with {}:\n{text}{error}", output.status);
    }
    Ok(text)
}

/// `KCTL_BIN`, or the program of `cargo build --workspace --bins`.
fn kctl_program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("KCTL_BIN") {
        return Ok(named.into());
    }
    let own = std::env::current_exe().context("finding this program")?;
    let built = own.ancestors().map(|folder| folder.join("kctl"));
    let found = built.take(4).find(|path| path.is_file());
    found.context("no kctl: `cargo build --workspace --bins` makes it, or KCTL_BIN names one")
}

/// Folder of nodeup and protokube for hosts: `KCTL_ASSETS`, or the cache; `None`: kctl decides.
fn assets_folder() -> Result<Option<PathBuf>> {
    if let Some(named) = std::env::var_os("KCTL_ASSETS") {
        return Ok(Some(named.into()));
    }
    let cache = crate::host::cache_folder()?;
    let cached = cache.parent().map(|cache| cache.join("assets"));
    Ok(cached.filter(|path| Path::is_dir(path)))
}
