//! What is really built runs. These need the cache to be filled: `lab content` first.

use lab::content::archive::Tree;
use lab::content::key::sha256;
use lab::content::modules::{MODULES, module};
use lab::content::{Served, Store, sources};
use lab::daemon::authority;
use lab::host::cache;
use lab::services::ca::Ca;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn served() -> Served {
    let authority = Ca::open(&authority().unwrap()).unwrap().pem().to_owned();
    let store = Store::open(&cache().unwrap()).unwrap();
    let mut filled = |line: &str| {
        assert!(
            !line.ends_with("building"),
            "run `lab content` first: {line}"
        );
    };
    store.ready(Some(authority), &mut filled).unwrap().0
}

fn version(name: &str) -> String {
    module(name).unwrap().version(&sources()).unwrap()
}

/// What a program says, on both outputs.
fn said(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// An image's files, its layers unpacked one over the other.
fn unpack(registry: &Path, repository: &str, into: &Path) {
    let layout = registry.join(repository);
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |digest: &Value| {
        layout
            .join("blobs/sha256")
            .join(digest.as_str().unwrap().strip_prefix("sha256:").unwrap())
    };
    let index = read(&layout.join("index.json"));
    let manifest = read(&blob(&index["manifests"][0]["digest"]));
    for layer in manifest["layers"].as_array().unwrap() {
        let path = blob(&layer["digest"]);
        assert_eq!(
            layer["digest"],
            format!("sha256:{}", sha256(&path).unwrap())
        );
        tar::Archive::new(fs::File::open(path).unwrap())
            .unpack(into)
            .unwrap();
    }
}

/// Repository, program, argument, and what it says; `{NAME}` is the version of that module.
const RUNS: &str = "
registry.k8s.io/kube-apiserver          /usr/local/bin/kube-apiserver          --version v{kubernetes}
registry.k8s.io/kube-controller-manager /usr/local/bin/kube-controller-manager --version v{kubernetes}
registry.k8s.io/kube-scheduler          /usr/local/bin/kube-scheduler          --version v{kubernetes}
registry.k8s.io/kube-proxy              /usr/local/bin/kube-proxy              --version v{kubernetes}
registry.k8s.io/kube-proxy              /usr/sbin/iptables                     -V        (nf_tables)
registry.k8s.io/kube-proxy              /usr/sbin/ip6tables-restore            -V        (nf_tables)
registry.k8s.io/kube-proxy              /usr/sbin/nft                          --version nftables
registry.k8s.io/kube-proxy              /usr/sbin/conntrack                    --version conntrack
registry.k8s.io/kube-proxy              /go-runner                             -help     -also-stdout
registry.k8s.io/etcd                    /usr/local/bin/etcd                    --version {etcd}
registry.k8s.io/etcd                    /usr/local/bin/etcdctl                 version   {etcdctl}
registry.k8s.io/etcd                    /usr/local/bin/etcdutl                 version   {etcdctl}
registry.k8s.io/pause                   /pause                                 -v        3.10.1
registry.k8s.io/coredns/coredns         /coredns                               -version  CoreDNS-{coredns}
registry.k8s.io/cpa/cluster-proportional-autoscaler /cluster-proportional-autoscaler -version stand-in
registry.k8s.io/provider-aws/cloud-controller-manager /bin/aws-cloud-controller-manager --version v{cloud-provider}
ghcr.io/flannel-io/flannel              /opt/bin/flanneld                      --version v{flannel}
ghcr.io/flannel-io/flannel              /usr/sbin/iptables-save                -V        (nf_tables)
ghcr.io/flannel-io/flannel-cni-plugin   /bin/cp                                --help    Usage
docker.io/library/busybox               /bin/echo                              hello     hello
ghcr.io/kctl/lab-test                   /web                                   -help     -lookup
";

#[test]
#[ignore = "needs what `lab content` builds, and root for chroot"]
fn programs_in_images_say_their_version() {
    let served = served();
    let mut runs = RUNS.to_owned();
    for module in MODULES {
        runs = runs.replace(&format!("{{{}}}", module.name), &version(module.name));
    }
    let runs: Vec<Vec<&str>> = runs
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(runs.len() > 20);
    for run in runs {
        let [repository, program, argument, expected] = run[..] else {
            panic!("{run:?}")
        };
        let root = tempfile::tempdir().unwrap();
        unpack(&served.registry(), repository, root.path());
        let text = said(
            Command::new("chroot")
                .arg(root.path())
                .args([program, argument]),
        );
        assert!(text.contains(expected), "{repository} {program}: {text}");
    }
}

#[test]
#[ignore = "needs what `lab content` builds"]
fn downloads_say_their_version() {
    let served = served();
    let kubernetes = version("kubernetes");
    let folder = |url: String| served.mirror().join(url);
    let kubelet = folder(format!(
        "dl.k8s.io/release/v{kubernetes}/bin/linux/amd64/kubelet"
    ));
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
        let tree = Tree::default()
            .import(&served.tools(), |name| name == "crictl")
            .unwrap();
        let mut bytes = Vec::new();
        tree.tgz(&mut bytes).unwrap();
        bytes
    };
    assert!(pack() == pack());
}
