//! nodeup on a machine whose metadata service and state store are at hand.
#![cfg(test)]

#[path = "../../model/tests/support/mod.rs"]
mod cluster;
mod support;

use cluster::{agents, expanded};
use model::full::Role;
use model::node::{BootConfig, StoredNodeConfig, node_config, stored};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use support::imds::metadata_service;
use tempfile::TempDir;

/// A state store in a folder with a control plane's NodeConfig, and a BootConfig that names it.
fn machine(change: impl FnOnce(&mut BootConfig, &mut StoredNodeConfig)) -> TempDir {
    let folder = TempDir::new().unwrap();
    let expanded = expanded();
    let config = node_config(
        &expanded,
        "control-plane-eu-west-1a",
        "-----BEGIN CERTIFICATE-----\n",
        &agents(),
    );
    let mut config = stored(&config.unwrap().unwrap()).unwrap();
    let mut boot = BootConfig {
        format: 1,
        cluster: "a.example.com".into(),
        group: "control-plane-eu-west-1a".into(),
        role: Role::ControlPlane,
        node_config: config.sha256.clone(),
        config_base: Some(format!("file://{}", folder.path().join("store").display())),
        bootstrap_servers: Vec::new(),
        ca_certificates: None,
    };
    change(&mut boot, &mut config);
    let object = folder.path().join("store").join(&config.keys[0]);
    std::fs::create_dir_all(object.parent().unwrap()).unwrap();
    std::fs::write(object, &config.text).unwrap();
    let boot = model::api::write::to_yaml(&boot).unwrap();
    std::fs::write(folder.path().join("boot.yaml"), boot).unwrap();
    folder
}

fn nodeup(folder: &Path, dry_run: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodeup"));
    command.arg("--boot-config").arg(folder.join("boot.yaml"));
    if dry_run {
        command.arg("--dry-run");
    }
    command
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata_service())
        .output()
        .unwrap()
}

/// `stage status` of each line, and the last one's detail.
fn stages(output: &Output) -> (Vec<String>, String) {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let outline = lines.iter().map(|line| {
        format!(
            "{} {}",
            line["stage"].as_str().unwrap(),
            line["status"].as_str().unwrap()
        )
    });
    (
        outline.collect(),
        lines.last().unwrap()["detail"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn a_dry_run_shows_the_files_of_this_machine() {
    let output = nodeup(machine(|_, _| ()).path(), true);
    assert!(output.status.success(), "{output:?}");
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = shown["files"].as_array().unwrap();
    let kubelet = files
        .iter()
        .find(|file| file["path"] == "/var/lib/kubelet/kubelet.conf")
        .unwrap();
    let kubelet: Value = serde_saphyr::from_str(kubelet["content"].as_str().unwrap()).unwrap();
    assert_eq!(kubelet["providerID"], "aws:///eu-west-1b/i-0abc");
    let (outline, _) = stages(&output);
    let expected = ["identify", "fetch", "verify"]
        .map(|stage| [format!("{stage} started"), format!("{stage} finished")]);
    assert_eq!(outline, expected.concat());
}

#[test]
fn without_it_nodeup_says_that_it_does_not_build_yet() {
    let output = nodeup(machine(|_, _| ()).path(), false);
    let (outline, detail) = stages(&output);
    assert_eq!(
        (output.status.code(), outline.last().unwrap().as_str()),
        (Some(1), "build failed")
    );
    assert!(detail.contains("does not build or apply yet"), "{detail}");
}

#[test]
fn a_configuration_with_another_hash_is_refused() {
    let folder = machine(|_, config| config.text.push('\n'));
    let output = nodeup(folder.path(), true);
    let (outline, detail) = stages(&output);
    assert_eq!(
        (output.status.code(), outline.last().unwrap().as_str()),
        (Some(1), "verify failed")
    );
    assert!(detail.contains("user data names"), "{detail}");
}

#[test]
fn a_configuration_that_is_not_there_is_named() {
    let folder = machine(|boot, _| boot.node_config = "0".repeat(64));
    let (outline, detail) = stages(&nodeup(folder.path(), true));
    assert_eq!(outline.last().unwrap(), "fetch failed");
    assert!(detail.contains("nodeupconfig-000"), "{detail}");
}

#[test]
fn a_worker_says_whom_it_would_have_to_ask() {
    let folder = machine(|boot, _| {
        boot.role = Role::Node;
        boot.config_base = None;
        boot.bootstrap_servers = vec!["https://kops-controller.internal.a.example.com:3988".into()];
    });
    let output = nodeup(folder.path(), true);
    let (outline, detail) = stages(&output);
    assert_eq!(
        (output.status.code(), outline.last().unwrap().as_str()),
        (Some(1), "fetch failed")
    );
    assert!(
        detail.contains("kops-controller.internal.a.example.com"),
        "{detail}"
    );
}

#[test]
fn user_data_of_a_newer_release_is_refused_by_number() {
    let folder = machine(|boot, _| boot.format = 7);
    let (outline, detail) = stages(&nodeup(folder.path(), true));
    assert_eq!(outline, ["identify started", "identify failed"]);
    assert!(detail.contains("format 7"), "{detail}");
}
