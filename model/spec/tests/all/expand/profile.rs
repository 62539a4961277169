//! `spec.profile: cis`: what it makes of a cluster passes the controls that settings decide, and the user's own values stay.

use super::laws::assert_laws;
use super::{new_cluster, offline_facts, try_expand, zone_names};
use fleet::{CisNode, CisObserved, CisResult, NodeFiles, judge_cis};
use node::config::{InstanceFacts, NodeConfig, Role, etcd_pods, host_files};
use serde_json::{Value, json};
use spec::create::CreateOptions;
use spec::expand::Expanded;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use test_support::{expanded_with_fields, node_config_of};
use time::OffsetDateTime;

/// The script that lists files, as nodes run it.
const SCRIPT: &str = "/usr/local/sbin/kctl-node-files";

fn control_plane(expanded: &Expanded) -> NodeConfig {
    node_config_of(&expanded.full, Role::ControlPlane, "")
}

/// The list that the script writes where these files are.
fn listed_files(config: &NodeConfig, script: &str) -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("kctl-cis-{}-{number}", std::process::id());
    let root = std::env::temp_dir().join(name);
    let path_of = |path: &str| root.join(path.trim_start_matches('/'));
    for file in host_files(config, &InstanceFacts::placeholder()).unwrap() {
        let path = path_of(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &file.content).unwrap();
        let mode = u32::from_str_radix(&file.mode, 8).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir_all(path_of("/var/log")).unwrap();
    let run = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&root)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let list = fs::read_to_string(path_of("/var/log/kctl-node-files.txt")).unwrap();
    remove(&root);
    list
}

fn remove(root: &Path) {
    fs::remove_dir_all(root).unwrap();
}

/// What the API would show of a control plane with this configuration.
fn observed(config: &NodeConfig, script: &str) -> CisObserved {
    let own = config.control_plane.as_ref().unwrap();
    let etcd = etcd_pods(config, "/mnt/master-vol-1/var/etcd/data");
    let etcd = etcd.iter().map(|(_, pod)| pod);
    let pods = own.static_pods.values().chain(etcd).map(|pod| {
        let mut pod = serde_json::to_value(pod).unwrap();
        pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("1");
        pod["spec"]["nodeName"] = json!("i-1");
        pod
    });
    // What kubelet fills in itself.
    let mut kubelet = json!({"eventRecordQPS": 50, "streamingConnectionIdleTimeout": "4h0m0s"});
    let written = config.kubelet.config.as_object().unwrap().clone();
    kubelet.as_object_mut().unwrap().extend(written);
    let list = listed_files(config, script);
    CisObserved {
        nodes: vec![CisNode {
            name: "i-1".to_owned(),
            control_plane: true,
            kubelet: Ok(kubelet),
            files: NodeFiles::read(&list, OffsetDateTime::now_utc()),
        }],
        lists: [("pods", Ok(pods.collect::<Vec<Value>>()))].into(),
        admission: BTreeMap::new(),
    }
}

/// The controls with this result, of those that settings decide: not modes and owners, and not what users make of the cluster.
fn of_settings(observed: &CisObserved, result: CisResult) -> Vec<&'static str> {
    let rows = judge_cis(observed).into_iter();
    let of_settings = |number: &str| {
        !["1.1.", "4.1.", "5."]
            .iter()
            .any(|one| number.starts_with(one))
    };
    rows.filter(|row| row.result == result && of_settings(row.number))
        .map(|row| row.number)
        .collect()
}

fn cis() -> Expanded {
    expanded_with_fields(&json!({"profile": "cis"}))
}

fn script_of(config: &NodeConfig) -> String {
    let mut files = config.files.iter();
    let script = files.find(|file| file.path == SCRIPT);
    script.expect("the script").content.clone()
}

#[test]
fn a_cluster_of_the_profile_passes_what_settings_decide_and_the_defaults_lack_these() {
    let config = control_plane(&cis());
    let script = script_of(&config);
    let with = observed(&config, &script);
    assert_eq!(of_settings(&with, CisResult::Fail), [""; 0]);
    // Images that are always pulled, people's credentials, and what is in files that this control plane lacks.
    assert_eq!(
        of_settings(&with, CisResult::NotKnown),
        [
            "1.2.11", "1.2.28", "2.7", "3.1.1", "3.1.2", "3.2.2", "4.2.7"
        ]
    );
    let without = control_plane(&expanded_with_fields(&json!({})));
    assert_eq!(
        of_settings(&observed(&without, &script), CisResult::Fail),
        [
            "1.2.15", "1.2.16", "1.2.17", "1.2.18", "1.2.19", "1.2.30", "1.3.2", "1.3.7", "1.4.1",
            "1.4.2"
        ]
    );
}

