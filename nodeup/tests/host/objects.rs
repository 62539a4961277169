//! Tests of single kinds of objects.

use crate::test_host::{SimulatedSystem, TestHost, dependencies_of, failed_output, image_archives};
use node::config::{Distribution, Role};
use node::host::{HostObject, HostResource, Packages};
use std::os::unix::fs::MetadataExt;

fn desired_of_kind(
    host: &TestHost,
    kind: &str,
    change: impl FnOnce(&mut node::config::NodeConfig),
) -> Vec<HostResource> {
    let all = host.desired_state(Role::ControlPlane, change).into_iter();
    let matching = all.filter(|resource| resource.thing.id().kind() == kind);
    matching
        .map(|resource| HostResource::new(resource.thing))
        .collect()
}

fn count_calls(host: &TestHost, program: &str) -> usize {
    let memory = host.memory.lock().unwrap();
    memory
        .calls
        .iter()
        .filter(|call| call.starts_with(program))
        .count()
}

#[test]
fn packages_that_are_there_need_no_network() {
    let host = TestHost::new();
    let wanted = desired_of_kind(&host, "packages", |config| {
        config.packages = vec!["other-socat".into(), "a=1.2".into()];
    });
    let names: Vec<String> = wanted
        .iter()
        .flat_map(|resource| match &resource.thing {
            HostObject::Packages(packages) => packages.packages.clone(),
            _ => Vec::new(),
        })
        // A package that is provided by another one counts as installed, whatever its version.
        .filter(|name| name != "other-socat")
        .map(|name| name.split('=').next().unwrap_or_default().to_owned())
        .collect();
    host.memory.lock().unwrap().packages.extend(names);
    assert!(host.planned_changes(&wanted).is_empty());
    assert!(host.apply(&wanted).is_complete());
    assert_eq!(count_calls(&host, "apt-get"), 0);
}

#[test]
fn a_package_tool_that_is_busy_is_waited_for_and_a_broken_one_is_mended() {
    let host = TestHost::new();
    let wanted = desired_of_kind(&host, "packages", |_| ());
    {
        let mut memory = host.memory.lock().unwrap();
        let busy = failed_output(
            100,
            "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)",
        );
        memory.answers.insert("apt-get install".into(), vec![busy]);
        let mut broken = crate::test_host::successful_output(
            "The following packages are only half configured:\n chrony\n",
        );
        broken.code = Some(1);
        memory.answers.insert("dpkg --audit".into(), vec![broken]);
    }
    let applied = host.apply(&wanted);
    assert!(applied.is_complete(), "{applied:?}");
    assert_eq!(count_calls(&host, "dpkg --force-confold --configure -a"), 1);
    let notes = host.notes.lock().unwrap().join("\n");
    assert!(notes.contains("Could not get lock"), "{notes}");
}

#[test]
fn a_package_that_does_not_exist_is_an_error_at_once() {
    let host = TestHost::new();
    let wanted = desired_of_kind(&host, "packages", |config| {
        config.packages = vec!["no-such".into()];
    });
    let none = failed_output(100, "E: Unable to locate package no-such");
    host.memory.lock().unwrap().answers.insert(
        "apt-get install".into(),
        vec![none.clone(), none.clone(), none],
    );
    let applied = host.apply(&wanted);
    assert_eq!(applied.failed.len(), 3);
    assert!(applied.error_text().unwrap().contains("no-such"));
}

