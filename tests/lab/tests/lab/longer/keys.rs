//! The keys of a cluster are rotated through all stages (docs/operations/rotate-keys.md) while clients of the API write, and pods call a
//! service: three control planes and two workers, replaced three times.

use super::super::cluster::{self, CLUSTER, Network};
use super::super::faults::crashes;
use super::super::{PATIENCE, pods};
use super::rolled;
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::scenario::{LIMIT, Lab};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use x509_parser::pem::Pem;

/// A stage: what is asked of each keyset, and whether the key that was there first is accepted afterwards.
struct Stage {
    verb: &'static str,
    /// Options for `service-account`.
    tokens: &'static [&'static str],
    old_is_accepted: bool,
}

const STAGES: [Stage; 3] = [
    Stage {
        verb: "create",
        tokens: &[],
        old_is_accepted: true,
    },
    Stage {
        verb: "promote",
        tokens: &[],
        old_is_accepted: true,
    },
    // Pods would keep tokens of the former key for a day. Here, all of them were started by the rolling update.
    Stage {
        verb: "distrust",
        tokens: &["--force"],
        old_is_accepted: false,
    },
];

const KEYSETS: [&str; 2] = ["kubernetes-ca", "service-account"];

/// Certificates of `kubernetes-ca` that every instance has.
const CERTIFICATES: [&str; 3] = [
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/var/lib/kubelet/pki/kubelet-server-current.pem",
    "/var/lib/kube-proxy/client.crt",
];

/// From the creation of the cluster to the last stage.
pub fn run(lab: &mut Lab) -> Result<()> {
    rolled::make_busy_cluster(lab, "none", Network::Flannel)?;
    let calls = lab.run_step("two pods call the service", |lab| {
        lab.start_service_calls(PATIENCE)
    })?;
    let token = lab.run_step("a token of the first key", |lab| {
        let token = lab.run_kubectl(&["create", "token", "default", "--duration=12h"])?;
        expect_accepted(lab, token.trim(), true)?;
        Ok(token.trim().to_owned())
    })?;
    for stage in &STAGES {
        let verb = stage.verb;
        lab.run_step(&format!("keypairs: {verb}"), |lab| ask(lab, stage))?;
        run_under_load(lab, verb)?;
        lab.run_step(&format!("after {verb}, the cluster is healthy"), |lab| {
            cluster::expect_healthy(lab)?;
            pods::expect_connections(lab)?;
            expect_accepted(lab, &token, stage.old_is_accepted)
        })?;
    }
    lab.run_step("nothing of the first key is left", expect_only_new)?;
    lab.run_step("extension API servers forget the first key", forget_first)?;
    lab.run_step("no call of the service failed", |_| {
        rolled::check_calls(calls)
    })
}

/// Makes the step in both keysets, and brings it to the launch templates. The step after it is refused until instances have it.
fn ask(lab: &mut Lab, stage: &Stage) -> Result<()> {
    for keyset in KEYSETS {
        let words = [stage.verb, "keypair", keyset, "--name", CLUSTER];
        let more = match keyset {
            "service-account" => stage.tokens,
            _ => &[],
        };
        lab.run_kctl(&[&words[..], more].concat())?;
    }
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    let next = match stage.verb {
        "create" => "promote",
        "promote" => "distrust",
        _ => return Ok(()),
    };
    for keyset in KEYSETS {
        let early = lab.run_kctl(&[next, "keypair", keyset, "--name", CLUSTER]);
        ensure!(early.is_err(), "{next} of {keyset} was not refused");
    }
    Ok(())
}

/// Replaces every instance while clients write, with a kubeconfig of this stage.
fn run_under_load(lab: &mut Lab, verb: &str) -> Result<()> {
    let writers = lab.run_step(&format!("{verb}: writes begin"), |lab| {
        lab.run_kctl(&["export", "kubeconfig", CLUSTER, "--admin=12h"])?;
        lab.start_writers(&format!("writes-{verb}"))
    })?;
    lab.run_step(&format!("{verb}: kctl replaces every instance"), |lab| {
        let old = instance_ids(lab)?;
        let done = lab.run_kctl(&["rolling-update", CLUSTER, "--yes", "-o", "json"])?;
        let done: Value = serde_json::from_str(&done)?;
        ensure!(done["outcome"] == "done", "{done}");
        let new = instance_ids(lab)?;
        ensure!(new.is_disjoint(&old), "{old:?} became {new:?}");
        let plan = lab.run_kctl(&["update", CLUSTER])?;
        ensure!(plan.contains("No changes."), "{plan}");
        Ok(())
    })?;
    lab.run_step(
        &format!("{verb}: all that clients did and saw fits one order of writes"),
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )
}

