//! `kctl toolbox dump`. The lab shows a dump of a real cluster, and that no secret is in it.

use crate::instances::{Cluster, node_object};
use crate::scenario::NAME;
use std::os::unix::fs::PermissionsExt;
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
