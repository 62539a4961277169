//! Desired packages, kernel modules and parameters, folders and files.

use crate::components::{EtcdMemberNames, KUBERNETES, MANIFESTS, VOLUME_PLUGINS, authenticator};
use crate::config::{self, ControlPlane, InstanceFacts, NodeConfig, Role};
use crate::host::{
    Directory, Error, HostObject, HostsBlock, KernelModule, Packages, Propagation, Sysctl,
};
use crate::names::dns;
use crate::values::Parameter;
use std::collections::BTreeMap;

pub(super) fn base_objects(
    config: &NodeConfig,
    host: &InstanceFacts,
) -> Result<Vec<HostObject>, Error> {
    let mut things = package_objects(config, host);
    let modules = config::kernel_modules(config)?.into_iter();
    things.extend(modules.map(|(name, sign)| {
        HostObject::KernelModule(KernelModule {
            name: name.to_owned(),
            sign: sign.to_owned(),
        })
    }));
    things.extend(sysctl_objects(config, host)?);
    things.extend(list_directories(config).map(|(path, mode)| {
        HostObject::Directory(Directory {
            path,
            mode: mode.to_owned(),
        })
    }));
    things.extend(
        config::host_files(config, host)?
            .into_iter()
            .map(HostObject::File),
    );
    things.push(HostObject::Propagation(Propagation {
        path: "/var/lib/kubelet".to_owned(),
        shared: true,
    }));
    things.extend(api_hosts_block(config, host).map(HostObject::HostsBlock));
    Ok(things)
}

fn package_objects(config: &NodeConfig, host: &InstanceFacts) -> Vec<HostObject> {
    let sets = [
        ("needed", config::needed_packages(host.distribution)),
        ("upkeep", config::upkeep_packages(config, host.distribution)),
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
        .map(HostObject::Packages)
        .collect()
}

/// Each parameter once, with its last value.
fn sysctl_objects(config: &NodeConfig, host: &InstanceFacts) -> Result<Vec<HostObject>, Error> {
    let parameters = config::kernel_parameters_of(config, host)?;
    let mut last: BTreeMap<String, Sysctl> = BTreeMap::new();
    for Parameter {
        key,
        value,
        required,
    } in parameters
    {
        let sysctl = Sysctl {
            key: key.clone(),
            value,
            required,
        };
        last.insert(key, sysctl);
    }
    Ok(last.into_values().map(HostObject::Sysctl).collect())
}

fn list_directories(config: &NodeConfig) -> impl Iterator<Item = (String, &'static str)> {
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
            let prefix = EtcdMemberNames::from_config(etcd, &config.cluster).prefix;
            directories.push((format!("{KUBERNETES}/{prefix}"), "0750"));
        }
        if config.has_authenticator() {
            // Its pod is another user's.
            directories.push((authenticator::FOLDER.to_owned(), "0755"));
        }
    }
    directories.into_iter()
}

/// Names of the API in `/etc/hosts` for clusters without DNS: on control planes they lead to the instance itself, on workers to
/// the control planes' addresses.
fn api_hosts_block(config: &NodeConfig, host: &InstanceFacts) -> Option<HostsBlock> {
    let name = &config.cluster;
    let line = |address: &str, names: [String; 2]| format!("{address} {}", names.join(" "));
    let lines: Vec<String> = match &config.control_plane {
        Some(of) if publishes_names(of) => Vec::new(),
        Some(_) => vec![line(
            "127.0.0.1",
            [dns::api_name(name), dns::api_internal(name)],
        )],
        None => {
            let addresses = host.control_plane_addresses.iter();
            let names = [dns::api_internal(name), dns::bootstrap_name(name)];
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

/// True if protokube publishes the control planes' addresses in DNS.
fn publishes_names(control_plane: &ControlPlane) -> bool {
    let pods = control_plane.static_pods.values();
    pods.flat_map(|pod| pod.metadata.annotations.keys())
        .any(|name| name.starts_with("dns.alpha.kubernetes.io/"))
}
