//! What a scenario does from outside: AWS calls, kctl and other programs where the operator is.

use super::{Lab, Refusal};
use crate::operator;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Of the store that [`Lab::store`] makes.
const BUCKET: &str = "kctl-lab-store";

/// What specs of clusters in the lab say beside what they would say on AWS: machines share one clock, which none of them may
/// keep, reach no mirror of their distribution, and share one disk, whose share that is free is not theirs to keep.
pub const SPEC: [&str; 3] = [
    "spec.ntp.managed=false",
    "spec.updatePolicy=external",
    "spec.kubelet.evictionHard=memory.available<100Mi,nodefs.available<1%,imagefs.available<1%",
];

/// Where in the store the catalog of what the lab's download sites serve is.
const CATALOG: &str = "catalog.yaml";

impl Lab {
    /// An AWS call as administrator; names as boto3's, operation and parameters as AWS's. A refusal is a [`Refusal`] in the
    /// error.
    pub fn aws(&self, service: &str, operation: &str, parameters: &Value) -> Result<Value> {
        self.calls.call(service, operation, parameters)
    }

    /// The same of a call that is to be refused.
    pub fn refused(&self, service: &str, operation: &str, parameters: &Value) -> Result<Refusal> {
        match self.calls.call(service, operation, parameters) {
            Ok(done) => bail!("{service} {operation} was not refused: {done}"),
            Err(error) => error.downcast(),
        }
    }

    /// Makes the bucket that kctl keeps clusters in; its name.
    pub fn store(&self) -> Result<&'static str> {
        self.aws("s3", "CreateBucket", &json!({"Bucket": BUCKET}))?;
        Ok(BUCKET)
    }

    /// Name of that bucket.
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// `kctl create cluster NAME` with more words, as a cluster in the lab has to be; in the store that [`Self::store`] made.
    pub fn create(&self, cluster: &str, words: &[&str]) -> Result<String> {
        let mut all = vec!["create", "cluster", cluster];
        all.extend(words);
        all.extend(SPEC.iter().flat_map(|set| ["--set", set]));
        let catalog = format!("spec.assets.catalog={CATALOG}");
        if let Some(path) = &self.catalog {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("reading {}", path.display()))?;
            let object = json!({"Bucket": BUCKET, "Key": CATALOG, "Body": text});
            self.aws("s3", "PutObject", &object)?;
            all.extend(["--set", &catalog]);
        }
        self.kctl(&all)
    }

    /// Runs kctl on that store, with its words; what it printed. `KCTL_BIN` says which kctl.
    pub fn kctl(&self, words: &[&str]) -> Result<String> {
        let mut all = vec![kctl_program()?.display().to_string()];
        all.extend(words.iter().map(|&word| word.to_owned()));
        let mut command = self.command(&all)?;
        command.env("KCTL_STATE_STORE", format!("s3://{BUCKET}"));
        if let Some(assets) = assets()? {
            command.env("KCTL_ASSETS", assets);
        }
        said(&mut command, &format!("kctl {}", words.join(" ")))
    }

    /// Runs a program where the operator is; what it printed.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        said(&mut self.command(&words)?, &words.join(" "))
    }

    fn command(&self, words: &[String]) -> Result<Command> {
        operator::command(&self.place, &self.up, words)
    }
}

fn said(command: &mut Command, shown: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {shown}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} ended with {}:\n{text}{error}", output.status);
    }
    Ok(text)
}

/// `KCTL_BIN`, else the one beside the running test's folder, where `cargo build --workspace --bins` puts it.
fn kctl_program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("KCTL_BIN") {
        return Ok(named.into());
    }
    let own = std::env::current_exe().context("finding this program")?;
    let built = own.ancestors().map(|folder| folder.join("kctl"));
    let found = built.take(4).find(|path| path.is_file());
    found.context("no kctl: `cargo build --workspace --bins` makes it, or KCTL_BIN names one")
}

/// Where nodeup and protokube are that hosts can run: `KCTL_ASSETS`, else what is in the cache; `None` leaves it to kctl.
fn assets() -> Result<Option<PathBuf>> {
    if let Some(named) = std::env::var_os("KCTL_ASSETS") {
        return Ok(Some(named.into()));
    }
    let cache = crate::host::cache()?;
    let cached = cache.parent().map(|cache| cache.join("assets"));
    Ok(cached.filter(|path| Path::is_dir(path)))
}