fn instances(lab: &Lab) -> Result<Vec<Instance>> {
    Ok([
        cluster::control_planes(lab, 3)?,
        cluster::worker_instances(lab)?,
    ]
    .concat())
}

fn instance_ids(lab: &Lab) -> Result<BTreeSet<String>> {
    Ok(instances(lab)?.into_iter().map(|one| one.id).collect())
}

/// Whether the API servers accept a token.
fn expect_accepted(lab: &Lab, token: &str, wanted: bool) -> Result<()> {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    });
    let file = lab.place().run().join("review.json");
    std::fs::write(&file, review.to_string())?;
    let file = file.display().to_string();
    let said = lab.run_kubectl(&["create", "--filename", &file, "--output=json"])?;
    let said: Value = serde_json::from_str(&said)?;
    let accepted = said["status"]["authenticated"] == true;
    ensure!(accepted == wanted, "{}", said["status"]);
    Ok(())
}

/// The id of the key that signs, as kctl shows it.
fn primary_id(lab: &Lab) -> Result<String> {
    let words = ["get", "keypairs", "kubernetes-ca", "-o", "json"];
    let said = lab.run_kctl(&[&words[..], &["--name", CLUSTER]].concat())?;
    let keys: Vec<Value> = serde_json::from_str(&said)?;
    let primary = keys.iter().find(|key| key["state"] == "primary");
    let id = primary.and_then(|key| key["id"].as_str());
    id.map(str::to_owned).context("no primary key")
}

/// Every certificate is of the new key, whose number is in its name, and so is every bundle.
fn expect_only_new(lab: &mut Lab) -> Result<()> {
    let id = primary_id(lab)?;
    for instance in instances(lab)? {
        for path in CERTIFICATES {
            lab.wait_until("a certificate of the new key", PATIENCE, |lab| {
                let text = lab.exec_in_host(&instance.id, &["cat", path])?;
                let mut blocks = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok);
                let pem = blocks.find(|pem| pem.label == "CERTIFICATE");
                let pem = pem.with_context(|| format!("{path} of {} has none", instance.id))?;
                let issuer = pem.parse_x509()?.issuer().to_string();
                ensure!(issuer.contains(&id), "{path} of {}: {issuer}", instance.id);
                Ok(())
            })?;
        }
        let bundle = lab.exec_in_host(&instance.id, &["cat", "/srv/kubernetes/ca.crt"])?;
        expect_one_certificate(&bundle, &instance.id)?;
    }
    lab.wait_until("pods trust the new key only", LIMIT, |lab| {
        let map = lab.get_objects(&["configmap", "kube-root-ca.crt"])?;
        expect_one_certificate(
            map["data"]["ca.crt"].as_str().unwrap_or_default(),
            "kube-root-ca.crt",
        )
    })
}

fn expect_one_certificate(bundle: &str, what: &str) -> Result<()> {
    let count = bundle.matches("BEGIN CERTIFICATE").count();
    ensure!(count == 1, "{count} certificates in {what}");
    Ok(())
}

/// API servers only add to this ConfigMap; once it is deleted, they make it of what they trust now.
fn forget_first(lab: &mut Lab) -> Result<()> {
    let map = ["configmap", "extension-apiserver-authentication"];
    let space = ["--namespace=kube-system"];
    lab.run_kubectl(&[&["delete"], &map[..], &space].concat())?;
    lab.wait_until("it is there again", PATIENCE, |lab| {
        let found = lab.get_objects(&[&map[..], &space].concat())?;
        let bundle = found["data"]["client-ca-file"].as_str();
        expect_one_certificate(bundle.unwrap_or_default(), map[1])
    })
}
