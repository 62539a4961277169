//! What is built from Go modules, one folder of `tests/lab/content` per row: each has its own `go.mod`, since their
//! dependencies clash. A version stands in exactly one place, the folder's `go.mod`, which `go` reads too.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// A Go module of the lab.
#[derive(Debug, PartialEq, Eq)]
pub struct Module {
    /// Name of the module, and of the folder in the checkout that has its `go.mod`.
    pub name: &'static str,
    pub about: &'static str,
    /// The module whose code this is, if it has none of its own.
    pub code: Option<&'static str>,
    /// The version that its programs report instead of their own. Such a module has no folder.
    pub reports: Option<&'static str>,
    /// The module whose version this is; `None`: programs of ours over Go's own library.
    pub upstream: Option<&'static str>,
    pub binaries: &'static [Binary],
    /// Files and folders of the upstream module that images have beside its programs.
    pub files: &'static [&'static str],
    /// Build tags, comma-separated.
    pub tags: &'static str,
    /// Variables that the linker sets: `{version}` is the upstream's (`v1.2.3`), `{major}` and `{minor}` its parts.
    pub variables: &'static [(&'static str, &'static str)],
}

/// A program: its name, and its package.
#[derive(Debug, PartialEq, Eq)]
pub struct Binary {
    pub name: &'static str,
    pub package: &'static str,
}

macro_rules! binaries {
    ($($name:literal from $package:expr),* $(,)?) => { &[$(Binary { name: $name, package: $package }),*] };
}

macro_rules! cni {
    ($path:literal) => {
        concat!("github.com/containernetworking/plugins/plugins/", $path)
    };
}

/// Kubernetes' version variables, which its companions have too.
const COMPONENT_VERSION: &[(&str, &str)] = &[
    ("k8s.io/component-base/version.gitVersion", "{version}"),
    ("k8s.io/component-base/version.gitMajor", "{major}"),
    ("k8s.io/component-base/version.gitMinor", "{minor}"),
    ("k8s.io/component-base/version.gitTreeState", "clean"),
];

/// What most rows have.
const ORDINARY: Module = Module {
    name: "",
    about: "",
    code: None,
    reports: None,
    upstream: None,
    binaries: &[],
    files: &[],
    tags: "",
    variables: &[],
};

const KUBERNETES: Module = Module {
    name: "kubernetes",
    about: "kubelet, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy in one; kubectl",
    upstream: Some("k8s.io/kubernetes"),
    binaries: binaries! {
        "kubernetes" from "kctl.dev/lab/kubernetes",
        "kubectl" from "kctl.dev/lab/kubernetes/kubectl",
        "go-runner" from "k8s.io/component-base/logs/kube-log-runner",
    },
    variables: COMPONENT_VERSION,
    ..ORDINARY
};

/// The minor before, for upgrades: only built when a test needs it, because it takes as long as [`MODULES`]' Kubernetes.
pub const PREVIOUS_KUBERNETES: Module = Module {
    name: "kubernetes-previous",
    about: "the Kubernetes minor before, for upgrades",
    code: Some("kubernetes"),
    ..KUBERNETES
};

const ETCD: Module = Module {
    name: "etcd",
    about: "etcd",
    upstream: Some("go.etcd.io/etcd/server/v3"),
    binaries: binaries! { "etcd" from "go.etcd.io/etcd/server/v3" },
    variables: &[("go.etcd.io/etcd/api/v3/version.GitSHA", "kctl-lab")],
    ..ORDINARY
};

const ETCDCTL: Module = Module {
    name: "etcdctl",
    about: "etcdctl and etcdutl, of the nearest version that is served",
    upstream: Some("go.etcd.io/etcd/etcdctl/v3"),
    binaries: binaries! {
        "etcdctl" from "go.etcd.io/etcd/etcdctl/v3",
        "etcdutl" from "go.etcd.io/etcd/etcdutl/v3",
    },
    variables: &[("go.etcd.io/etcd/api/v3/version.GitSHA", "kctl-lab")],
    ..ORDINARY
};

