//! Dependencies between objects. Most follow from paths: a file needs its folder, and the volume that contains the folder.

use crate::components::{KUBERNETES, MANIFESTS, TOOLS};
use crate::config::{
    API_PROXY_UNIT, IMAGE_PULLS, NodeConfig, RENEWAL_SERVICE, RENEWAL_TIMER, VPC_INTERFACES,
};
use crate::host::{HostObject, HostResource, Unit};
use engine::Id;
use std::collections::{BTreeMap, BTreeSet};

/// The program that imports images.
const CTR: &str = "/usr/bin/ctr";

/// Folders in which package tools have their settings.
const SOURCES: [&str; 2] = ["/etc/apt", "/etc/yum.repos.d"];

/// Folders in which the network services of the distribution have theirs.
const NETWORK: [&str; 3] = [
    "/etc/systemd/network",
    "/etc/systemd/networkd.conf.d",
    "/etc/udev/rules.d",
];

/// Adds its dependencies to each object. The result is sorted by id.
pub(super) fn with_needs(things: &[HostObject], config: &NodeConfig) -> Vec<HostResource> {
    let before = started_before(things);
    let needs = |thing: &HostObject| {
        let mut needs = needs_by_path(thing, things);
        needs.extend(needs_by_kind(thing, things, config));
        needs.extend(before.get(&thing.id()).into_iter().flatten().cloned());
        needs.remove(&thing.id());
        needs.into_iter().collect()
    };
    let mut all: Vec<HostResource> = things
        .iter()
        .map(|thing| HostResource {
            needs: needs(thing),
            thing: thing.clone(),
        })
        .collect();
    all.sort_by_key(|resource| resource.thing.id());
    all
}

/// The nearest folder and the nearest volume above each path of an object.
fn needs_by_path(thing: &HostObject, things: &[HostObject]) -> BTreeSet<Id> {
    let nearest = |path: &str, wanted: &dyn Fn(&HostObject) -> bool| {
        let above = things
            .iter()
            .filter(|other| other.id() != thing.id() && wanted(other));
        let above = above.filter(|other| other.path().is_some_and(|above| is_below(path, above)));
        above
            .max_by_key(|other| other.path().map(str::len))
            .map(HostObject::id)
    };
    let mut needs = BTreeSet::new();
    for path in install_paths(thing) {
        // The mode of a mount point is that of the mounted file system, so the folder comes after the mount.
        let folder = |other: &HostObject| {
            matches!(other, HostObject::Directory(directory)
                if !matches!(thing, HostObject::Mount(_)) || directory.path != path)
        };
        needs.extend(nearest(path, &folder));
        needs.extend(nearest(path, &|other| {
            matches!(other, HostObject::Mount(mount)
                if !matches!(thing, HostObject::Mount(_)) || mount.path != path)
        }));
    }
    needs
}

fn install_paths(thing: &HostObject) -> Vec<&str> {
    match thing {
        HostObject::Download(download) => download.place.paths(),
        other => other.path().into_iter().collect(),
    }
}

