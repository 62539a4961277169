//! What is really built runs. These need the cache to be filled: `lab content` first.

use lab::content::archive::Tree;
use lab::content::key::sha256;
use lab::content::modules::module;
use lab::content::{Served, Store, sources};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn served() -> Served {
    let cache = std::env::var_os("KCTL_CACHE").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/kctl"),
        PathBuf::from,
    );
    let store = Store::open(&cache.join("lab")).unwrap();
    store.ready(None, &mut |line| panic!("the cache is not filled, run `lab content`: {line}")).unwrap().0
}

fn version(name: &str) -> String {
    module(name).unwrap().version(&sources()).unwrap()
}

/// What a program says, on both outputs.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// An image's files, its layers unpacked one over the other.
fn unpack(registry: &Path, repository: &str, into: &Path) {
    let layout = registry.join(repository);
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |digest: &Value| layout.join("blobs/sha256").join(digest.as_str().unwrap().strip_prefix("sha256:").unwrap());
    let index = read(&layout.join("index.json"));
    let manifest = read(&blob(&index["manifests"][0]["digest"]));
    for layer in manifest["layers"].as_array().unwrap() {
        let path = blob(&layer["digest"]);
        assert_eq!(layer["digest"], format!("sha256:{}", sha256(&path).unwrap()));
        tar::Archive::new(fs::File::open(path).unwrap()).unpack(into).unwrap();
    }
}

#[test]
#[ignore = "needs what `lab content` builds, and root for chroot"]
fn programs_in_images_say_their_version() {
    let served = served();
    let kubernetes = format!("v{}", version("kubernetes"));
    let component = |name: &'static str| (format!("registry.k8s.io/{name}"), vec!["/usr/local/bin/", name], "--version", kubernetes.clone());
    let runs = [
        component("kube-apiserver"),
        component("kube-controller-manager"),
        component("kube-scheduler"),
        component("kube-proxy"),
        ("registry.k8s.io/kube-proxy".into(), vec!["/usr/sbin/iptables"], "-V", "nf_tables".into()),
        ("registry.k8s.io/kube-proxy".into(), vec!["/usr/sbin/nft"], "--version", "nftables v".into()),
        ("registry.k8s.io/etcd".into(), vec!["/usr/local/bin/etcd"], "--version", version("etcd")),
        ("registry.k8s.io/etcd".into(), vec!["/usr/local/bin/etcdctl"], "version", version("etcdctl")),
        ("registry.k8s.io/pause".into(), vec!["/pause"], "-v", "3.10.1".into()),
        ("registry.k8s.io/coredns/coredns".into(), vec!["/coredns"], "-version", version("coredns")),
        ("registry.k8s.io/cpa/cluster-proportional-autoscaler".into(), vec!["/cluster-proportional-autoscaler"], "-version", "stand-in".into()),
        ("registry.k8s.io/provider-aws/cloud-controller-manager".into(), vec!["/bin/aws-cloud-controller-manager"], "--version", version("cloud-provider")),
        ("ghcr.io/flannel-io/flannel".into(), vec!["/opt/bin/flanneld"], "--version", version("flannel")),
        ("ghcr.io/flannel-io/flannel".into(), vec!["/usr/sbin/iptables-save"], "-V", "nf_tables".into()),
        ("ghcr.io/flannel-io/flannel-cni-plugin".into(), vec!["/bin/cp"], "--help", "Usage".into()),
        ("docker.io/library/busybox".into(), vec!["/bin/echo"], "hello", "hello".into()),
    ];
    for (repository, program, argument, expected) in runs {
        let root = tempfile::tempdir().unwrap();
        unpack(&served.registry(), &repository, root.path());
        let text = said(Command::new("chroot").arg(root.path()).arg(program.concat()).arg(argument));
        assert!(text.contains(&expected), "{repository} {}: {text}", program.concat());
    }
}

#[test]
#[ignore = "needs what `lab content` builds"]
fn downloads_say_their_version() {
    let served = served();
    let kubernetes = version("kubernetes");
    let folder = |url: String| served.mirror().join(url);
    let kubelet = folder(format!("dl.k8s.io/release/v{kubernetes}/bin/linux/amd64/kubelet"));
    assert!(said(Command::new(kubelet).arg("--version")).contains(&kubernetes));
    let kubectl = served.tools().join("kubectl");
    assert!(said(Command::new(kubectl).args(["version", "--client"])).contains(&kubernetes));
    let crictl = served.tools().join("crictl");
    assert!(said(Command::new(crictl).arg("--version")).contains("stand-in"));

    let unpacked = tempfile::tempdir().unwrap();
    let version = version("containerd");
    let archive = folder(format!(
        "github.com/containerd/containerd/releases/download/v{version}/containerd-{version}-linux-amd64.tar.gz"
    ));
    let archive = flate2::read::GzDecoder::new(fs::File::open(archive).unwrap());
    tar::Archive::new(archive).unpack(unpacked.path()).unwrap();
    for program in ["containerd", "ctr"] {
        let text = said(Command::new(unpacked.path().join("bin").join(program)).arg("--version"));
        assert!(text.contains(&version), "{text}");
    }
    assert!(unpacked.path().join("bin/containerd-shim-runc-v2").exists());
}

/// Real programs, packed twice.
#[test]
#[ignore = "needs what `lab content` builds"]
fn real_archives_have_the_same_bytes_each_time() {
    let served = served();
    let pack = || {
        let tree = Tree::default().import(&served.tools(), |_| true).unwrap();
        let mut bytes = Vec::new();
        tree.tgz(&mut bytes).unwrap();
        bytes
    };
    assert!(pack() == pack());
}