/// apt knows no package of a repository that it was not told of, and a boot may end anywhere.
#[test]
fn a_package_is_installed_only_after_the_file_that_names_its_repository() {
    const LIST: &str = "/etc/apt/sources.list.d/tools.list";
    let wanted = |host: &TestHost| -> Vec<HostResource> {
        let all = host.desired_state(Role::ControlPlane, |config| {
            config.packages = vec!["tool".into()];
            config.files = vec![node::config::File::new(LIST, "deb https://example.com /\n")];
        });
        let ids = ["packages/user".to_owned(), format!("file/{LIST}")];
        let both = all
            .into_iter()
            .filter(|one| ids.contains(&one.thing.id().to_string()));
        both.map(|one| HostResource {
            needs: one
                .needs
                .into_iter()
                .filter(|need| ids.contains(&need.to_string()))
                .collect(),
            ..one
        })
        .collect()
    };
    let installed = |host: &TestHost| host.memory.lock().unwrap().packages.contains("tool");
    let mut ended_before = 0;
    for after in 0..20 {
        let host = TestHost::new();
        host.apply_and_die(&wanted(&host), after);
        if !host.host_path(LIST).exists() {
            assert!(!installed(&host), "{after}");
            ended_before += 1;
        }
        assert!(host.apply(&wanted(&host)).is_complete());
        assert!(installed(&host));
    }
    assert!(ended_before > 0);
}

/// Every way in which the spec may name a package that apt or dnf installs.
#[test]
fn what_was_installed_under_the_words_of_the_spec_is_recognised() {
    for (distribution, packages) in [
        (
            Distribution::Debian,
            ["vim/noble", "libc6:arm64", "nginx=1:1.24-2", "a/b=1", "g++"].as_slice(),
        ),
        (
            Distribution::AmazonLinux,
            [
                "htop-3.2.2-1.amzn2023.x86_64",
                "glibc.i686",
                "tool-1.0^20230101-1.x86_64",
                "strace",
            ]
            .as_slice(),
        ),
    ] {
        let host = TestHost::new();
        let wanted = [HostResource::new(HostObject::Packages(Packages {
            name: "user".into(),
            packages: packages.iter().map(|name| (*name).to_owned()).collect(),
            distribution,
        }))];
        let applied = host.apply(&wanted);
        assert!(applied.is_complete(), "{applied:?}");
        assert!(host.planned_changes(&wanted).is_empty(), "{packages:?}");
    }
}

#[test]
fn a_parameter_that_the_kernel_lacks_is_told_and_looked_for_again() {
    let host = TestHost::new();
    let sysctls = desired_of_kind(&host, "sysctl", |_| ());
    assert!(host.apply(&sysctls).is_complete());
    assert_eq!(host.read_text("/proc/sys/net/ipv4/ip_forward"), "1\n");
    assert_eq!(
        host.read_text("/proc/sys/net/ipv4/tcp_rmem"),
        "4096 87380 16777216\n"
    );
    // With it the kernel would ignore router advertisements.
    assert!(
        !sysctls
            .iter()
            .any(|one| format!("{one:?}").contains("ipv6"))
    );
    assert!(host.planned_changes(&sysctls).is_empty());
    let users = desired_of_kind(&host, "sysctl", |config| {
        config.sysctls.push("net.late.key = 1".into());
    });
    let applied = host.apply(&users);
    assert!(applied.is_complete(), "{applied:?}");
    let notes = host.notes.lock().unwrap().join("\n");
    assert!(notes.contains("no parameter net.late.key"), "{notes}");
    // Once a module brings it, the next run sets it.
    assert_eq!(host.planned_changes(&users), ["sysctl/net.late.key"]);
    let path = host.host_path("/proc/sys/net/late/key");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "0\n").unwrap();
    assert!(host.apply(&users).is_complete());
    assert_eq!(host.read_text("/proc/sys/net/late/key"), "1\n");
    assert!(host.planned_changes(&users).is_empty());
}

#[test]
fn a_parameter_of_the_users_that_the_kernel_refuses_is_an_error() {
    let host = TestHost::new();
    // A file that nobody can write.
    std::fs::create_dir_all(host.host_path("/proc/sys/kernel/refused")).unwrap();
    let users = desired_of_kind(&host, "sysctl", |config| {
        config.sysctls.push("kernel.refused = 1".into());
    });
    let error = host.apply(&users).error_text().unwrap();
    assert!(error.contains("kernel.refused"), "{error}");
}

