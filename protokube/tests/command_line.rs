//! protokube's command line, and its errors at the start.
#![cfg(test)]

use full::nodes::node_config;
use node::config::to_stored;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use test_support::{expanded_spec, made_up_agents};

fn run_protokube(arguments: &[&str]) -> Output {
    // Nothing listens there, so that no test calls the metadata service of this host.
    let mut command = Command::new(env!("CARGO_BIN_EXE_protokube"));
    command
        .args(arguments)
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9")
        .env("http_proxy", "http://127.0.0.1:10")
        .output()
        .unwrap()
}

/// Writes the configurations of a control plane. `named` replaces the sha256 of NodeConfig in BootConfig.
fn write_configurations(folder: &Path, named: Option<&str>) -> [String; 2] {
    let config = node_config(
        &expanded_spec().full,
        "control-plane-eu-west-1a",
        "",
        &made_up_agents(),
    )
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
    let [boot, node] = write_configurations(folder, named);
    run_protokube(&["--boot-config", &boot, "--node-config", &node])
}

#[test]
fn it_says_its_version() {
    let output = run_protokube(&["--version"]);
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
        assert_eq!(
            run_protokube(arguments).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

#[test]
fn without_a_metadata_service_it_fails_and_says_why_in_a_stage_line() {
    let folder = tempfile::TempDir::new().unwrap();
    let output = with_configurations(folder.path(), None);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let lines = node::report::stage_lines(&errors);
    let line = lines.first().expect("a stage line");
    assert_eq!(line.source, "protokube");
    assert!(line.detail.contains("instance-id"), "{errors}");
    // The whole chain of causes, although a proxy is set, and more than one attempt.
    assert!(
        line.detail.to_lowercase().contains("connection refused"),
        "{errors}"
    );
    assert!(lines.len() > 2, "{errors}");
}

/// Slim and hardened images have none, and variables of the environment may name what is no file of them.
#[test]
fn without_certificates_of_authorities_it_does_not_panic() {
    let folder = tempfile::TempDir::new().unwrap();
    let [boot, node] = write_configurations(folder.path(), None);
    for (variable, value) in [
        ("SSL_CERT_FILE", "/nonexistent"),
        ("SSL_CERT_FILE", "/etc/passwd"),
        ("SSL_CERT_DIR", "/nonexistent"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_protokube"));
        command.args(["--boot-config", &boot, "--node-config", &node]);
        command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9");
        let output = command.env(variable, value).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{variable}={value}: {errors}"
        );
        assert!(!errors.contains("panicked"), "{variable}={value}: {errors}");
    }
}

#[test]
fn arguments_that_are_no_text_are_a_usage_error() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"--\xff");
    let output = Command::new(env!("CARGO_BIN_EXE_protokube"))
        .arg(odd)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn asked_to_stop_it_ends_well() {
    let folder = tempfile::TempDir::new().unwrap();
    let [boot, node] = write_configurations(folder.path(), None);
    // A metadata service that accepts connections but never answers.
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
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.contains("is not the NodeConfig of this instance"),
        "{errors}"
    );
}
