//! The state store is lost with everything else: the spec and the keys come back from what is sealed beside a snapshot, as
//! docs/operations/etcd-backup.md says, and etcd from the snapshot.

use super::super::PATIENCE;
use super::super::cluster::{self, CLUSTER};
use super::super::etcd;
use super::restored::{expect_before, lose_all, resume_launches, snapshot};
use super::snapshots_here::IDENTITY;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

pub fn lose_store_too(lab: &mut Lab) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, state, key) = (path("etcd.db"), path("state.zip.age"), path("key.txt"));
    fs::write(&key, IDENTITY)?;
    let token = lab.run_kubectl(&["create", "token", "default", "--duration=24h"])?;
    snapshot(lab, &["save", "kept"])?;
    snapshot(
        lab,
        &[
            "download",
            "kept",
            "--file",
            &data,
            "--cluster-state",
            &state,
        ],
    )?;
    lose_all(lab, 3)?;
    empty_store(lab)?;

    lab.run_kctl(&[
        "etcd",
        "snapshot",
        "import-state",
        &state,
        "--identity",
        &key,
    ])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    resume_launches(lab)?;
    lab.wait_until("etcd is founded", PATIENCE, |lab| {
        let said = lab.run_kctl(&["etcd", "status", CLUSTER, "-o", "json"])?;
        let said: Value = serde_json::from_str(&said)?;
        let members = said["members"].as_array().map_or(0, Vec::len);
        ensure!(members == 6, "{said}");
        Ok(())
    })?;
    snapshot(lab, &["import", "old", "--file", &data])?;
    lab.wait_until("the snapshot is restored", PATIENCE, |lab| {
        let words = ["etcd", "restore", CLUSTER, "--snapshot", "old", "--yes"];
        lab.run_kctl(&words).map(drop)
    })?;
    expect_before(lab)?;
    expect_valid(lab, token.trim(), folder.path())?;
    etcd::expect_three_voters(lab)?;
    cluster::expect_healthy(lab)
}

/// Deletes all objects of the cluster's folder, its backups too.
fn empty_store(lab: &Lab) -> Result<()> {
    let bucket = lab.store_bucket();
    loop {
        let page = json!({"Bucket": bucket, "Prefix": format!("{CLUSTER}/")});
        let listed = lab.call_aws("s3", "ListObjectsV2", &page)?;
        let objects = listed["Contents"].as_array().cloned().unwrap_or_default();
        if objects.is_empty() {
            return Ok(());
        }
        for object in objects {
            let key = object["Key"].as_str().context("a key")?;
            lab.call_aws("s3", "DeleteObject", &json!({"Bucket": bucket, "Key": key}))?;
        }
    }
}

/// The API accepts a ServiceAccount's token from before: it was signed with a key of the state store, for an account in etcd.
fn expect_valid(lab: &Lab, token: &str, folder: &Path) -> Result<()> {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    });
    let file = folder.join("review.json");
    fs::write(&file, review.to_string())?;
    let file = file.display().to_string();
    let said = lab.run_kubectl(&["create", "--output=json", "--filename", &file])?;
    let said: Value = serde_json::from_str(&said)?;
    ensure!(said["status"]["authenticated"] == true, "{said}");
    Ok(())
}
