//! Addons of a spec of kOps that is refused for its network plugin: with another one they are compared too.

use super::addons::{addon_of, differences, keyed, kops_objects, topic};
use super::difference::{Difference as AwsDifference, compat_topic, policy_statements};
use super::{full_spec_of, read_text};
use cloud::Cloud;
use full::FullSpec;
use full::addons::make_addons;
use full::objects::desired_objects;
use serde_json::{Value, json};
use spec::read::ReadOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What does not depend on the network plugin.
const COMPARED: [&str; 7] = [
    "aws-cloud-controller.addons.k8s.io",
    "aws-ebs-csi-driver.addons.k8s.io",
    "aws-load-balancer-controller.addons.k8s.io",
    "certmanager.io",
    "cluster-autoscaler.addons.k8s.io",
    "metrics-server.addons.k8s.io",
    "snapshot-controller.addons.k8s.io",
];

fn many_addons() -> Option<(PathBuf, FullSpec)> {
    let Some(folder) = std::env::var_os("KCTL_KOPS_FIXTURES").map(PathBuf::from) else {
        eprintln!("skipped: KCTL_KOPS_FIXTURES is not set");
        return None;
    };
    let scenario = folder.join("update_cluster/many-addons-ccm-irsa");
    let yaml = read_text(&scenario.join("in.yaml"))
        .replace("amazonvpc: {}", "cni: {}")
        .replace(
            "nonMasqueradeCIDR: 172.20.0.0/16",
            "nonMasqueradeCIDR: 100.64.0.0/10",
        );
    let lenient = ReadOptions {
        allow_unsupported: true,
    };
    let full = full_spec_of(&scenario, &yaml, lenient).unwrap();
    Some((scenario, full))
}

#[test]
fn objects_are_those_of_kops_but_for_stated_differences() {
    let Some((scenario, full)) = many_addons() else {
        return;
    };
    let addons = make_addons(&full).unwrap();
    let ours = addons.into_iter().flat_map(|addon| addon.objects);
    let ours = ours.map(keyed).collect::<BTreeMap<_, _>>();
    let theirs = kops_objects(&scenario);
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let mut unstated = Vec::new();
    let mut equal = 0;
    for key in keys {
        let (one, other) = (ours.get(key), theirs.get(key));
        let addon = addon_of(one.or(other).unwrap());
        if !COMPARED.contains(&addon.as_str()) {
            continue;
        }
        let found = differences(&addon, key, one, other);
        equal += usize::from(found.is_empty());
        let found = found.iter().filter(|one| topic(one).is_none());
        unstated.extend(
            found.map(|one| format!("{}: ours {} theirs {}", one.place, one.ours, one.theirs)),
        );
    }
    assert!(unstated.is_empty(), "{}", unstated.join("\n"));
    assert!(equal > 50, "{equal} are equal");
}

/// Service accounts of kOps whose work protokube does.
const OF_PROTOKUBE: [&str; 2] = ["aws-node-termination-handler", "dns-controller"];

#[test]
fn roles_of_service_accounts_may_do_what_they_may_in_kops() {
    let Some((scenario, full)) = many_addons() else {
        return;
    };
    let desired = desired_objects(&full, &BTreeMap::new(), Vec::new());
    let ours = desired.iter().filter_map(|one| match one {
        Cloud::IamRolePolicy(policy) => {
            let (account, _) = policy.policy_name.split_once(".kube-system.sa.")?;
            let policy = json!({ "json": policy.policy_document });
            Some((account.to_owned(), policy_statements(&policy)))
        }
        _ => None,
    });
    let ours: BTreeMap<String, BTreeSet<String>> = ours.collect();
    let mut unstated = Vec::new();
    for entry in std::fs::read_dir(scenario.join("iam")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some((account, _)) = file.split_once(".kube-system.sa.") else {
            continue;
        };
        if OF_PROTOKUBE.contains(&account) {
            continue;
        }
        let theirs: Value = serde_json::from_str(&read_text(&path)).unwrap();
        let theirs = policy_statements(&json!({ "json": theirs }));
        let of_ours = ours.get(account).cloned().unwrap_or_default();
        let difference = |ours: Option<&String>, theirs: Option<&String>| AwsDifference {
            kind: "iam_role_policy".to_owned(),
            name: account.to_owned(),
            attribute: "statement".to_owned(),
            ours: ours.map(|one| one.clone().into()),
            theirs: theirs.map(|one| one.clone().into()),
        };
        let more = of_ours.difference(&theirs);
        let less = theirs.difference(&of_ours);
        let found = more
            .map(|one| difference(Some(one), None))
            .chain(less.map(|one| difference(None, Some(one))));
        let found = found.filter(|one| compat_topic(one).is_none());
        unstated.extend(found.map(|one| one.to_string()));
    }
    assert!(unstated.is_empty(), "{}", unstated.join("\n"));
}
