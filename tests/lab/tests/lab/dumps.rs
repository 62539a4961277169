//! `kctl toolbox dump` of a running cluster.

use super::cluster::{self, CLUSTER};
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lab::scenario::Lab;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// How a journal of journald begins.
const JOURNAL: &[u8] = b"LPKSHHRH";

/// Shortest text that is looked for: shorter ones are no keys.
const SHORTEST: usize = 40;

/// Everything could be read, the journal is one, and no line of a private key or of a Secret is in it.
pub fn expect_dump(lab: &mut Lab) -> Result<()> {
    let folder = lab.place().run().join("dump");
    fs::create_dir_all(&folder)?;
    let archive = folder.join("dump.tar.gz").display().to_string();
    lab.run_kctl(&["toolbox", "dump", CLUSTER, "--out", &archive])?;
    lab.run(&[
        "tar",
        "-xzf",
        &archive,
        "--strip-components=1",
        "--directory",
        &folder.display().to_string(),
    ])?;
    fs::remove_file(&archive)?;
    let problems = fs::read_to_string(folder.join("problems.txt")).unwrap_or_default();
    ensure!(problems.is_empty(), "{problems}");
    let control_plane = cluster::control_plane(lab, 0)?.id;
    let journal = fs::read(folder.join(format!("nodes/{control_plane}/system.journal")))?;
    ensure!(journal.starts_with(JOURNAL), "this is no journal");
    let log = format!("kubernetes/logs/kube-apiserver-{control_plane}/kube-apiserver.log");
    let content = fs::read_to_string(folder.join(&log)).with_context(|| format!("no {log}"))?;
    ensure!(!content.starts_with("(no log"), "{log}: {content}");
    let secrets = list_secrets(lab)?;
    ensure!(secrets.len() > 10, "{} secrets", secrets.len());
    for file in list_files(&folder)? {
        let content = fs::read(&file)?;
        let content = String::from_utf8_lossy(&content);
        let found = secrets
            .iter()
            .position(|secret| content.contains(secret.as_str()));
        ensure!(found.is_none(), "a secret is in {}", file.display());
    }
    Ok(())
}

/// What no archive may have: lines of all private keys of the store, and values of its secrets and of Kubernetes' Secrets.
fn list_secrets(lab: &Lab) -> Result<Vec<String>> {
    let mut secrets = Vec::new();
    for text in read_objects(lab, "pki/private/")? {
        let materials = text
            .lines()
            .filter_map(|line| line.split_once("privateMaterial: "));
        for (_, material) in materials {
            secrets.push(material.to_owned());
            let key = STANDARD
                .decode(material)
                .context("a private key in base64")?;
            secrets.extend(String::from_utf8_lossy(&key).lines().map(str::to_owned));
        }
    }
    let stored = read_objects(lab, "secrets/")?;
    secrets.extend(
        stored
            .iter()
            .flat_map(|text| text.split('"'))
            .map(str::to_owned),
    );
    let objects = lab.get_objects(&["secrets", "--all-namespaces"])?;
    for secret in objects["items"].as_array().into_iter().flatten() {
        let data = secret["data"].as_object().into_iter().flatten();
        secrets.extend(data.filter_map(|(_, value)| Value::as_str(value).map(str::to_owned)));
    }
    secrets.retain(|secret| secret.len() >= SHORTEST);
    Ok(secrets)
}

/// The objects in a folder of the cluster in the state store.
fn read_objects(lab: &Lab, folder: &str) -> Result<Vec<String>> {
    let bucket = lab.store_bucket();
    let wanted = json!({"Bucket": bucket, "Prefix": format!("{CLUSTER}/{folder}")});
    let listed = lab.call_aws("s3", "ListObjectsV2", &wanted)?;
    let mut texts = Vec::new();
    for object in listed["Contents"].as_array().into_iter().flatten() {
        let wanted = json!({"Bucket": bucket, "Key": object["Key"]});
        let object = lab.call_aws("s3", "GetObject", &wanted)?;
        texts.push(object["Body"].as_str().context("text")?.to_owned());
    }
    Ok(texts)
}

fn list_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(list_files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
