//! `kctl toolbox dump`. The lab shows a dump of a real cluster, and that no secret is in it.

use crate::instances::{Cluster, node_object};
use crate::scenario::NAME;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unpacks an archive of the cluster's home, and returns the folder of its entries.
fn unpack(cluster: &Cluster, archive: &str) -> std::path::PathBuf {
    let to = cluster.kctl.home_path("unpacked");
    std::fs::create_dir(&to).expect("a folder");
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(cluster.kctl.home_path(archive))
        .arg("--directory")
        .arg(&to)
        .status();
    assert!(status.expect("tar").success());
    let mut folders = std::fs::read_dir(&to).expect("a folder");
    folders.next().expect("one entry").expect("an entry").path()
}

#[test]
fn a_dump_has_what_could_be_read_and_says_what_not() {
    let cluster = Cluster::new_cluster(2);
    let console = "[    1.0] booting".to_owned();
    cluster.report_boots(&[(cluster.control_plane.as_str(), console.clone())]);
    let api = cluster.start_api();
    let node = node_object(&cluster.control_plane, "control-plane", true);
    api.set_objects(vec![node], cluster.control_plane_pods());
    let dump = ["toolbox", "dump", NAME, "--api-server", &api.url];
    let out = ["--out", "dump.tar.gz"];
    let ran = cluster.kctl.run(&[&dump[..], &out].concat());
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    assert!(ran.err.contains("could not be read"), "{}", ran.err);
    let file = std::fs::metadata(cluster.kctl.home_path("dump.tar.gz")).expect("the archive");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);

    let folder = unpack(&cluster, "dump.tar.gz");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    assert!(read("spec.json").contains("InstanceGroup"));
    assert!(read("instances.json").contains(&cluster.control_plane));
    assert!(read("health.json").contains("findings"));
    assert!(read("cloud/resources.json").contains("vpc-"));
    assert!(read("kubernetes/pods.json").contains("kube-apiserver"));
    let written = format!("cloud/consoles/{}.txt", cluster.control_plane);
    assert_eq!(read(&written), console);
    assert!(read("store/objects.txt").contains("operations/"));
    assert!(read("store/objects.txt").contains("pki/private/"));
    // The test's API knows no services.
    let problems = read("problems.txt");
    assert!(
        problems.contains("kubernetes/services.json: "),
        "{problems}"
    );

    let again = cluster.kctl.run(&[&dump[..], &out].concat());
    assert_eq!(again.code, 1, "{}", again.all_output());
    assert!(
        again.err.contains("name another file with --out"),
        "{}",
        again.err
    );
}

/// A text that stands for a secret.
const SECRET: &str = "hunter2-is-no-password";

/// Every file below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let below = entries.flat_map(|entry| {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files_below(&path),
            false => vec![path],
        }
    });
    below.collect()
}

#[test]
fn no_secret_is_in_a_dump_a_log_without_end_ends_and_that_of_a_pod_that_went_is_no_problem() {
    let cluster = Cluster::new_cluster(1);
    let kctl = &cluster.kctl;
    let group = [
        "get",
        "ig",
        "nodes-eu-west-1a",
        "--name",
        NAME,
        "-o",
        "yaml",
    ];
    let group = kctl.run(&group).expect_success();
    let part = format!("- name: a.sh\n    type: text/x-shellscript\n    content: 'echo {SECRET}'");
    let group = group.replace(
        "\nspec:\n",
        &format!("\nspec:\n  additionalUserData:\n  {part}\n"),
    );
    let file = kctl.write_file("group.yaml", &group);
    kctl.run(&["replace", "-f", &file]).expect_success();
    kctl.run(&["update", NAME, "--yes"]).expect_success();
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    let node = node_object(&cluster.control_plane, "control-plane", true);
    let variable = json!([{"name": "PASSWORD", "value": SECRET}]);
    let pod = |namespace: &str, name: &str| {
        json!({"metadata": {"name": name, "namespace": namespace},
            "spec": {"nodeName": cluster.control_plane, "containers": [{"name": "a", "image": "a", "env": variable}]}})
    };
    let mut gone = pod("kube-system", "gone");
    gone["spec"]["nodeName"] = json!("i-gone");
    let pods = vec![
        pod("default", "own"),
        pod("kube-system", "endless"),
        gone,
        pod("kube-system", "unknown-to-its-kubelet"),
    ];
    api.set_objects(vec![node], pods);
    api.set_log("endless", "x".repeat(17 << 20));
    let dump = ["toolbox", "dump", NAME, "--api-server", &api.url];
    kctl.run(&[&dump[..], &["--out", "dump.tar.gz"]].concat())
        .expect_success();
    let folder = unpack(&cluster, "dump.tar.gz");
    for file in files_below(&folder) {
        let bytes = std::fs::read(&file).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(SECRET), "{}", file.display());
    }
    let problems = std::fs::read_to_string(folder.join("problems.txt")).expect("problems");
    let read = |pod: &str| {
        let log = folder.join(format!("kubernetes/logs/{pod}/a.log"));
        std::fs::read_to_string(log).unwrap_or_else(|error| panic!("{error}: {problems}"))
    };
    let log = read("endless");
    assert!(log.ends_with("\n(cut off by kctl)\n") && log.len() < 17 << 20);
    assert!(read("gone").starts_with("(no log: "), "{}", read("gone"));
    let of_logs: Vec<&str> = problems
        .lines()
        .filter_map(|line| line.strip_prefix("kubernetes/logs/")?.split_once('/'))
        .map(|(pod, _)| pod)
        .collect();
    assert_eq!(of_logs, ["unknown-to-its-kubelet"], "{problems}");
}

#[test]
fn a_dump_does_without_an_api() {
    let cluster = Cluster::new_cluster(1);
    let dump = [
        "toolbox",
        "dump",
        NAME,
        "--api-server",
        "https://127.0.0.1:1",
    ];
    let ran = cluster
        .kctl
        .run(&[&dump[..], &["--out", "dump.tar.gz"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    let folder = unpack(&cluster, "dump.tar.gz");
    let problems = std::fs::read_to_string(folder.join("problems.txt")).expect("problems");
    assert!(problems.contains("kubernetes: "), "{problems}");
    assert!(folder.join("instances.json").exists());
}