/// True if a path is the folder or below it.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Dependencies that follow from the kind of an object.
fn needs_by_kind(thing: &HostObject, things: &[HostObject], config: &NodeConfig) -> BTreeSet<Id> {
    let all = |wanted: &dyn Fn(&HostObject) -> bool| -> BTreeSet<Id> {
        things
            .iter()
            .filter(|other| wanted(other))
            .map(HostObject::id)
            .collect()
    };
    match thing {
        // Some parameters exist only with a kernel module.
        HostObject::Sysctl(sysctl) => all(&|other| match other {
            HostObject::KernelModule(_) => true,
            // With IPv6 forwarding the kernel drops the default route of an interface that does not keep it.
            HostObject::Sysctl(other) => {
                sysctl.key == "net.ipv6.conf.all.forwarding" && other.key.ends_with(".accept_ra")
            }
            _ => false,
        }),
        // apt and dnf read their sources, and the keys of these, when they run.
        HostObject::Packages(packages) if packages.name == "user" => {
            let is_mounted = |path: &str| {
                things.iter().any(
                    |other| matches!(other, HostObject::Mount(mount) if is_below(path, &mount.path)),
                )
            };
            all(&|other| match other {
                HostObject::File(file) => is_in(other, &SOURCES) && !is_mounted(&file.path),
                _ => false,
            })
        }
        // mkfs of file systems other than ext4 is in a package.
        HostObject::Mount(_) => all(&|other| matches!(other, HostObject::Packages(_))),
        HostObject::Link(link) => all(&|other| match other {
            HostObject::Tools(tools) => tools.path.ends_with(&format!("/{}", link.target)),
            HostObject::File(file) => file.path == link.target,
            _ => false,
        }),
        HostObject::Tools(tools) => {
            let brings = |other: &HostObject| match other {
                HostObject::Download(download) => tools
                    .programs
                    .values()
                    .any(|path| download.place.provides_file(path)),
                HostObject::Packages(packages) => packages.name == "needed",
                _ => false,
            };
            all(&brings)
        }
        // ctr is among containerd's programs, and asks containerd.
        HostObject::Image(_) => all(&|other| match other {
            HostObject::Download(download) => download.place.provides_file(CTR),
            HostObject::Unit(unit) => unit.name == "containerd.service",
            _ => false,
        }),
        // kubelet starts a manifest as soon as it sees it.
        HostObject::File(file) if file.path.starts_with(MANIFESTS) => {
            all(&|other| is_in(other, &["/var/lib/kube-proxy", TOOLS]))
        }
        HostObject::Unit(unit) => needs_of_unit(unit, config, &all),
        _ => BTreeSet::new(),
    }
}

fn is_manifest(object: &HostObject) -> bool {
    matches!(object, HostObject::File(file) if file.path.starts_with(MANIFESTS))
}

fn is_in(thing: &HostObject, folders: &[&str]) -> bool {
    let path = thing.path().unwrap_or_default();
    folders.iter().any(|folder| is_below(path, folder))
}

/// True for images, and for the packages with further runtimes of containerd.
fn is_for_containers(object: &HostObject, config: &NodeConfig) -> bool {
    let runtimes = config.containerd.gvisor.is_some() || config.containerd.nvidia;
    match object {
        HostObject::Image(_) => true,
        HostObject::Packages(packages) => runtimes && packages.name == "user",
        _ => false,
    }
}

type All<'a> = dyn Fn(&dyn Fn(&HostObject) -> bool) -> BTreeSet<Id> + 'a;