/// The kernel rounds `fs.pipe-max-size` up, sorts `ip_local_reserved_ports` and writes hexadecimal numbers as decimal ones.
#[test]
fn a_value_that_the_kernel_takes_and_rewrites_is_set_once() {
    let host = TestHost::new();
    let path = "/proc/sys/net/ipv4/tcp_rmem";
    let file = host.host_path(path);
    std::fs::remove_file(&file).unwrap();
    // Takes what is written and keeps nothing of it.
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    let users = desired_of_kind(&host, "sysctl", |config| {
        config.sysctls.push("net.ipv4.tcp_rmem = 1 2 3".into());
    });
    let id = "sysctl/net.ipv4.tcp_rmem";
    assert!(host.planned_changes(&users).contains(&id.to_owned()));
    let applied = host.apply(&users);
    assert!(applied.is_complete(), "{applied:?}");
    let notes = host.notes.lock().unwrap().join("\n");
    assert!(
        notes.contains("\"1 2 3\" for net.ipv4.tcp_rmem and keeps \"\""),
        "{notes}"
    );
    assert!(host.planned_changes(&users).is_empty());
    // Somebody else's value is replaced, and so is the user's former one.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "9 9 9\n").unwrap();
    assert_eq!(host.planned_changes(&users), [id]);
    assert!(host.apply(&users).is_complete());
    assert_eq!(host.read_text(path), "1 2 3\n");
}

#[test]
fn mounts_of_pods_are_seen_by_containers() {
    let host = TestHost::new();
    let wanted = desired_of_kind(&host, "propagation", |_| ());
    assert_eq!(
        host.planned_changes(&wanted),
        ["propagation//var/lib/kubelet"]
    );
    assert!(host.apply(&wanted).is_complete());
    assert!(host.read_text("/proc/self/mountinfo").contains("shared:1"));
    assert!(host.planned_changes(&wanted).is_empty());
}

#[test]
fn our_block_goes_into_the_hosts_file_that_pods_have_open() {
    let host = TestHost::new();
    let wanted = desired_of_kind(&host, "hosts_block", |config| {
        for pod in config
            .control_plane
            .iter_mut()
            .flat_map(|control_plane| control_plane.static_pods.values_mut())
        {
            pod.metadata.annotations.clear();
        }
    });
    let inode = || {
        std::fs::metadata(host.host_path("/etc/hosts"))
            .unwrap()
            .ino()
    };
    let before = inode();
    assert_eq!(wanted.len(), 1);
    assert!(host.apply(&wanted).is_complete());
    assert_eq!(inode(), before);
    let hosts = host.read_text("/etc/hosts");
    assert!(
        hosts.starts_with("127.0.0.1 localhost\n")
            && hosts.contains("127.0.0.1 api.a.example.com api.internal.a.example.com\n")
    );
    assert!(host.planned_changes(&wanted).is_empty());
}

/// Attaches an EBS volume under a device name; the kernel shows it as `disk`.
fn attach_disk(host: &TestHost, disk: &str, volume: &str, attached: &str, content: &[u8]) {
    let device = host.host_path(&format!("/dev/{disk}"));
    let about = host.host_path(&format!("/sys/block/{disk}/device"));
    std::fs::create_dir_all(device.parent().unwrap()).unwrap();
    std::fs::create_dir_all(&about).unwrap();
    std::fs::write(&device, content).unwrap();
    std::fs::write(about.join("serial"), format!("{volume}\n")).unwrap();
    let mut memory = host.memory.lock().unwrap();
    let name = device.display().to_string();
    memory.attached.insert(name, attached.to_owned());
}

fn with_volume(host: &TestHost, content: &[u8]) -> Vec<HostResource> {
    attach_disk(host, "nvme2n1", "vol0a", "sdf", content);
    desired_of_kind(host, "mount", |config| {
        let volume =
            serde_json::json!([{ "device": "/dev/xvdf", "filesystem": "xfs", "path": "/data" }]);
        config.volume_mounts = serde_json::from_value(volume).unwrap();
    })
}

