//! The pod identity webhook of a spec of kOps that is refused for its roles of service accounts: with these it is compared too.

use super::addons::{addon_of, differences, keyed, kops_objects, topic};
use super::full_spec;
use full::addons::make_addons;
use full::{FullSpec, PodIdentityWebhook, ServiceAccountRole};
use serde_json::Value;
use spec::read::ReadOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const NAME: &str = "eks-pod-identity-webhook.addons.k8s.io";

/// Namespace, service account and role, as kOps reads and names them.
const ROLES: [(&str, &str, &str); 3] = [
    ("default", "myserviceaccount", "myserviceaccount.default"),
    (
        "test-*",
        "myserviceaccount",
        "myserviceaccount.test-wildcard",
    ),
    (
        "myapp",
        "myotherserviceaccount",
        "myotherserviceaccount.myapp",
    ),
];

fn with_roles(mut full: FullSpec) -> FullSpec {
    full.addons.pod_identity_webhook = Some(PodIdentityWebhook { replicas: None });
    let cluster = full.name.clone();
    let roles = ROLES.map(|(namespace, service_account, role)| ServiceAccountRole {
        namespace: namespace.to_owned(),
        service_account: service_account.to_owned(),
        role_name: format!("{role}.sa.{cluster}"),
    });
    full.iam.service_account_roles = roles.into();
    full
}

#[test]
fn it_is_that_of_kops_but_for_stated_differences() {
    let Some(folder) = std::env::var_os("KCTL_KOPS_FIXTURES").map(PathBuf::from) else {
        eprintln!("skipped: KCTL_KOPS_FIXTURES is not set");
        return;
    };
    let scenario = folder.join("update_cluster/irsa");
    let lenient = ReadOptions {
        allow_unsupported: true,
    };
    let full = with_roles(full_spec(&scenario, lenient).unwrap());
    let of_webhook = |objects: &mut dyn Iterator<Item = Value>| -> BTreeMap<_, _> {
        let of = objects.filter(|object| addon_of(object) == NAME);
        of.map(keyed).collect()
    };
    let addons = make_addons(&full).unwrap();
    let ours = of_webhook(&mut addons.into_iter().flat_map(|addon| addon.objects));
    let theirs = of_webhook(&mut kops_objects(&scenario).into_values());
    assert!(theirs.len() >= 11, "{} objects", theirs.len());
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let found = keys
        .into_iter()
        .flat_map(|key| differences(NAME, key, ours.get(key), theirs.get(key)));
    let stated = include_str!("../../../../../docs/compat.md");
    let unstated: Vec<String> = found
        .filter(|one| topic(one).is_none_or(|topic| !stated.contains(&format!("`{topic}`"))))
        .map(|one| format!("{}: ours {} theirs {}", one.place, one.ours, one.theirs))
        .collect();
    assert!(unstated.is_empty(), "{}", unstated.join("\n"));
}