/// The minor of etcd before, for upgrades: only built when a test needs it.
pub const PREVIOUS_ETCD: &[Module] = &[
    Module {
        name: "etcd-previous",
        about: "the etcd minor before, for upgrades",
        ..ETCD
    },
    Module {
        name: "etcdctl-previous",
        ..ETCDCTL
    },
];

/// The minor of Kubernetes after, with the etcd and the cloud controller manager that kctl runs with it: only built when a test needs it.
pub const NEXT_KUBERNETES: &[Module] = &[
    Module {
        name: "kubernetes-next",
        about: "the Kubernetes minor after, for upgrades",
        code: Some("kubernetes"),
        ..KUBERNETES
    },
    Module {
        name: "etcd-next",
        about: "the etcd that goes with it",
        ..ETCD
    },
    Module {
        name: "etcdctl-next",
        about: "etcdctl and etcdutl of that etcd",
        ..ETCDCTL
    },
    Module {
        name: "cloud-provider-next",
        about: "the AWS cloud controller manager that goes with it",
        upstream: Some("k8s.io/cloud-provider-aws"),
        binaries: binaries! {
            "aws-cloud-controller-manager" from "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager",
        },
        variables: COMPONENT_VERSION,
        ..ORDINARY
    },
];

/// In the order in which they are built: what most others wait for first.
pub const MODULES: &[Module] = &[
    Module {
        name: "small",
        about: "pause, and a web server for tests in pods",
        binaries: binaries! {
            "pause" from "kctl.dev/lab/small/pause",
            "web" from "kctl.dev/lab/small/web",
        },
        variables: &[("main.version", super::images::PAUSE)],
        ..ORDINARY
    },
    Module {
        name: "cni",
        about: "CNI plugins",
        upstream: Some("github.com/containernetworking/plugins"),
        binaries: binaries! {
            "bandwidth" from cni!("meta/bandwidth"),
            "bridge" from cni!("main/bridge"),
            "dhcp" from cni!("ipam/dhcp"),
            "dummy" from cni!("main/dummy"),
            "firewall" from cni!("meta/firewall"),
            "host-device" from cni!("main/host-device"),
            "host-local" from cni!("ipam/host-local"),
            "ipvlan" from cni!("main/ipvlan"),
            "loopback" from cni!("main/loopback"),
            "macvlan" from cni!("main/macvlan"),
            "portmap" from cni!("meta/portmap"),
            "ptp" from cni!("main/ptp"),
            "sbr" from cni!("meta/sbr"),
            "static" from cni!("ipam/static"),
            "tap" from cni!("main/tap"),
            "tuning" from cni!("meta/tuning"),
            "vlan" from cni!("main/vlan"),
            "vrf" from cni!("meta/vrf"),
        },
        variables: &[(
            "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion",
            "{version}",
        )],
        ..ORDINARY
    },
    Module {
        name: "cni-flannel",
        about: "flannel's CNI plugin, from the last release of the CNI plugins that had it",
        upstream: Some("github.com/containernetworking/plugins"),
        binaries: binaries! { "flannel" from cni!("meta/flannel") },
        variables: &[(
            "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion",
            "{version}",
        )],
        ..ORDINARY
    },
    ETCD,
    ETCDCTL,
    Module {
        name: "containerd",
        about: "containerd, its shim, ctr",
        upstream: Some("github.com/containerd/containerd/v2"),
        binaries: binaries! {
            "containerd" from "github.com/containerd/containerd/v2/cmd/containerd",
            "containerd-shim-runc-v2" from "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            "ctr" from "github.com/containerd/containerd/v2/cmd/ctr",
        },
        tags: "no_btrfs,no_zfs",
        variables: &[(
            "github.com/containerd/containerd/v2/version.Version",
            "{version}",
        )],
        ..ORDINARY
    },
    KUBERNETES,
    Module {
        name: "kubernetes-patch",
        about: "the same Kubernetes, which reports the patch before, for upgrades",
        code: Some("kubernetes"),
        reports: Some("1.36.2"),
        ..KUBERNETES
    },
    Module {
        name: "autoscaler",
        about: "a stand-in for cluster-proportional-autoscaler",
        upstream: Some("k8s.io/client-go"),
        binaries: binaries! { "cluster-proportional-autoscaler" from "kctl.dev/lab/autoscaler" },
        variables: &[("main.version", "{version}")],
        ..ORDINARY
    },
    Module {
        name: "flannel",
        about: "flanneld with the vxlan and host-gw backends",
        upstream: Some("github.com/flannel-io/flannel"),
        binaries: binaries! {
            "flanneld" from "kctl.dev/lab/flannel",
            "install-conf" from "github.com/flannel-io/flannel/cmd/install_conf",
        },
        variables: &[(
            "github.com/flannel-io/flannel/pkg/version.Version",
            "{version}",
        )],
        ..ORDINARY
    },
    Module {
        name: "cloud-provider",
        about: "AWS cloud controller manager, ecr-credential-provider",
        upstream: Some("k8s.io/cloud-provider-aws"),
        binaries: binaries! {
            "aws-cloud-controller-manager" from "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager",
            "ecr-credential-provider" from "k8s.io/cloud-provider-aws/cmd/ecr-credential-provider",
        },
        variables: COMPONENT_VERSION,
        ..ORDINARY
    },
    Module {
        name: "csi",
        about: "CSI's sidecars, and stand-ins for the EBS driver and the sidecars that are not served",
        upstream: Some("github.com/kubernetes-csi/external-provisioner/v6"),
        binaries: binaries! {
            "csi-provisioner" from "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
            "csi-attacher" from "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher",
            "csi-resizer" from "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer",
            "csi-stand-ins" from "kctl.dev/lab/csi/stand-ins",
        },
        ..ORDINARY
    },
    Module {
        name: "coredns",
        about: "CoreDNS with the plugins of its addon",
        upstream: Some("github.com/coredns/coredns"),
        binaries: binaries! { "coredns" from "kctl.dev/lab/coredns" },
        variables: &[("github.com/coredns/coredns/coremain.GitCommit", "kctl-lab")],
        ..ORDINARY
    },
];

