//! What else the instances of a group run containers with: nerdctl, gVisor, GPUs.
use crate::addons::find_addon;
use crate::host::{config_of, instance_facts};
use engine::Id;
use node::config::{File, NodeConfig, Role, host_files};
use node::host::{HostObject, HostResource, InstallTarget, desired_resources};
use serde_json::{Value, json};
use spec::api::InstanceGroup;
use spec::expand::Expanded;
use spec::read::{Problem, render_problems};
use test_support::{expanded_spec, group_of, try_expanded_with};

/// The sample with changes in its group of nodes.
fn try_with_nodes(change: impl FnOnce(&mut InstanceGroup)) -> Result<Expanded, Vec<Problem>> {
    try_expanded_with(|_, groups| {
        let nodes = groups
            .iter_mut()
            .find(|group| group.name().starts_with("nodes"));
        change(nodes.unwrap());
    })
}

/// With these settings of containerd in that group.
fn with_nodes(containerd: &Value) -> Expanded {
    try_with_nodes(|nodes| {
        nodes.spec.containerd = Some(serde_json::from_value(containerd.clone()).unwrap());
    })
    .unwrap()
}

fn resources(config: &NodeConfig) -> Vec<HostResource> {
    desired_resources(config, &instance_facts(false)).unwrap()
}

fn files_of(config: &NodeConfig) -> Vec<File> {
    host_files(config, &instance_facts(false)).unwrap()
}

fn content<'a>(files: &'a [File], path: &str) -> &'a str {
    let file = files.iter().find(|file| file.path == path);
    &file.unwrap_or_else(|| panic!("no {path}")).content
}

#[test]
fn nerdctl_is_installed_where_a_group_or_the_cluster_says_so() {
    let has = |expanded: &Expanded, role| {
        let config = config_of(expanded, role);
        let places = resources(&config).into_iter();
        let mut places = places.filter_map(|resource| match resource.thing {
            HostObject::Download(download) if download.name == "nerdctl" => Some(download.place),
            _ => None,
        });
        let members = [("nerdctl".to_owned(), "/usr/local/bin/nerdctl".to_owned())];
        places
            .next()
            .inspect(|place| assert_eq!(*place, InstallTarget::Members(members.into())))
            .is_some()
    };
    let of_group = with_nodes(&json!({"installNerdCtl": true}));
    assert!(has(&of_group, Role::Node) && !has(&of_group, Role::ControlPlane));
    let of_cluster = test_support::expanded_with(|cluster, _| {
        cluster
            .spec
            .containerd
            .get_or_insert_default()
            .install_nerd_ctl = Some(true);
    });
    assert!(has(&of_cluster, Role::Node) && has(&of_cluster, Role::ControlPlane));
    // Others stay as they are: no instance is out of date.
    assert_eq!(
        config_of(&of_group, Role::ControlPlane),
        config_of(&expanded_spec(), Role::ControlPlane)
    );
    let own = with_nodes(&json!({"installNerdCtl": true, "skipInstall": true}));
    assert!(!has(&own, Role::Node), "as in kOps");
}

#[test]
fn gvisor_brings_its_package_its_runtime_and_the_class_by_which_pods_ask_for_it() {
    assert!(find_addon(&expanded_spec().full, "gvisor.addons.k8s.io").is_none());
    for (platform, set) in [(None, "systrap"), (Some("kvm"), "kvm")] {
        let expanded = with_nodes(&json!({"gvisor": {"enabled": true, "platform": platform}}));
        let config = config_of(&expanded, Role::Node);
        assert_eq!(config.packages, ["runsc"]);
        let files = files_of(&config);
        assert_eq!(
            content(&files, "/etc/apt/sources.list.d/kctl-gvisor.list"),
            "deb [arch=amd64 signed-by=/etc/apt/keyrings/kctl-gvisor.asc] https://storage.googleapis.com/gvisor/releases release main\n"
        );
        assert_eq!(
            content(&files, "/etc/containerd/runsc.toml"),
            format!("[runsc_config]\nplatform = \"{set}\"\nsystemd-cgroup = \"true\"\n")
        );
        let settings = content(&files, "/etc/containerd/config.toml");
        let runtime = "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runsc]\nruntime_type = \"io.containerd.runsc.v1\"\n";
        assert!(settings.contains(runtime), "{settings}");
        let options = "runtimes.runsc.options]\nConfigPath = \"/etc/containerd/runsc.toml\"\nTypeUrl = \"io.containerd.runsc.v1.options\"\n";
        assert!(settings.contains(options), "{settings}");
        let labels = &group_of(&expanded.full, Role::Node).node_labels;
        assert_eq!(labels["kops.k8s.io/gvisor"], "1");
        let class = &find_addon(&expanded.full, "gvisor.addons.k8s.io")
            .unwrap()
            .objects[0];
        assert_eq!(class["handler"], "runsc");
        let selector = json!({"nodeSelector": {"kops.k8s.io/gvisor": "1"}});
        assert_eq!(class["scheduling"], selector);
        // No other group has any of it.
        assert_eq!(
            config_of(&expanded, Role::ControlPlane),
            config_of(&expanded_spec(), Role::ControlPlane)
        );
    }
}