const DROP_IN: &str = "/etc/systemd/system/data.mount.d/device.conf";

#[test]
fn a_volume_is_found_by_the_name_that_aws_gave_it_and_later_by_its_file_system() {
    let host = TestHost::new();
    // Another volume with the desired file system appears first.
    attach_disk(&host, "nvme1n1", "vol0etcd", "xvdu", b"etcd");
    let etcd = host.host_path("/dev/nvme1n1").display().to_string();
    let formatted = |device: String| {
        host.memory
            .lock()
            .unwrap()
            .formatted
            .insert(device, "xfs".into())
    };
    formatted(etcd);
    let wanted = with_volume(&host, &[0; 4096]);
    assert!(host.apply(&wanted).is_complete());
    assert!(
        host.read_text("/proc/self/mountinfo")
            .contains(" /data rw - xfs /dev/nvme2n1 ")
    );
    assert_eq!(
        host.read_text(DROP_IN),
        "[Mount]\nWhat=/dev/disk/by-uuid/uuid-of-xfs\n"
    );

    // After a reboot the device names are swapped, and systemd has mounted the volume by UUID.
    attach_disk(&host, "nvme1n1", "vol0a", "sdf", b"data");
    attach_disk(&host, "nvme2n1", "vol0etcd", "xvdu", b"etcd");
    let mounted = host
        .read_text("/proc/self/mountinfo")
        .replace("nvme2n1", "nvme1n1");
    std::fs::write(host.host_path("/proc/self/mountinfo"), mounted).unwrap();
    assert!(host.planned_changes(&wanted).is_empty());

    // A host whose unit lacks the UUID gets it, without mounting again.
    std::fs::remove_file(host.host_path(DROP_IN)).unwrap();
    let table = host.read_text("/proc/self/mountinfo");
    assert!(host.apply(&wanted).is_complete());
    assert!(host.planned_changes(&wanted).is_empty());
    assert_eq!(host.read_text("/proc/self/mountinfo"), table);
    assert_eq!(count_calls(&host, "mkfs"), 1);
}

#[test]
fn a_blank_volume_is_formatted_once_and_mounted() {
    let host = TestHost::new();
    let wanted = with_volume(&host, &[0; 4096]);
    assert!(host.apply(&wanted).is_complete());
    assert!(
        host.read_text("/proc/self/mountinfo")
            .contains(" /data rw - xfs /dev/nvme2n1 ")
    );
    assert!(host.planned_changes(&wanted).is_empty());
    // After the reboot the volume is mounted.
    std::fs::write(host.host_path("/proc/self/mountinfo"), "").unwrap();
    assert!(host.apply(&wanted).is_complete());
    assert_eq!(count_calls(&host, "mkfs.xfs"), 1);
}

#[test]
fn a_volume_with_anything_on_it_is_never_formatted() {
    let mut late = vec![0; 1 << 20];
    late[(1 << 20) - 1] = 1;
    for content in [b"data".to_vec(), late] {
        let host = TestHost::new();
        let wanted = with_volume(&host, &content);
        let error = host.apply(&wanted).error_text().unwrap();
        assert!(error.contains("neither blank nor"), "{error}");
        assert_eq!(
            (count_calls(&host, "mkfs"), count_calls(&host, "mount")),
            (0, 0)
        );
    }
    let host = TestHost::new();
    let wanted = with_volume(&host, &[0; 4096]);
    let device = host.host_path("/dev/nvme2n1").display().to_string();
    host.memory
        .lock()
        .unwrap()
        .formatted
        .insert(device, "ext4".into());
    assert!(
        host.apply(&wanted)
            .error_text()
            .unwrap()
            .contains("it has ext4")
    );
}