/// Addons that only their own tests use: only built for these.
pub const ADDONS: &[Module] = &[
    Module {
        name: "metrics-server",
        about: "metrics-server",
        upstream: Some("sigs.k8s.io/metrics-server"),
        binaries: binaries! { "metrics-server" from "sigs.k8s.io/metrics-server/cmd/metrics-server" },
        variables: &[("k8s.io/client-go/pkg/version.gitVersion", "{version}")],
        ..ORDINARY
    },
    Module {
        name: "aws-iam-authenticator",
        about: "AWS IAM authenticator, and the program that makes tokens for it",
        upstream: Some("sigs.k8s.io/aws-iam-authenticator"),
        binaries: binaries! {
            "aws-iam-authenticator" from "sigs.k8s.io/aws-iam-authenticator/cmd/aws-iam-authenticator",
        },
        variables: &[("sigs.k8s.io/aws-iam-authenticator/pkg.Version", "{version}")],
        ..ORDINARY
    },
    Module {
        name: "helm",
        about: "helm-controller of k3s, and the helm that its jobs run",
        upstream: Some("github.com/k3s-io/helm-controller"),
        binaries: binaries! {
            "helm-controller" from "github.com/k3s-io/helm-controller",
            "helm" from "helm.sh/helm/v3/cmd/helm",
        },
        ..ORDINARY
    },
];

/// cilium: only built for the tests of clusters that have it.
pub const CILIUM: &[Module] = &[Module {
    name: "cilium",
    about: "cilium's agent, operator, CNI plugin and tools",
    upstream: Some("github.com/cilium/cilium"),
    binaries: binaries! {
        "cilium-agent" from "github.com/cilium/cilium/daemon",
        "cilium-cni" from "github.com/cilium/cilium/plugins/cilium-cni",
        "cilium-dbg" from "github.com/cilium/cilium/cilium-dbg",
        "cilium-health-responder" from "github.com/cilium/cilium/cilium-health/responder",
        "cilium-mount" from "github.com/cilium/cilium/tools/mount",
        "cilium-operator" from "github.com/cilium/cilium/operator",
        "cilium-sysctlfix" from "github.com/cilium/cilium/tools/sysctlfix",
    },
    files: &[
        "bpf",
        "images/cilium/init-container.sh",
        "plugins/cilium-cni/cni-uninstall.sh",
        "plugins/cilium-cni/install-plugin.sh",
    ],
    tags: "osusergo,ipam_provider_aws,ipam_provider_operator",
    variables: &[(
        "github.com/cilium/cilium/pkg/version.ciliumVersion",
        "{version}",
    )],
    ..ORDINARY
}];