/// apt finds no package of a source that it does not know yet, and kubelet starts pods as soon as it runs.
#[test]
fn the_package_comes_after_its_source_and_before_kubelet() {
    let config = config_of(
        &with_nodes(&json!({"gvisor": {"enabled": true}})),
        Role::Node,
    );
    let all = resources(&config);
    let needs = |kind: &str, name: &str| {
        let id = Id::new(kind, name);
        let found = all.iter().find(|resource| resource.thing.id() == id);
        found.unwrap().needs.clone()
    };
    let packages = needs("packages", "user");
    for path in [
        "/etc/apt/keyrings/kctl-gvisor.asc",
        "/etc/apt/sources.list.d/kctl-gvisor.list",
    ] {
        assert!(packages.contains(&Id::new("file", path)), "{packages:?}");
    }
    assert!(needs("unit", "kubelet.service").contains(&Id::new("packages", "user")));
}

#[test]
fn an_image_without_the_package_is_refused_as_far_as_its_name_tells() {
    for (image, refused) in [
        (
            "137112412989/al2023-ami-2023.12.20260710.0-kernel-6.1-x86_64",
            true,
        ),
        ("136693071363/debian-13-amd64-20260713-2537", false),
        ("ami-1", false),
    ] {
        let outcome = try_with_nodes(|nodes| {
            nodes.spec.image = Some(image.to_owned());
            let gvisor = json!({"gvisor": {"enabled": true}});
            nodes.spec.containerd = Some(serde_json::from_value(gvisor).unwrap());
        });
        let said = outcome.err().map(|problems| render_problems(&problems));
        let names = |said: &String| said.contains("gVisor is a package for Debian and Ubuntu");
        assert_eq!(said.as_ref().is_some_and(names), refused, "{said:?}");
        assert_eq!(said.is_some(), refused, "{said:?}");
    }
}

#[test]
fn a_config_toml_of_the_user_s_gets_no_runtime_and_a_warning() {
    for own in [
        json!({"configOverride": "version = 3\n", "gvisor": {"enabled": true}}),
        json!({"skipInstall": true, "gvisor": {"enabled": true}}),
    ] {
        let warnings = render_problems(&with_nodes(&own).warnings);
        assert!(
            warnings.contains("kctl does not add the runtime runsc"),
            "{warnings}"
        );
    }
}

/// The sample with nodes of this type and image, and GPUs as the cluster and the group want them.
fn with_gpus(
    machine_type: &str,
    image: &str,
    of_cluster: &Value,
    of_group: &Value,
) -> Result<Expanded, Vec<Problem>> {
    let section = |nvidia: &Value| {
        let containerd = json!({ "nvidiaGPU": nvidia });
        Some(serde_json::from_value(containerd).unwrap())
    };
    try_expanded_with(|cluster, groups| {
        cluster.spec.containerd = section(of_cluster);
        let nodes = groups
            .iter_mut()
            .find(|group| group.name().starts_with("nodes"));
        let nodes = &mut nodes.unwrap().spec;
        nodes.machine_type = Some(machine_type.to_owned());
        nodes.image = Some(image.to_owned());
        nodes.containerd = section(of_group);
    })
}