#[test]
fn a_partition_table_beside_the_file_system_that_is_wanted_is_somebodys() {
    let host = TestHost::new();
    let wanted = with_volume(&host, &[0; 4096]);
    let both = crate::test_host::successful_output("TYPE=xfs\nPTTYPE=gpt\n");
    let answers =
        |memory: &mut SimulatedSystem| memory.answers.insert("blkid -p".into(), vec![both]);
    answers(&mut host.memory.lock().unwrap());
    let error = host.apply(&wanted).error_text().unwrap();
    assert!(
        error.contains("it has both xfs and a gpt partition table"),
        "{error}"
    );
    assert_eq!(
        (count_calls(&host, "mkfs"), count_calls(&host, "mount")),
        (0, 0)
    );
}

#[test]
fn formatting_that_was_interrupted_goes_on() {
    let host = TestHost::new();
    let wanted = with_volume(&host, &[0; 4096]);
    let died = failed_output(1, "killed");
    host.memory.lock().unwrap().answers.insert(
        "mkfs.xfs ".to_owned() + &host.host_path("/dev/nvme2n1").display().to_string(),
        vec![died],
    );
    assert!(!host.apply(&wanted).is_complete());
    std::fs::write(host.host_path("/dev/nvme2n1"), b"half a file system").unwrap();
    assert!(host.apply(&wanted).is_complete());
    assert_eq!(count_calls(&host, "mkfs.xfs"), 2);
}

#[test]
fn formatting_that_was_interrupted_says_nothing_of_another_volume_with_the_same_name() {
    let host = TestHost::new();
    let wanted = with_volume(&host, &[0; 4096]);
    let device = host.host_path("/dev/nvme2n1").display().to_string();
    let died = failed_output(1, "killed");
    let mkfs = format!("mkfs.xfs {device}");
    host.memory.lock().unwrap().answers.insert(mkfs, vec![died]);
    assert!(!host.apply(&wanted).is_complete());
    attach_disk(&host, "nvme2n1", "vol0b", "sdf", b"somebody's");
    let error = host.apply(&wanted).error_text().unwrap();
    assert!(error.contains("neither blank nor"), "{error}");
    assert_eq!(count_calls(&host, "mkfs.xfs"), 1);
}

#[test]
fn a_masked_unit_is_a_link_to_nothing_and_stopped() {
    let host = TestHost::new();
    let wanted = desired_of_kind(&host, "unit", |config| {
        config.units = vec![node::config::UnitFile {
            enabled: false,
            ..node::config::UnitFile::new("update-engine.service", "")
        }];
        config.ntp = false;
    });
    host.memory
        .lock()
        .unwrap()
        .units
        .entry("update-engine.service".into())
        .or_default()
        .state = "active".into();
    assert!(host.apply(&wanted).is_complete());
    let link =
        std::fs::read_link(host.host_path("/etc/systemd/system/update-engine.service")).unwrap();
    assert_eq!(link.to_str(), Some("/dev/null"));
    assert_eq!(
        host.memory.lock().unwrap().units["update-engine.service"].state,
        "inactive"
    );
    assert!(host.planned_changes(&wanted).is_empty());
}

#[test]
fn a_unit_that_somebody_stopped_is_started_again() {
    let host = TestHost::new();
    let wanted = desired_of_kind(&host, "unit", |_| ());
    assert!(host.apply(&wanted).is_complete());
    host.memory
        .lock()
        .unwrap()
        .units
        .get_mut("kubelet.service")
        .unwrap()
        .state = "inactive".into();
    assert_eq!(host.planned_changes(&wanted), ["unit/kubelet.service"]);
    assert!(host.apply(&wanted).is_complete());
    assert_eq!(
        host.memory.lock().unwrap().units["kubelet.service"].state,
        "active"
    );
}

