//! Addons of a spec of kOps that is refused for its network plugin: with another one they are compared too.

use super::addons::{addon_of, differences, keyed, kops_objects, topic};
use super::{full_spec_of, read_text};
use full::FullSpec;
use full::addons::make_addons;
use spec::read::ReadOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What does not depend on the network plugin, nor on the roles of service accounts that the spec wants.
const COMPARED: [&str; 1] = ["metrics-server.addons.k8s.io"];

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
    assert!(equal > 5, "{equal} are equal");
}