/// Kubernetes' conformance tests: only built for the runs of these.
pub const CONFORMANCE: &[Module] = &[Module {
    name: "conformance",
    about: "Kubernetes' conformance tests, ginkgo, and the programs of their images",
    upstream: KUBERNETES.upstream,
    binaries: binaries! {
        "agnhost" from "k8s.io/kubernetes/test/images/agnhost",
        "e2e.test" from "k8s.io/kubernetes/test/e2e",
        "ginkgo" from "github.com/onsi/ginkgo/v2/ginkgo",
        "nnp" from "k8s.io/kubernetes/test/images/nonewprivs",
        "sample-apiserver" from "k8s.io/sample-apiserver",
    },
    files: &[
        "test/images/agnhost/porter/localhost.crt",
        "test/images/agnhost/porter/localhost.key",
        "test/images/kitten/html",
        "test/images/nautilus/html",
        super::images::E2E_IMAGES,
    ],
    variables: COMPONENT_VERSION,
    ..ORDINARY
}];

/// Every row, also those that are built only when a test needs them.
pub fn all_modules() -> impl Iterator<Item = &'static Module> {
    MODULES
        .iter()
        .chain([&PREVIOUS_KUBERNETES])
        .chain(PREVIOUS_ETCD)
        .chain(NEXT_KUBERNETES)
        .chain(ADDONS)
        .chain(CILIUM)
        .chain(CONFORMANCE)
}

/// The row of that name.
pub fn find_module(name: &str) -> Result<&'static Module> {
    all_modules()
        .find(|module| module.name == name)
        .with_context(|| {
            let known: Vec<_> = MODULES.iter().map(|module| module.name).collect();
            format!("no such module: {name}. There are {}", known.join(", "))
        })
}

impl Module {
    /// The folder of its code.
    pub fn code_folder(&self) -> &'static str {
        self.code.unwrap_or(self.name)
    }

    /// The folder of its `go.mod`.
    pub fn requirements_folder(&self) -> &'static str {
        self.reports.map_or(self.name, |_| self.code_folder())
    }

    /// True for every build of Kubernetes itself.
    pub fn is_kubernetes(&self) -> bool {
        self.code_folder() == KUBERNETES.name
    }

    /// Version without `v`, as its programs report it: that of its `go.mod` below `sources`, if it has no other; empty for our own
    /// programs.
    pub fn read_version(&self, sources: &Path) -> Result<String> {
        let Some(upstream) = self.upstream else {
            return Ok(String::new());
        };
        if let Some(version) = self.reports {
            return Ok(version.to_owned());
        }
        let path = sources.join(self.name).join("go.mod");
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        required_version(&text, upstream)
            .with_context(|| format!("{} requires no version of {upstream}", path.display()))
    }

    /// What the linker is told, in one argument.
    pub fn linker_flags(&self, version: &str) -> String {
        let mut parts = version.split('.');
        let (major, minor) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        let set = self.variables.iter().map(|(variable, value)| {
            let value = value
                .replace("{version}", &format!("v{version}"))
                .replace("{major}", major)
                .replace("{minor}", minor);
            format!(" -X {variable}={value}")
        });
        format!("-s -w{}", set.collect::<String>())
    }
}

impl Binary {
    /// True for the tests of a package, named as `go test -c` does.
    pub fn is_test(&self) -> bool {
        Path::new(self.name)
            .extension()
            .is_some_and(|extension| extension == "test")
    }

    /// The file name that Go gives it. A program's is the last part of its package that is no major version.
    pub fn default_name(&self) -> &'static str {
        if self.is_test() {
            return self.name;
        }
        let major = |part: &str| {
            part.strip_prefix('v')
                .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let mut parts = self.package.rsplit('/');
        parts.find(|part| !major(part)).unwrap_or(self.package)
    }
}

