//! Addons of a spec of kOps that is refused for its network plugin: with another one they are compared too.

use super::addons::{Difference, addon_of, differences, keyed, kops_objects, topic};
use super::difference::policy_statements;
use super::{full_spec_of, read_text};
use full::FullSpec;
use full::addons::make_addons;
use full::iam::role_policy;
use node::config::Role;
use serde_json::{Value, json};
use spec::read::ReadOptions;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What does not depend on the network plugin, nor on the roles of service accounts that the spec wants.
const COMPARED: [&str; 5] = [
    "certmanager.io",
    AUTOSCALER,
    LOAD_BALANCER_CONTROLLER,
    "metrics-server.addons.k8s.io",
    "snapshot-controller.addons.k8s.io",
];

/// What kOps adds to containers so that they have such a role.
const OF_ROLES: [&str; 3] = [
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "token-amazonaws-com",
];

const LOAD_BALANCER_CONTROLLER: &str = "aws-load-balancer-controller.addons.k8s.io";
const AUTOSCALER: &str = "cluster-autoscaler.addons.k8s.io";

/// What Deployments have without the role of a service account: the network and the role of control planes.
const OF_CONTROL_PLANES: [&str; 6] = [
    "/spec/strategy",
    "/spec/template/spec/affinity",
    "/spec/template/spec/hostNetwork",
    "/spec/template/spec/securityContext",
    "/spec/template/spec/tolerations",
    "/spec/template/spec/volumes",
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
    let ours = ours
        .map(keyed)
        .collect::<std::collections::BTreeMap<_, _>>();
    let theirs = kops_objects(&scenario);
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let mut unstated = Vec::new();
    let mut equal = 0;
    for key in keys {
        let (one, other) = (ours.get(key), theirs.get(key).cloned().map(without_roles));
        let addon = addon_of(one.or(other.as_ref()).unwrap());
        if !COMPARED.contains(&addon.as_str()) {
            continue;
        }
        let found = differences(&addon, key, one, other.as_ref());
        equal += usize::from(found.is_empty());
        let by_role = |one: &Difference| {
            let mut places = OF_CONTROL_PLANES.iter();
            [AUTOSCALER, LOAD_BALANCER_CONTROLLER].contains(&addon.as_str())
                && places.any(|place| one.place.contains(place))
        };
        let found = found
            .iter()
            .filter(|one| !by_role(one) && topic(one).is_none());
        unstated.extend(
            found.map(|one| format!("{}: ours {} theirs {}", one.place, one.ours, one.theirs)),
        );
    }
    assert!(unstated.is_empty(), "{}", unstated.join("\n"));
    assert!(equal > 50, "{equal} are equal");
}

#[test]
fn the_ebs_csi_driver_takes_snapshots_as_in_kops() {
    let Some((scenario, full)) = many_addons() else {
        return;
    };
    let addons = make_addons(&full).unwrap();
    let ours = addons.into_iter().flat_map(|addon| addon.objects);
    let ours = snapshotter(&mut ours.map(|object| keyed(object).1));
    let theirs = snapshotter(&mut kops_objects(&scenario).into_values());
    let theirs = without_roles(theirs);
    let key = Default::default();
    let found = differences("", &key, Some(&ours), Some(&theirs));
    let found = found
        .iter()
        .map(|one| format!("{}: ours {} theirs {}", one.place, one.ours, one.theirs));
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
    // With the roles of service accounts it is another role that has them.
    let (ours, theirs) = (
        permissions(&full),
        kops_permissions(&scenario, "ebs-csi-controller-sa"),
    );
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The container that takes snapshots.
fn snapshotter(objects: &mut dyn Iterator<Item = Value>) -> Value {
    let mut containers = objects.filter_map(|object| {
        let containers = object.pointer("/spec/template/spec/containers")?;
        let mut containers = containers.as_array()?.iter();
        containers
            .find(|one| one["name"] == "csi-snapshotter")
            .cloned()
    });
    containers.next().unwrap()
}

fn without_roles(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let others = items.into_iter().filter(|one| {
                let name = one["name"].as_str();
                !name.is_some_and(|name| OF_ROLES.contains(&name))
            });
            others.map(without_roles).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().filter_map(|(name, value)| {
                let rest = without_roles(value.clone());
                // A list of nothing else would not be there.
                (rest != json!([]) || value == rest).then_some((name, rest))
            });
            Value::Object(fields.collect())
        }
        scalar => scalar,
    }
}

fn permissions(full: &FullSpec) -> BTreeSet<String> {
    let policy = role_policy(full, Role::ControlPlane);
    policy_statements(&json!({ "json": policy }))
}

/// Statements of the role that kOps gives the service account.
fn kops_permissions(scenario: &Path, account: &str) -> BTreeSet<String> {
    let name = format!("{account}.kube-system.sa.minimal.example.com.json");
    let text = read_text(&scenario.join("iam").join(name));
    let policy: Value = serde_json::from_str(&text).unwrap();
    policy_statements(&json!({ "json": policy }))
}

#[test]
fn controllers_may_call_what_they_may_in_kops() {
    let Some((scenario, full)) = many_addons() else {
        return;
    };
    let ours = permissions(&full);
    for account in ["aws-load-balancer-controller", "cluster-autoscaler"] {
        let theirs = kops_permissions(&scenario, account);
        let missing: Vec<_> = theirs.difference(&ours).collect();
        assert!(missing.is_empty(), "{account}: {missing:#?}");
    }
}