fn needs_of_unit(unit: &Unit, config: &NodeConfig, all: &All<'_>) -> BTreeSet<Id> {
    let units = |names: &'static [&'static str]| move |other: &HostObject| matches!(other, HostObject::Unit(unit) if names.contains(&unit.name.as_str()));
    let downloads = |names: &'static [&'static str]| move |other: &HostObject| matches!(other, HostObject::Download(download) if names.contains(&download.name.as_str()));
    // The kernel must be set up first. A user's parameter that the kernel rejects is reported and does not block units.
    let instance = |other: &HostObject| match other {
        HostObject::KernelModule(_) | HostObject::Mount(_) => true,
        HostObject::Packages(packages) => packages.name == "needed",
        HostObject::Sysctl(sysctl) => !sysctl.required,
        _ => false,
    };
    match unit.name.as_str() {
        "containerd.service" => all(&|other| {
            instance(other)
                || downloads(&["cni-plugins", "containerd", "runc"])(other)
                || is_in(
                    other,
                    &["/etc/containerd", "/etc/cni", "/etc/sysconfig/containerd"],
                )
        }),
        "kubelet.service" => all(&|other| {
            let folders = [
                "/etc/sysconfig/kubelet",
                "/srv/kubernetes/ca.crt",
                "/usr/libexec/kubernetes",
                "/var/lib/kubelet",
                MANIFESTS,
            ];
            instance(other)
                || is_for_containers(other, config)
                || downloads(&["cni-plugins", "ecr-credential-provider", "kubelet"])(other)
                || units(&["containerd.service", VPC_INTERFACES])(other)
                || (is_in(other, &folders) && !is_manifest(other))
        }),
        "protokube.service" => all(&|other| {
            let folders = [
                KUBERNETES,
                MANIFESTS,
                "/var/lib/kube-controller-manager",
                "/var/lib/kube-scheduler",
            ];
            downloads(&["protokube"])(other)
                || is_in(other, &[TOOLS])
                || matches!(other, HostObject::HostsBlock(_))
                || (is_in(other, &folders) && !is_manifest(other))
        }),
        "cni-iptables-setup.service" => all(&instance),
        VPC_INTERFACES => all(&|other| is_in(other, &NETWORK)),
        // Not the user's files and packages: it is to run before kubelet wants an image.
        IMAGE_PULLS => all(&|other| {
            downloads(&["crictl"])(other)
                || units(&["containerd.service"])(other)
                || is_in(other, &["/etc/crictl.yaml"])
        }),
        RENEWAL_TIMER => all(&|other| is_in(other, &[RENEWAL_SERVICE])),
        // The proxy waits for kubelet's certificate itself, and reads it again whenever it is another.
        _ if !unit.enabled || unit.name == API_PROXY_UNIT => BTreeSet::new(),
        _ if unit.content.is_none() => all(&|other| is_for_upkeep(other, unit)),
        // A hook may use everything else from the spec, and containers.
        _ => all(&|other| match other {
            HostObject::File(file) => config.files.iter().any(|users| users.path == file.path),
            HostObject::Packages(packages) => packages.name != "upkeep",
            HostObject::Mount(_) => true,
            other => {
                let content = unit.content.as_deref().unwrap_or_default();
                unit_lists(content, "After", "containerd.service")
                    && units(&["containerd.service"])(other)
            }
        }),
    }
}

/// True for the packages with the units of the distribution, and for what such a unit reads.
fn is_for_upkeep(object: &HostObject, unit: &Unit) -> bool {
    let beside = format!("{}.d", HostObject::unit_path(&unit.name));
    let folder = if unit.name.starts_with("chrony") {
        "/etc/chrony"
    } else {
        &beside
    };
    match object {
        HostObject::Packages(packages) => packages.name == "upkeep",
        other => is_in(other, &[folder]),
    }
}

/// True if a unit file names another unit in a list such as `After=`.
fn unit_lists(content: &str, list: &str, unit: &str) -> bool {
    let lists = content
        .lines()
        .filter_map(|line| line.trim().split_once('='));
    lists
        .filter(|(name, _)| name.trim() == list)
        .any(|(_, units)| units.split_whitespace().any(|named| named == unit))
}

/// For each of kctl's units, the hooks with `Before=` it. systemd orders only units that start at the same time, but nodeup starts
/// each unit when it can. Circular orders are left to systemd. What comes before kubelet comes before the first pull of an image: it may
/// bring the certificate authority of a registry, and containerd reads those of the system only once.
fn started_before(things: &[HostObject]) -> BTreeMap<Id, BTreeSet<Id>> {
    let units: Vec<&Unit> = things
        .iter()
        .filter_map(|thing| match thing {
            HostObject::Unit(unit) => Some(unit),
            _ => None,
        })
        .collect();
    let ours = ["containerd.service", "kubelet.service", "protokube.service"];
    let mut edges: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
    for hook in units
        .iter()
        .filter(|unit| !ours.contains(&unit.name.as_str()) && unit.enabled)
    {
        let content = hook.content.as_deref().unwrap_or_default();
        let after_containerd = unit_lists(content, "After", "containerd.service");
        for later in ours
            .iter()
            .filter(|later| unit_lists(content, "Before", later))
        {
            let circle = after_containerd && *later == "containerd.service";
            let there = units.iter().any(|unit| unit.name == *later);
            if there && !circle {
                edges
                    .entry(Id::new("unit", *later))
                    .or_default()
                    .insert(Id::new("unit", hook.name.clone()));
            }
        }
    }
    let before_kubelet = edges.get(&Id::new("unit", "kubelet.service")).cloned();
    if let Some(hooks) = before_kubelet {
        edges.insert(Id::new("unit", IMAGE_PULLS), hooks);
    }
    edges
}