#[test]
fn tools_are_whole_and_read_only_and_older_ones_stay() {
    let host = TestHost::new();
    let all = |config: &mut node::config::NodeConfig, version: &str| {
        version.clone_into(&mut config.kubernetes_version);
    };
    for version in ["1.36.2", "1.36.3"] {
        let wanted: Vec<HostResource> = host
            .desired_state(Role::Node, |config| all(config, version))
            .into_iter()
            .filter(|resource| {
                matches!(
                    resource.thing.id().kind(),
                    "download" | "tools" | "link" | "directory"
                )
            })
            .map(|resource| HostResource {
                needs: resource
                    .needs
                    .into_iter()
                    .filter(|need| need.kind() != "packages")
                    .collect(),
                ..resource
            })
            .collect();
        assert!(host.apply(&wanted).is_complete());
        assert!(host.planned_changes(&wanted).is_empty());
    }
    let tree = host.file_tree();
    let folders: Vec<&String> = tree
        .keys()
        .filter(|path| path.ends_with("/bin") && path.contains("/opt/kctl/tools"))
        .collect();
    assert_eq!(folders.len(), 2, "{folders:?}");
    for folder in folders {
        assert_eq!(tree[folder], "0555 folder");
        assert_eq!(tree[&format!("{folder}/crictl")], "0555 program crictl");
    }
    assert!(tree["/opt/kctl/tools/current"].contains("-> 1.36.3-"));
    assert_eq!(
        host.read_text("/opt/kctl/tools/current/bin/socat"),
        "program socat"
    );
}

/// Programs, the kernel and systemd may say that they changed something, and have not: hardened images disable modules with
/// `install MODULE /bin/true`, and package tools pass over what a policy excludes. Kernel parameters are set once the kernel took the
/// value, whatever it makes of it.
#[test]
fn what_is_reported_as_changed_and_is_not_is_an_error_for_every_kind() {
    let mut failed = std::collections::BTreeSet::new();
    for kind in [
        "kernel_module",
        "packages",
        "propagation",
        "mount",
        "unit",
        "hosts_block",
        "image",
    ] {
        let host = TestHost::new();
        let wanted = match kind {
            "mount" => with_volume(&host, &[0; 4096]),
            kind => desired_of_kind(&host, kind, |config| {
                let mut masked = node::config::UnitFile::new("masked.service", "");
                masked.enabled = false;
                config.units.push(masked);
                config.images = image_archives(&host.cache_folder());
                if let Some(of) = &mut config.control_plane {
                    let pods = of.static_pods.values_mut();
                    pods.for_each(|pod| pod.metadata.annotations.clear());
                }
            }),
        };
        {
            let mut memory = host.memory.lock().unwrap();
            memory.does_nothing = true;
            memory
                .units
                .entry("masked.service".into())
                .or_default()
                .state = "active".into();
        }
        // A file that takes what is written and does not keep it.
        let hosts = host.host_path("/etc/hosts");
        std::fs::remove_file(&hosts).unwrap();
        std::os::unix::fs::symlink("/dev/null", hosts).unwrap();
        let planned = host.planned_changes(&wanted);
        assert!(!planned.is_empty(), "{kind}");
        let applied = host.apply(&wanted);
        let text = applied.error_text().unwrap_or_default();
        let names: Vec<&String> = applied.failed.iter().map(|(id, _)| id).collect();
        for id in &planned {
            assert!(names.contains(&id), "{id} is not among {names:?}: {text}");
        }
        assert!(!text.contains("PRIVATE"));
        failed.insert(kind);
    }
    assert_eq!(failed.len(), 7);
}

#[test]
fn a_module_that_is_not_loaded_is_an_error_with_a_next_step() {
    let host = TestHost::new();
    host.memory.lock().unwrap().does_nothing = true;
    let text = host
        .apply(&desired_of_kind(&host, "kernel_module", |_| ()))
        .error_text()
        .unwrap();
    assert!(
        text.contains("br_netfilter") && text.contains("modprobe.d"),
        "{text}"
    );
}

