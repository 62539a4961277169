//! What must be there before what. Paths say most of it: a file needs its folder, and the volume that folder is on.

use crate::components::{KUBERNETES, MANIFESTS};
use crate::config::{NodeConfig, RENEWAL_SERVICE, RENEWAL_TIMER};
use crate::host::{HostResource, Thing, Unit};
use engine::Id;
use std::collections::{BTreeMap, BTreeSet};

/// All things with their needs, sorted by id.
pub(super) fn with_needs(things: &[Thing], config: &NodeConfig) -> Vec<HostResource> {
    let before = started_before(things);
    let needs = |thing: &Thing| {
        let mut needs = by_path(thing, things);
        needs.extend(by_kind(thing, things, config));
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

/// The nearest folder and the nearest volume above.
fn by_path(thing: &Thing, things: &[Thing]) -> BTreeSet<Id> {
    let nearest = |path: &str, wanted: &dyn Fn(&Thing) -> bool| {
        let above = things
            .iter()
            .filter(|other| other.id() != thing.id() && wanted(other));
        let above = above.filter(|other| other.path().is_some_and(|above| is_below(path, above)));
        above
            .max_by_key(|other| other.path().map(str::len))
            .map(Thing::id)
    };
    let mut needs = BTreeSet::new();
    for path in places(thing) {
        // A volume is mounted on a folder, and the folder's mode is then the volume's: it comes after.
        let folder = |other: &Thing| {
            matches!(other, Thing::Directory(directory)
                if !matches!(thing, Thing::Mount(_)) || directory.path != path)
        };
        needs.extend(nearest(path, &folder));
        needs.extend(nearest(path, &|other| {
            matches!(other, Thing::Mount(mount)
                if !matches!(thing, Thing::Mount(_)) || mount.path != path)
        }));
    }
    needs
}

fn places(thing: &Thing) -> Vec<&str> {
    match thing {
        Thing::Download(download) => download.place.paths(),
        other => other.path().into_iter().collect(),
    }
}

/// Whether a path is that folder or in it.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What is known of a thing beyond its path.
fn by_kind(thing: &Thing, things: &[Thing], config: &NodeConfig) -> BTreeSet<Id> {
    let all = |wanted: &dyn Fn(&Thing) -> bool| -> BTreeSet<Id> {
        things
            .iter()
            .filter(|other| wanted(other))
            .map(Thing::id)
            .collect()
    };
    match thing {
        // Some parameters come with a module.
        Thing::Sysctl(_) => all(&|other| matches!(other, Thing::KernelModule(_))),
        // mkfs of other file systems than ext4 comes as a package.
        Thing::Mount(_) => all(&|other| matches!(other, Thing::Packages(_))),
        Thing::Link(link) => all(&|other| match other {
            Thing::Tools(tools) => tools.path.ends_with(&format!("/{}", link.target)),
            Thing::File(file) => file.path == link.target,
            _ => false,
        }),
        Thing::Tools(tools) => {
            let brings = |other: &Thing| match other {
                Thing::Download(download) => {
                    tools.programs.values().any(|path| download.place.has(path))
                }
                Thing::Packages(packages) => packages.name == "needed",
                _ => false,
            };
            all(&brings)
        }
        // kubelet starts it as soon as it sees it.
        Thing::File(file) if file.path.starts_with(MANIFESTS) => {
            all(&|other| is_in(other, &["/var/lib/kube-proxy"]))
        }
        Thing::Unit(unit) => of_unit(unit, config, &all),
        _ => BTreeSet::new(),
    }
}

fn is_in(thing: &Thing, folders: &[&str]) -> bool {
    let path = thing.path().unwrap_or_default();
    folders.iter().any(|folder| is_below(path, folder))
}

type All<'a> = dyn Fn(&dyn Fn(&Thing) -> bool) -> BTreeSet<Id> + 'a;

fn of_unit(unit: &Unit, config: &NodeConfig, all: &All<'_>) -> BTreeSet<Id> {
    let unit_named = |name: &'static str| move |other: &Thing| matches!(other, Thing::Unit(unit) if unit.name == name);
    let downloads = |names: &'static [&'static str]| move |other: &Thing| matches!(other, Thing::Download(download) if names.contains(&download.name.as_str()));
    // The kernel as we want it. A parameter of the user's that it refuses keeps no machine out: it is told as an error.
    let machine = |other: &Thing| match other {
        Thing::KernelModule(_) | Thing::Mount(_) => true,
        Thing::Packages(packages) => packages.name == "needed",
        Thing::Sysctl(sysctl) => !sysctl.required,
        _ => false,
    };
    match unit.name.as_str() {
        "containerd.service" => all(&|other| {
            machine(other)
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
            let manifest = matches!(other, Thing::File(file) if file.path.starts_with(MANIFESTS));
            machine(other)
                || downloads(&["cni-plugins", "ecr-credential-provider", "kubelet"])(other)
                || unit_named("containerd.service")(other)
                || (is_in(other, &folders) && !manifest)
        }),
        "protokube.service" => all(&|other| {
            let folders = [
                KUBERNETES,
                MANIFESTS,
                "/var/lib/kube-controller-manager",
                "/var/lib/kube-scheduler",
            ];
            let manifest = matches!(other, Thing::File(file) if file.path.starts_with(MANIFESTS));
            downloads(&["protokube"])(other)
                || matches!(other, Thing::HostsBlock(_))
                || (is_in(other, &folders) && !manifest)
        }),
        "cni-iptables-setup.service" => all(&machine),
        RENEWAL_TIMER => all(&|other| is_in(other, &[RENEWAL_SERVICE])),
        _ if !unit.enabled => BTreeSet::new(),
        _ if unit.content.is_none() => all(&|other| match other {
            Thing::Packages(packages) => packages.name == "upkeep",
            other => {
                let beside = format!("{}.d", Thing::unit_path(&unit.name));
                let folder = if unit.name.starts_with("chrony") {
                    "/etc/chrony"
                } else {
                    &beside
                };
                is_in(other, &[folder])
            }
        }),
        // A hook may use whatever else the user puts on machines, and containers.
        _ => all(&|other| match other {
            Thing::File(file) => config.files.iter().any(|users| users.path == file.path),
            Thing::Packages(packages) => packages.name != "upkeep",
            Thing::Mount(_) => true,
            other => {
                let content = unit.content.as_deref().unwrap_or_default();
                says(content, "After", "containerd.service")
                    && unit_named("containerd.service")(other)
            }
        }),
    }
}

/// Whether a unit names another in one of its lists.
fn says(content: &str, list: &str, unit: &str) -> bool {
    let lists = content
        .lines()
        .filter_map(|line| line.trim().split_once('='));
    lists
        .filter(|(name, _)| name.trim() == list)
        .any(|(_, units)| units.split_whitespace().any(|named| named == unit))
}

/// Units and the hooks that say they come before them: systemd orders what is started at once, and nodeup starts each
/// unit when it can. What would go in a circle is left to systemd.
fn started_before(things: &[Thing]) -> BTreeMap<Id, BTreeSet<Id>> {
    let units: Vec<&Unit> = things
        .iter()
        .filter_map(|thing| match thing {
            Thing::Unit(unit) => Some(unit),
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
        let after_containerd = says(content, "After", "containerd.service");
        for later in ours.iter().filter(|later| says(content, "Before", later)) {
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
    edges
}