#[test]
fn files_of_a_node_have_the_modes_of_the_benchmark() {
    let config = control_plane(&cis());
    let rows = judge_cis(&observed(&config, &script_of(&config)));
    let of = |number: &str| rows.iter().find(|row| row.number == number).unwrap();
    for number in ["1.1.15", "1.1.17", "4.1.3", "4.1.5", "4.1.7", "4.1.9"] {
        assert_eq!(of(number).result, CisResult::Pass, "{:?}", of(number));
    }
    // Every file that a control is about is looked for.
    for row in &rows {
        let unlisted = row.why.contains("its list of files has no ");
        let expected = ["1.1.21", "1.2.28", "2.7"].contains(&row.number);
        assert_eq!(unlisted, expected, "{row:?}");
    }
}

#[test]
fn every_node_lists_its_files_and_only_control_planes_have_the_files_of_the_api_server() {
    let expanded = cis();
    for role in [Role::ControlPlane, Role::Node] {
        let config = node_config_of(&expanded.full, role, "");
        let has = |path: &str| config.files.iter().any(|file| file.path == path);
        assert!(has(SCRIPT) && has("/etc/systemd/system/kctl-node-files.service"));
        let timer = config
            .units
            .iter()
            .find(|unit| unit.name == "kctl-node-files.timer");
        assert!(timer.is_some_and(|timer| timer.enabled));
        for file in ["admission.yaml", "audit-policy.yaml"] {
            let path = format!("/srv/kubernetes/kube-apiserver/{file}");
            assert_eq!(has(&path), role == Role::ControlPlane, "{path}");
        }
    }
    let plain = node_config_of(&expanded_with_fields(&json!({})).full, Role::Node, "");
    assert!(plain.files.iter().all(|file| file.path != SCRIPT));
}

#[test]
fn values_of_the_user_win_and_the_laws_of_expansion_hold() {
    let (mut cluster, groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        ..CreateOptions::default()
    });
    let mut spec = serde_json::to_value(&cluster.spec).unwrap();
    let own = json!({
        "profile": "cis",
        "fileAssets": [{"name": "p", "path": "/srv/kubernetes/kube-apiserver/audit-policy.yaml", "content": "mine"}],
        "kubeAPIServer": {
            "admissionControlConfigFile": "/srv/kubernetes/kube-apiserver/mine.yaml",
            "appendAdmissionPlugins": ["AlwaysPullImages"],
            "auditLogMaxAge": 365,
            "disableAdmissionPlugins": ["DenyServiceExternalIPs"],
        },
        "kubeControllerManager": {"terminatedPodGCThreshold": 5},
        "kubelet": {"podPidsLimit": 100},
    });
    spec.as_object_mut()
        .unwrap()
        .extend(own.as_object().unwrap().clone());
    cluster.spec = serde_json::from_value(spec).unwrap();
    assert_laws(&cluster, &groups, &offline_facts());
    let full = try_expand(&cluster, &groups, &offline_facts())
        .unwrap()
        .full;
    let flags = &full.control_plane.api_server.flags;
    assert_eq!(flags.get("audit-log-maxage"), Some("365"));
    // EventRateLimit would not start without the limits in kctl's own file.
    let plugins = flags.get("enable-admission-plugins").unwrap();
    assert!(plugins.contains("AlwaysPullImages"), "{plugins}");
    for off in ["DenyServiceExternalIPs", "EventRateLimit"] {
        assert!(!plugins.contains(off), "{plugins}");
    }
    let manager = &full.control_plane.controller_manager.flags;
    assert_eq!(manager.get("terminated-pod-gc-threshold"), Some("5"));
    let config = node_config_of(&full, Role::ControlPlane, "");
    assert_eq!(config.kubelet.config["podPidsLimit"], 100);
    let policies = config.files.iter();
    let policies: Vec<&str> = policies
        .filter(|file| file.path.ends_with("audit-policy.yaml"))
        .map(|file| file.content.as_str())
        .collect();
    assert_eq!(policies, ["mine"]);
    assert!(
        config
            .files
            .iter()
            .all(|file| !file.path.ends_with("admission.yaml"))
    );
}