fn set_containerd(host: &TestHost, state: &str) {
    let mut memory = host.memory.lock().unwrap();
    let unit = memory.units.entry("containerd.service".into());
    state.clone_into(&mut unit.or_default().state);
}

fn wanted_images(host: &TestHost) -> Vec<HostResource> {
    desired_of_kind(host, "image", |config| {
        config.images = image_archives(&host.cache_folder());
    })
}

const IMPORT: &str = "ctr --namespace k8s.io images import";

/// Early in a boot containerd does not answer yet, and the archives are gone.
#[test]
fn an_image_is_imported_once_and_again_only_if_containerd_has_it_no_more() {
    let host = TestHost::new();
    let wanted = wanted_images(&host);
    set_containerd(&host, "active");
    assert!(host.apply(&wanted).is_complete());
    assert_eq!(count_calls(&host, IMPORT), 2);
    for state in ["inactive", "active"] {
        set_containerd(&host, state);
        assert!(host.planned_changes(&wanted).is_empty(), "{state}");
    }
    let unpin = |host: &TestHost| {
        let mut memory = host.memory.lock().unwrap();
        memory.images.values_mut().next().unwrap().1 = "io.cri-containerd.image=managed".into();
    };
    unpin(&host);
    assert_eq!(host.planned_changes(&wanted).len(), 1);
    host.memory.lock().unwrap().images.clear();
    assert_eq!(host.planned_changes(&wanted).len(), 2);
    assert!(host.apply(&wanted).is_complete());
    assert_eq!(count_calls(&host, IMPORT), 4);
    // Its folder is on a disk that a stop of the instance empties.
    std::fs::remove_dir_all(host.host_path("/var/lib/containerd")).unwrap();
    set_containerd(&host, "inactive");
    assert_eq!(host.planned_changes(&wanted).len(), 2);
}

#[test]
fn an_archive_that_the_disk_has_changed_is_not_imported() {
    let host = TestHost::new();
    let wanted = wanted_images(&host);
    set_containerd(&host, "active");
    for archive in image_archives(&host.cache_folder()) {
        std::fs::write(host.cache_folder().join(archive.sha256), "other").unwrap();
    }
    let applied = host.apply(&wanted);
    assert_eq!(applied.failed.len(), 2);
    assert!(applied.error_text().unwrap().contains("has sha256"));
    assert_eq!(count_calls(&host, IMPORT), 0);
}

/// As in machine images with a containerd of their own.
#[test]
fn a_containerd_that_pins_nothing_gets_no_image() {
    for (version, fits) in [
        ("1.6.20~ds1", false),
        ("v1.7.9", false),
        ("v1.7.10", true),
        ("v2.1.0-rc.1", true),
        ("(devel)", true),
    ] {
        let host = TestHost::new();
        let wanted = wanted_images(&host);
        set_containerd(&host, "active");
        version.clone_into(&mut host.memory.lock().unwrap().containerd_version);
        let applied = host.apply(&wanted);
        assert_eq!(applied.is_complete(), fits, "{version}");
        let text = applied.error_text().unwrap_or_default();
        assert_eq!(text.contains("1.7.10 or newer"), !fits, "{version}: {text}");
    }
}

#[test]
fn kubelet_starts_with_all_images_and_containerd_with_none() {
    let host = TestHost::new();
    for role in [Role::ControlPlane, Role::Node] {
        let all = host.desired_state(role, |config| {
            config.images = image_archives(&host.cache_folder());
        });
        for archive in image_archives(&host.cache_folder()) {
            let id = format!("image/{}", archive.image);
            assert!(dependencies_of(&all, "unit/kubelet.service").contains(&id));
            assert!(!dependencies_of(&all, "unit/containerd.service").contains(&id));
            let needs = dependencies_of(&all, &id);
            for need in ["download/containerd", "unit/containerd.service"] {
                assert!(needs.contains(&need.to_owned()), "{needs:?}");
            }
        }
    }
}
