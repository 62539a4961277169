//! Properties that hold for any host, whatever happens to it.

use crate::test_host::{SimulatedUnit, TestHost, describe_difference, image_archives};
use node::config::Role;
use node::host::{HostObject, HostResource};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const ROLES: [Role; 2] = [Role::ControlPlane, Role::Node];

/// A desired state with every kind of object.
fn full_desired_state(host: &TestHost, role: Role, pods: u32) -> Vec<HostResource> {
    host.desired_state(role, |config| {
        config.kubelet.config["maxPods"] = json!(pods);
        config.packages = vec!["nfs-common".into()];
        config.images = image_archives(&host.cache_folder());
        config.units.push(node::config::UnitFile::new(
            "hook.service",
            "[Service]\nType=oneshot\nExecStart=/bin/true\n",
        ));
        config.units.push(node::config::UnitFile {
            enabled: false,
            ..node::config::UnitFile::new("unwanted.service", "[Service]\n")
        });
        for pod in config
            .control_plane
            .iter_mut()
            .flat_map(|control_plane| control_plane.static_pods.values_mut())
        {
            pod.metadata.annotations.clear();
        }
    })
}

fn unit_states(host: &TestHost) -> BTreeMap<String, SimulatedUnit> {
    let memory = host.memory.lock().unwrap();
    let mut units = memory.units.clone();
    // The number of starts may differ.
    units.values_mut().for_each(|unit| unit.starts = 0);
    units
}

#[test]
fn a_second_run_changes_nothing_and_starts_nothing() {
    for role in ROLES {
        let host = TestHost::new();
        let wanted = full_desired_state(&host, role, 110);
        let first = host.apply(&wanted);
        assert!(first.is_complete(), "{first:?}");
        assert!(!first.changes.is_empty());
        let (tree, units) = (host.file_tree(), host.memory.lock().unwrap().units.clone());
        assert_eq!(tree["/opt/cni/bin/portmap"], "0755 program ./portmap");
        assert_eq!(host.planned_changes(&wanted), Vec::<String>::new());
        assert_eq!(host.apply(&wanted).changes, Vec::<String>::new());
        assert_eq!(
            describe_difference(&host.file_tree(), &tree),
            Vec::<String>::new()
        );
        assert_eq!(host.memory.lock().unwrap().units, units);
    }
}

#[test]
fn a_reboot_runs_what_ended_once_more_and_leaves_what_runs_alone() {
    let host = TestHost::new();
    let wanted = full_desired_state(&host, Role::Node, 110);
    assert!(host.apply(&wanted).is_complete());
    host.reboot("queued");
    assert_eq!(host.planned_changes(&wanted), ["unit/hook.service"]);
    host.reboot("active");
    let starts = |name: &str| host.memory.lock().unwrap().units[name].starts;
    assert_eq!((starts("kubelet.service"), starts("hook.service")), (1, 1));
    assert_eq!(host.planned_changes(&wanted), ["unit/hook.service"]);
    assert!(host.apply(&wanted).is_complete());
    assert_eq!((starts("kubelet.service"), starts("hook.service")), (1, 2));
}

/// Files, units and number of changes of a run without interruptions.
type UndisturbedRun = (
    BTreeMap<String, String>,
    BTreeMap<String, SimulatedUnit>,
    usize,
);

