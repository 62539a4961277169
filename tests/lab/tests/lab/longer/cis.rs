//! A cluster with `profile: cis` and the authority of a company comes up, and no automated control of the benchmark fails but the one that
//! its page names.

use super::super::cluster::{self, CLUSTER};
use super::super::{PATIENCE, Step};
use super::own_authority;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

pub const STEPS: [Step; 3] = [
    ("a cluster of the profile is born", be_born),
    (
        "OpenSSL verifies certificates under the authority that was brought",
        own_authority::expect_verified,
    ),
    ("it stands to the benchmark as its page says", be_judged),
];

/// The key is a word: nothing secret is in a lab.
const ENCRYPTION: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox: {keys: [{name: a, secret: c3dvcmRmaXNoLWlzLXRoZS1wYXNzd29yZC1oZXJlLi4=}]}
  - identity: {}
";

fn be_born(lab: &mut Lab) -> Result<()> {
    cluster::create_spec(lab, &["--networking=flannel", "--dns=none"])?;
    let file = lab.place().data_folder().join("encryption.yaml");
    fs::write(&file, ENCRYPTION).context("the encryption configuration")?;
    let file = file.to_str().context("a path")?;
    let create = ["create", "secret", "encryptionconfig"];
    lab.run_kctl(&[&create[..], &[CLUSTER, "-f", file]].concat())?;
    own_authority::bring(lab)?;
    lab.run_kctl(&["edit", "cluster", CLUSTER, "--set", "spec.profile=cis"])?;
    cluster::make_cluster(lab)?;
    cluster::expect_ready(lab, 1)?;
    cluster::expect_healthy(lab)
}

fn be_judged(lab: &mut Lab) -> Result<()> {
    // Lists of files are written a minute after a boot, and then every ten minutes.
    lab.wait_until("no control fails or waits for a list", PATIENCE, |lab| {
        let words = ["toolbox", "cis", CLUSTER, "-o", "json"];
        let said = lab.run_kctl(&[&words[..], &["--accept", "1.1.12"]].concat())?;
        let said: Value = serde_json::from_str(&said)?;
        let mut counts = BTreeMap::<String, usize>::new();
        for row in said["controls"].as_array().context("controls")? {
            *counts.entry(row["result"].to_string()).or_default() += 1;
            let number = row["number"].as_str().context("a number")?;
            let of_files = number.starts_with("1.1.") || number.starts_with("4.1.");
            let is_known = row["result"] != "not_known" || row["automated"] == false;
            ensure!(!of_files || is_known, "{row}");
        }
        eprintln!("       {counts:?}");
        Ok(())
    })
}
