//! What `tests/release/catalog` would ask for, by what this kctl renders.

use crate::kctl::repository_folder;
use std::process::Command;

#[test]
fn the_check_of_the_catalog_finds_what_instances_control_planes_and_addons_take() {
    let mut list = Command::new("python3");
    list.arg(repository_folder().join("tests/release/catalog"))
        .arg("--list")
        .env("KCTL_BIN", env!("CARGO_BIN_EXE_kctl"));
    let ran = list.output().expect("python3");
    let said = String::from_utf8_lossy(&ran.stdout);
    let failed = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{failed}");
    for start in [
        "file  https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubelet",
        // Not in the catalog, so only what is rendered names it.
        "file  https://github.com/containernetworking/plugins/releases/download/v1.6.2/cni-plugins-linux-amd64",
        "image  registry.k8s.io/etcd:v3.5.",
        "image  registry.k8s.io/etcd:v3.6.",
        "image  registry.k8s.io/kube-proxy:v1.33.",
        "image  registry.k8s.io/pause:",
        // Named by a variable and by an argument.
        "image  docker.io/rancher/klipper-helm:",
        "image  quay.io/jetstack/cert-manager-acmesolver:",
        "image  nvcr.io/nvidia/k8s/dcgm-exporter:",
        "instance image  136693071363/debian-13-arm64-",
        "instance image  099720109477/ubuntu/images/",
    ] {
        let listed = said.lines().any(|line| line.starts_with(start));
        assert!(listed, "{start} is not in\n{said}");
    }
}
