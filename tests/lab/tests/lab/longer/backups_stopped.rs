//! Backups stop because S3 refuses them, and `kctl validate` says so within two intervals.

use super::super::PATIENCE;
use super::super::cluster::{self, CLUSTER};
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, unix_time};
use node::backup::{BACKUP_SETTINGS_KEY, BackupSettings, EtcdBackupSettings};
use node::pki::{STATE_SIGNER, keyset_path, read_keyset};
use node::signed::{SignedPlace, sign_text, signature_key, verify_text};
use serde_json::json;

/// Seconds between two snapshots meanwhile.
const INTERVAL: u64 = 60;

/// Name of the policy that refuses, and the role of control planes that it is added to.
const POLICY: &str = "refuses-backups";
const ROLE: &str = "masters.demo.example.com";

pub fn refuse_backups(lab: &mut Lab) -> Result<()> {
    let bucket = lab.store_bucket();
    let key = format!("{CLUSTER}/{BACKUP_SETTINGS_KEY}");
    let host = cluster::control_plane(lab, 0)?.id;
    let caller = lab.instance_caller(&host)?;
    let signer = format!("{CLUSTER}/{}", keyset_path(STATE_SIGNER));
    let signer = read_keyset(STATE_SIGNER, &caller.get_object(bucket, &signer)?.body)?;
    let place = SignedPlace {
        cluster: CLUSTER,
        key: BACKUP_SETTINGS_KEY,
    };
    let before = caller.get_object(bucket, &key)?.body;
    let signature = caller
        .get_object(bucket, &signature_key(&key, &before))?
        .body;
    let serial = verify_text(&signer, place, &before, &signature)?;
    // As kctl would: each text has a greater serial than the one before.
    let put = |lab: &Lab, text: &str, later: u64| -> Result<()> {
        let signature = sign_text(&signer, place, text, serial + later)?;
        let at = signature_key(&key, text);
        let signature = json!({"Bucket": bucket, "Key": at, "Body": signature});
        lab.call_aws("s3", "PutObject", &signature)?;
        let object = json!({"Bucket": bucket, "Key": key, "Body": text});
        lab.call_aws("s3", "PutObject", &object).map(drop)
    };
    put(lab, &with_interval(&before)?, 1)?;
    lab.wait_until(
        "a snapshot is taken with the new interval",
        PATIENCE,
        |lab| {
            ensure!(age_of_newest(lab)? < 20, "the last one is older");
            Ok(())
        },
    )?;
    refuse(lab, "s3:PutObject", "backups/*")?;
    let begun = unix_time()?;
    let said = lab.wait_until("kctl validate says that backups stop", PATIENCE, |lab| {
        let validated = lab.run_kctl(&["validate", CLUSTER]);
        let said = validated.err().context("it is healthy")?;
        let said = format!("{said:#}");
        ensure!(said.contains("its last snapshot is"), "{said}");
        Ok(said)
    })?;
    let age = age_of_newest(lab)?;
    let shown = said
        .lines()
        .find(|line| line.contains("its last snapshot is"));
    eprintln!(
        "       {:.0} s after S3 refused, {age} s after the last snapshot: {}",
        unix_time()? - begun,
        shown.unwrap_or_default().trim()
    );
    ensure!(said.contains("denied"), "{said}");
    allow_again(lab)?;
    cluster::expect_healthy(lab)?;
    put(lab, &before, 2)
}

/// From now on S3 refuses this action to control planes, for these objects of the cluster.
pub fn refuse(lab: &Lab, action: &str, objects: &str) -> Result<()> {
    let objects = format!("arn:aws:s3:::{}/{CLUSTER}/{objects}", lab.store_bucket());
    let statement = json!({"Effect": "Deny", "Action": action, "Resource": objects});
    let policy = json!({"Version": "2012-10-17", "Statement": [statement]}).to_string();
    let policy = json!({"RoleName": ROLE, "PolicyName": POLICY, "PolicyDocument": policy});
    lab.call_aws("iam", "PutRolePolicy", &policy).map(drop)
}

/// Ends what [`refuse`] began.
pub fn allow_again(lab: &Lab) -> Result<()> {
    let policy = json!({"RoleName": ROLE, "PolicyName": POLICY});
    lab.call_aws("iam", "DeleteRolePolicy", &policy).map(drop)
}

/// The settings with [`INTERVAL`] for main.
fn with_interval(text: &str) -> Result<String> {
    let mut settings = BackupSettings::parse(BACKUP_SETTINGS_KEY, text.as_bytes())?;
    let main = settings.etcd.get_mut("main").context("main")?;
    *main = EtcdBackupSettings {
        interval_seconds: INTERVAL,
        ..main.clone()
    };
    Ok(settings.to_json())
}

/// Seconds since the newest scheduled snapshot was stored.
fn age_of_newest(lab: &Lab) -> Result<u64> {
    let said = lab.run_kctl(&["etcd", "snapshot", "list", "--name", CLUSTER, "-o", "json"])?;
    let said: serde_json::Value = serde_json::from_str(&said)?;
    let all = said["snapshots"].as_array().context("snapshots")?;
    let scheduled = all.iter().filter(|one| one["kind"] == "scheduled");
    let ages = scheduled.filter_map(|one| one["ageSeconds"].as_u64());
    ages.min().context("no scheduled snapshot")
}
