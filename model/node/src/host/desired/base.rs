//! Packages, the kernel, folders and files.

use crate::components::{EtcdMemberNames, KUBERNETES, MANIFESTS, VOLUME_PLUGINS};
use crate::config::{self, ControlPlane, Host, NodeConfig, Role};
use crate::host::{
    Directory, Error, HostsBlock, KernelModule, Packages, Propagation, Sysctl, Thing,
};
use crate::names::dns;
use std::collections::BTreeMap;

/// Modules, and what is there when they are.
const MODULES: [(&str, &str); 2] = [
    (
        "br_netfilter",
        "/proc/sys/net/bridge/bridge-nf-call-iptables",
    ),
    ("overlay", "/sys/module/overlay"),
];

pub(super) fn things(config: &NodeConfig, host: &Host) -> Result<Vec<Thing>, Error> {
    let mut things = packages(config, host);
    things.extend(MODULES.map(|(name, sign)| {
        Thing::KernelModule(KernelModule {
            name: name.to_owned(),
            sign: sign.to_owned(),
        })
    }));
    things.extend(sysctls(&config.sysctls));
    things.extend(directories(config).map(|(path, mode)| {
        Thing::Directory(Directory {
            path,
            mode: mode.to_owned(),
        })
    }));
    things.extend(config::files(config, host)?.into_iter().map(Thing::File));
    things.push(Thing::Propagation(Propagation {
        path: "/var/lib/kubelet".to_owned(),
        shared: true,
    }));
    things.extend(names(config, host).map(Thing::HostsBlock));
    Ok(things)
}

fn packages(config: &NodeConfig, host: &Host) -> Vec<Thing> {
    let sets = [
        ("needed", config::needed(host.distribution)),
        ("upkeep", config::upkeep(config, host.distribution)),
        ("user", config.packages.clone()),
    ];
    let set = |(name, mut packages): (&str, Vec<String>)| {
        packages.sort();
        packages.dedup();
        Packages {
            name: name.to_owned(),
            packages,
            distribution: host.distribution,
        }
    };
    let sets = sets.into_iter().map(set);
    sets.filter(|set| !set.packages.is_empty())
        .map(Thing::Packages)
        .collect()
}

/// Each parameter once, with the value that was said last.
fn sysctls(parameters: &[String]) -> Vec<Thing> {
    let mut last: BTreeMap<String, Sysctl> = BTreeMap::new();
    for parameter in parameters {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let sysctl = Sysctl {
            key: key.trim().to_owned(),
            value: value.split_whitespace().collect::<Vec<_>>().join(" "),
            required: !config::is_ours(parameter),
        };
        last.insert(sysctl.key.clone(), sysctl);
    }
    last.into_values().map(Thing::Sysctl).collect()
}

fn directories(config: &NodeConfig) -> impl Iterator<Item = (String, &'static str)> {
    let mut directories = vec![
        ("/etc/cni/net.d".to_owned(), "0755"),
        (MANIFESTS.to_owned(), "0755"),
        ("/opt/cni/bin".to_owned(), "0755"),
        (KUBERNETES.to_owned(), "0755"),
        (VOLUME_PLUGINS.trim_end_matches('/').to_owned(), "0755"),
        ("/var/lib/kubelet".to_owned(), "0750"),
        ("/var/lib/kubelet/pki".to_owned(), "0750"),
    ];
    if config.kube_proxy.is_some() {
        directories.push(("/var/lib/kube-proxy".to_owned(), "0750"));
    }
    if config.role == Role::ControlPlane {
        for component in [
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
        ] {
            directories.push((format!("{KUBERNETES}/{component}"), "0750"));
        }
        let clusters = config.control_plane.iter().flat_map(|of| &of.etcd);
        for etcd in clusters {
            let prefix = EtcdMemberNames::of(etcd, &config.cluster).prefix;
            directories.push((format!("{KUBERNETES}/{prefix}"), "0750"));
        }
        directories.push(("/var/lib/kubectl".to_owned(), "0700"));
    }
    directories.into_iter()
}

/// Names that machines of clusters without DNS find here: on control planes the API is on the machine itself, workers
/// are told where it is.
fn names(config: &NodeConfig, host: &Host) -> Option<HostsBlock> {
    let name = &config.cluster;
    let line = |address: &str, names: [String; 2]| format!("{address} {}", names.join(" "));
    let lines: Vec<String> = match &config.control_plane {
        Some(of) if publishes(of) => Vec::new(),
        Some(_) => vec![line("127.0.0.1", [dns::api(name), dns::api_internal(name)])],
        None => {
            let addresses = host.control_plane_addresses.iter();
            let names = [dns::api_internal(name), dns::bootstrap(name)];
            addresses
                .map(|address| line(address, names.clone()))
                .collect()
        }
    };
    (!lines.is_empty()).then(|| HostsBlock {
        path: "/etc/hosts".to_owned(),
        keeper: "nodeup".to_owned(),
        lines,
    })
}

/// True if names follow the control plane's addresses.
fn publishes(control_plane: &ControlPlane) -> bool {
    let pods = control_plane.static_pods.values();
    pods.flat_map(|pod| pod.metadata.annotations.keys())
        .any(|name| name.starts_with("dns.alpha.kubernetes.io/"))
}
