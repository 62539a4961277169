//! protokube's command line, and what it says where it cannot go on.
#![cfg(test)]

use full::nodes::node_config;
use node::config::to_stored;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use test_support::{agents, expanded};

fn protokube(arguments: &[&str]) -> Output {
    // Nobody answers there, so that no test asks the metadata service of the machine it runs on.
    let mut command = Command::new(env!("CARGO_BIN_EXE_protokube"));
    command
        .args(arguments)
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9")
        .output()
        .unwrap()
}

/// The configurations of a group's machine, BootConfig naming that NodeConfig's hash or another.
fn configurations(folder: &Path, named: Option<&str>) -> [String; 2] {
    let config = node_config(&expanded().full, "control-plane-eu-west-1a", "", &agents())
        .unwrap()
        .unwrap();
    let stored = to_stored(&config).unwrap();
    let [boot, node] = ["boot.yaml", "node-config.yaml"].map(|name| folder.join(name));
    let named = named.unwrap_or(&stored.sha256);
    let text = format!(
        "format: 1\ncluster: {}\ngroup: {}\nrole: control-plane\nnodeConfig: {named}\nconfigBase: s3://state/x\n",
        config.cluster, config.group
    );
    std::fs::write(&boot, text).unwrap();
    std::fs::write(&node, stored.text).unwrap();
    [boot, node].map(|path| path.to_str().unwrap().to_owned())
}

fn with_configurations(folder: &Path, named: Option<&str>) -> Output {
    let [boot, node] = configurations(folder, named);
    protokube(&["--boot-config", &boot, "--node-config", &node])
}

#[test]
fn it_says_its_version() {
    let output = protokube(&["--version"]);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        concat!("protokube ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn what_it_does_not_understand_is_a_usage_error() {
    for arguments in [
        &[][..],
        &["--node-config", "a"],
        &["--boot-config"],
        &["--master"],
        &["--boot-config", "a", "--node-config", "b", "c"],
    ] {
        assert_eq!(protokube(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn without_a_metadata_service_it_fails_and_says_why_in_a_stage_line() {
    let folder = tempfile::TempDir::new().unwrap();
    let output = with_configurations(folder.path(), None);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let lines = node::report::stage_lines(&said);
    let line = lines.first().expect("a stage line");
    assert_eq!(line.source, "protokube");
    assert!(line.detail.contains("instance-id"), "{said}");
}

#[test]
fn asked_to_stop_it_ends_well() {
    let folder = tempfile::TempDir::new().unwrap();
    let [boot, node] = configurations(folder.path(), None);
    // A metadata service that takes the call and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let mut running = Command::new(env!("CARGO_BIN_EXE_protokube"))
        .args(["--boot-config", &boot, "--node-config", &node])
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint)
        .spawn()
        .unwrap();
    let _call = silent.accept().unwrap();
    let id = Pid::from_child(&running);
    kill_process(id, Signal::TERM).unwrap();
    assert!(running.wait().unwrap().success());
}

#[test]
fn another_machines_configuration_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    let output = with_configurations(folder.path(), Some(&"0".repeat(64)));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("is not the NodeConfig of this instance"),
        "{said}"
    );
}