fn undisturbed_run(role: Role) -> &'static UndisturbedRun {
    static ALL: [OnceLock<UndisturbedRun>; 2] = [OnceLock::new(), OnceLock::new()];
    let index = usize::from(role == Role::Node);
    ALL[index].get_or_init(|| {
        let host = TestHost::new();
        let wanted = full_desired_state(&host, role, 110);
        let changes = host.apply_and_die(&wanted, usize::MAX);
        assert_eq!(host.planned_changes(&wanted), Vec::<String>::new());
        (host.file_tree(), unit_states(&host), changes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_instance_that_dies_anywhere_ends_as_if_it_had_not(part in 0.0..1.0_f64, again in 0.0..1.0_f64, worker: bool) {
        let role = ROLES[usize::from(worker)];
        let (tree, units_after, changes) = undisturbed_run(role);
        let host = TestHost::new();
        let wanted = full_desired_state(&host, role, 110);
        for part in [part, again] {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in between")]
            host.apply_and_die(&wanted, (part * *changes as f64) as usize);
        }
        let last = host.apply(&wanted);
        prop_assert!(last.is_complete(), "{last:?}");
        prop_assert_eq!(describe_difference(&host.file_tree(), tree), Vec::<String>::new());
        prop_assert_eq!(describe_difference(&unit_states(&host), units_after), Vec::<String>::new());
        prop_assert_eq!(host.planned_changes(&wanted), Vec::<String>::new());
    }

    #[test]
    fn a_unit_runs_with_what_is_on_disk_wherever_the_instance_died_while_changing_it(after in 0..60_usize) {
        let host = TestHost::new();
        prop_assert!(host.apply(&full_desired_state(&host, Role::Node, 110)).is_complete());
        let other = full_desired_state(&host, Role::Node, 7);
        host.apply_and_die(&other, after);
        prop_assert!(host.apply(&other).is_complete());
        let kubelet = host.memory.lock().unwrap().units["kubelet.service"].clone();
        prop_assert!(kubelet.saw.contains("maxPods: 7"), "{}", kubelet.saw);
        prop_assert_eq!(kubelet.saw, host.read_text("/var/lib/kubelet/kubelet.conf"));
    }

    #[test]
    fn what_somebody_changed_is_mended_and_its_unit_started_again_wherever_the_instance_dies(
        pick: prop::sample::Index,
        after in 0..12_usize,
    ) {
        let host = TestHost::new();
        let wanted = full_desired_state(&host, Role::Node, 110);
        prop_assert!(host.apply(&wanted).is_complete());
        let tree = host.file_tree();
        let files: Vec<&str> = wanted.iter().filter_map(|resource| match &resource.thing {
            HostObject::File(file) => Some(file.path.as_str()),
            _ => None,
        }).collect();
        let path = *pick.get(&files);
        std::fs::write(host.host_path(path), "changed\n").unwrap();
        let starts = || host.memory.lock().unwrap().units["kubelet.service"].starts;
        let before = starts();
        host.apply_and_die(&wanted, after);
        prop_assert!(host.apply(&wanted).is_complete());
        prop_assert_eq!(describe_difference(&host.file_tree(), &tree), Vec::<String>::new());
        let needed = crate::test_host::dependencies_of(&wanted, "unit/kubelet.service").contains(&format!("file/{path}"));
        prop_assert_eq!(starts() > before, needed, "{}", path);
    }

    #[test]
    fn the_order_in_which_things_are_named_does_not_matter(order in any::<[u8; 32]>()) {
        let host = TestHost::new();
        let mut wanted = full_desired_state(&host, Role::ControlPlane, 110);
        let before = host.plan_text(&wanted);
        wanted.sort_by_key(|resource| {
            let id = format!("{resource:?}");
            crate::test_host::sha256_hex(&[id.as_bytes(), &order].concat())
        });
        prop_assert_eq!(host.plan_text(&wanted), before);
    }
}

#[test]
fn a_part_that_is_applied_first_hides_nothing_from_the_units_of_the_rest() {
    let host = TestHost::new();
    let wanted = full_desired_state(&host, Role::Node, 110);
    assert!(host.apply(&wanted).is_complete());
    std::fs::write(host.host_path("/etc/sysconfig/kubelet"), "changed\n").unwrap();
    let first = wanted
        .iter()
        .filter(|resource| matches!(resource.thing, HostObject::File(_)));
    let first: Vec<HostResource> = first
        .map(|resource| HostResource::new(resource.thing.clone()))
        .collect();
    crate::test_host::run(nodeup::host::forget_starts(
        wanted.clone(),
        host.host_context(),
    ))
    .unwrap();
    assert!(host.apply(&first).is_complete());
    assert_eq!(host.planned_changes(&wanted), ["unit/kubelet.service"]);
}

#[test]
fn no_plan_shows_a_key() {
    for role in ROLES {
        let host = TestHost::new();
        let wanted = full_desired_state(&host, role, 110);
        let secrets: Vec<String> = crate::test_host::minted_keysets()
            .values()
            .flat_map(|keyset| keyset.items.clone())
            .filter_map(|item| item.key)
            .flat_map(|key| {
                key.reveal()
                    .lines()
                    .skip(1)
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .filter(|line| line.len() > 20 && !line.starts_with('-'))
            .collect();
        assert!(!secrets.is_empty());
        let before = host.plan_text(&wanted);
        assert!(host.apply(&wanted).is_complete());
        // Changed files are represented by their hash.
        for path in ["/srv/kubernetes/ca.crt", "/var/lib/kubelet/kubeconfig"] {
            std::fs::write(host.host_path(path), "-----BEGIN PRIVATE KEY-----\nsecret").unwrap();
        }
        let after = host.plan_text(&wanted);
        for text in [before, after] {
            assert!(text.len() > 2 && !text.contains("PRIVATE KEY"));
            assert!(secrets.iter().all(|secret| !text.contains(secret.as_str())));
        }
    }
}

/// Everybody on an instance can list the arguments of programs, and notes go to its console.
#[test]
fn no_program_gets_a_key_as_an_argument_and_no_note_has_one() {
    for role in ROLES {
        let host = TestHost::new();
        let applied = host.apply(&full_desired_state(&host, role, 110));
        assert!(applied.is_complete(), "{applied:?}");
        let mut told = host.memory.lock().unwrap().calls.clone();
        told.extend_from_slice(&host.notes.lock().unwrap());
        assert!(!told.is_empty());
        let paths = host.file_tree().into_keys();
        let files = paths.map(|path| host.host_path(&path));
        let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
        let keys: Vec<String> = texts.filter(|text| text.contains("PRIVATE KEY")).collect();
        assert!(keys.len() > 1, "{role:?}");
        for line in keys.iter().flat_map(|text| text.lines()) {
            let is_telling = line.len() > 20 && !line.starts_with('-');
            let shown = told.iter().find(|text| is_telling && text.contains(line));
            assert!(shown.is_none(), "{role:?}: {shown:?}");
        }
    }
}
