//! protokube's command line, and what it says where it cannot go on.
#![cfg(test)]

#[path = "../../model/tests/support/mod.rs"]
mod support;

use model::node::{node_config, stored};
use std::process::{Command, Output};
use support::{agents, expanded};

fn protokube(arguments: &[&str]) -> Output {
    // Nobody answers there, so that no test asks the metadata service of the machine it runs on.
    let mut command = Command::new(env!("CARGO_BIN_EXE_protokube"));
    command
        .args(arguments)
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9")
        .output()
        .unwrap()
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
        &["--node-config"],
        &["--master"],
        &["--node-config", "a", "b"],
    ] {
        assert_eq!(protokube(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn without_a_metadata_service_it_fails_and_says_why() {
    let config = node_config(&expanded(), "control-plane-eu-west-1a", "", &agents())
        .unwrap()
        .unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("node-config.yaml");
    std::fs::write(&file, stored(&config).unwrap().text).unwrap();
    let output = protokube(&["--node-config", file.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("instance-id"), "{said}");
}