/// The version of a module that a `go.mod` requires, without `v`.
fn required_version(text: &str, module: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("require ").trim();
        let (name, rest) = line.split_once(' ')?;
        let version = rest.split_whitespace().next()?;
        (name == module).then(|| version.trim_start_matches('v').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::module_sources;
    use super::{CONFORMANCE, MODULES, all_modules, find_module};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_folder_is_a_row_and_every_row_a_folder() {
        let rows: BTreeSet<_> = all_modules()
            .filter(|module| module.reports.is_none())
            .map(|module| module.name.to_owned())
            .collect();
        let folders: BTreeSet<_> = std::fs::read_dir(module_sources())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(rows, folders);
        for module in all_modules() {
            let version = module.read_version(&module_sources()).unwrap();
            let numbers = version
                .split('.')
                .filter(|part| part.parse::<u32>().is_ok());
            assert_eq!(
                numbers.count(),
                if module.upstream.is_some() { 3 } else { 0 },
                "{version}"
            );
        }
    }

    /// One Kubernetes: what links its libraries has the same patch of them.
    #[test]
    fn programs_of_ours_use_the_libraries_of_the_kubernetes_that_is_served() {
        let version = |name| {
            find_module(name)
                .unwrap()
                .read_version(&module_sources())
                .unwrap()
        };
        let library = |module| {
            let version = version(module);
            format!("0.{}", version.split_once('.').unwrap().1)
        };
        assert_eq!(version("autoscaler"), library("kubernetes"));
        assert_eq!(version("conformance"), version("kubernetes"));
        for module in [
            "kubernetes",
            "kubernetes-previous",
            "kubernetes-next",
            "conformance",
        ] {
            let library = library(module);
            let path = module_sources().join(module).join("go.mod");
            let text = std::fs::read_to_string(path).unwrap();
            let replaced: Vec<_> = text.lines().filter(|line| line.contains(" => ")).collect();
            assert!(replaced.len() > 30);
            for line in replaced {
                assert!(line.ends_with(&format!(" v{library}")), "{line}");
            }
        }
    }

    /// The versions that a `go.mod` asks for, by module: what `replace` says, otherwise what `require` says.
    fn read_requirements(module: &str) -> BTreeMap<String, String> {
        let path = module_sources().join(module).join("go.mod");
        let text = std::fs::read_to_string(path).unwrap();
        let mut versions = BTreeMap::new();
        for line in text.lines() {
            let line = line.split("//").next().unwrap().trim();
            let line = line.trim_start_matches("require ");
            let words: Vec<_> = line.trim_start_matches("replace ").split(' ').collect();
            match words[..] {
                [path, version] if version.starts_with('v') => {
                    versions.insert(path.to_owned(), version.to_owned());
                }
                [path, "=>", _, version] => {
                    versions.insert(path.to_owned(), version.to_owned());
                }
                _ => {}
            }
        }
        versions
    }

    /// Without this law, every program compiles client-go, gRPC and more anew: a third of the time of a cold build.
    #[test]
    fn libraries_of_several_modules_have_one_version() {
        // What is served has versions of its own, and the others are few packages.
        let apart = [
            "cyphar.com/go-pathrs",
            "github.com/Microsoft/",
            "github.com/container-storage-interface/spec",
            "github.com/containerd/",
            "go.etcd.io/",
            "sigs.k8s.io/controller-runtime",
        ];
        let mut found: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        // The CNI plugins are small, and the older one is to be what it was.
        let modules = MODULES.iter().chain(CONFORMANCE);
        for module in modules.filter(|module| !module.name.starts_with("cni")) {
            for (library, version) in read_requirements(module.requirements_folder()) {
                found
                    .entry(library)
                    .or_default()
                    .insert(version, module.name);
            }
        }
        assert!(found["golang.org/x/net"].len() == 1 && found.len() > 200);
        found.retain(|library, versions| {
            versions.len() > 1 && !apart.iter().any(|start| library.starts_with(start))
        });
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn the_linker_sets_the_version_in_full_and_in_parts() {
        let flags = find_module("kubernetes").unwrap().linker_flags("1.36.3");
        for set in [".gitVersion=v1.36.3", ".gitMajor=1 ", ".gitMinor=36 "] {
            assert!(flags.contains(set), "{flags}");
        }
    }
}