#[test]
fn instances_with_a_gpu_get_driver_and_runtime_and_their_nodes_only_pods_that_ask() {
    let on = json!({"enabled": true});
    let expanded = with_gpus("g4dn.xlarge", "ami-1", &on, &json!({})).unwrap();
    let config = config_of(&expanded, Role::Node);
    assert_eq!(
        config.packages,
        ["nvidia-container-toolkit", "nvidia-driver-535-server"]
    );
    let files = files_of(&config);
    assert_eq!(
        content(&files, "/etc/apt/sources.list.d/kctl-nvidia.list"),
        "deb [arch=amd64 signed-by=/etc/apt/keyrings/kctl-nvidia.asc] https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /\n"
    );
    let settings: toml::Table = content(&files, "/etc/containerd/config.toml")
        .parse()
        .unwrap();
    let runtimes = &settings["plugins"]["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"];
    let options = &runtimes["nvidia"]["options"];
    assert_eq!(
        options["BinaryName"].as_str(),
        Some("/usr/bin/nvidia-container-runtime")
    );
    assert_eq!(options["SystemdCgroup"].as_bool(), Some(true));
    let group = group_of(&expanded.full, Role::Node);
    assert_eq!(group.node_labels["kops.k8s.io/gpu"], "1");
    assert_eq!(group.taints, ["nvidia.com/gpu:NoSchedule"]);
    // Groups without a GPU have none of it.
    assert_eq!(
        config_of(&expanded, Role::ControlPlane),
        config_of(&expanded_spec(), Role::ControlPlane)
    );
    for (machine_type, of_cluster, of_group) in [
        ("t3.medium", &on, json!({})),
        ("g4ad.xlarge", &on, json!({})),
        ("g4dn.xlarge", &on, json!({"enabled": false})),
        ("g4dn.xlarge", &json!({}), json!({})),
    ] {
        let expanded = with_gpus(machine_type, "ami-1", of_cluster, &of_group).unwrap();
        assert!(config_of(&expanded, Role::Node).packages.is_empty());
        assert!(group_of(&expanded.full, Role::Node).taints.is_empty());
    }
    let own = json!({"enabled": true, "package": "nvidia-driver-570-server"});
    let expanded = with_gpus("p4d.24xlarge", "ami-1", &json!({}), &own).unwrap();
    assert!(
        config_of(&expanded, Role::Node)
            .packages
            .contains(&"nvidia-driver-570-server".to_owned())
    );
}

#[test]
fn a_taint_of_the_user_s_for_gpus_stays() {
    let expanded = try_with_nodes(|nodes| {
        let on = json!({"nvidiaGPU": {"enabled": true}});
        nodes.spec.containerd = Some(serde_json::from_value(on).unwrap());
        nodes.spec.machine_type = Some("g4dn.xlarge".to_owned());
        nodes.spec.taints = vec!["nvidia.com/gpu=present:NoSchedule".to_owned()];
    })
    .unwrap();
    let taints = &group_of(&expanded.full, Role::Node).taints;
    assert_eq!(*taints, ["nvidia.com/gpu=present:NoSchedule"]);
}

#[test]
fn gpus_need_an_image_of_ubuntu() {
    let on = json!({"enabled": true});
    for (image, refused) in [
        ("136693071363/debian-13-amd64-20260713-2537", true),
        (
            "137112412989/al2023-ami-2023.12.20260710.0-kernel-6.1-x86_64",
            true,
        ),
        (
            "099720109477/ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260714",
            false,
        ),
        ("123456789012/our-golden-image", false),
    ] {
        let outcome = with_gpus("g4dn.xlarge", image, &on, &json!({}));
        let said = outcome.err().map(|problems| render_problems(&problems));
        let names = |said: &String| said.contains("NVIDIA's drivers are packages of Ubuntu");
        assert_eq!(said.as_ref().is_some_and(names), refused, "{said:?}");
    }
}

#[test]
fn the_device_plugin_runs_on_nodes_with_gpus_and_metrics_where_the_spec_says_so() {
    let addon = |of_cluster: &Value, of_group: &Value| {
        let expanded = with_gpus("g4dn.xlarge", "ami-1", of_cluster, of_group).unwrap();
        find_addon(&expanded.full, "nvidia.addons.k8s.io")
    };
    assert!(addon(&json!({}), &json!({"enabled": false})).is_none());
    let on = json!({"enabled": true});
    let plain = addon(&json!({}), &on).unwrap();
    assert_eq!(plain, addon(&on, &json!({})).unwrap());
    insta::assert_snapshot!("nvidia.addons.k8s.io", plain.manifest);
    let own = json!({"enabled": true, "image": "example.com/plugin:v1", "dcgmExporter": {"enabled": true}});
    let objects = addon(&own, &json!({})).unwrap().objects;
    let sets: Vec<&Value> = objects
        .iter()
        .filter(|object| object["kind"] == "DaemonSet")
        .map(|set| &set["spec"]["template"]["spec"])
        .collect();
    assert_eq!(sets.len(), 2);
    assert_eq!(sets[0]["containers"][0]["image"], "example.com/plugin:v1");
    for pods in sets {
        assert_eq!(pods["runtimeClassName"], "nvidia");
        assert_eq!(pods["nodeSelector"], json!({"kops.k8s.io/gpu": "1"}));
    }
}
