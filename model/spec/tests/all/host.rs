//! The desired state of instances: its content, its order, and what it must not contain.
use engine::{Id, Resource, Snapshot, plan};
use node::config::{
    API_PROXY_UNIT, Asset, Distribution, IMAGE_PULLS, InstanceFacts, NodeConfig, Role,
};
use node::host::{Certificate, HostObject, HostResource, desired_resources};
use serde_json::json;
use spec::expand::Expanded;
use std::collections::BTreeMap;
use test_support::{expanded_spec, expanded_with, full_spec, node_config_of};

pub fn config_of(expanded: &Expanded, role: Role) -> NodeConfig {
    let mut config = node_config_of(&expanded.full, role, "-----BEGIN CERTIFICATE-----\n");
    // The expansion of tests knows no hashes.
    let known = |asset: &Asset| Asset {
        sha256: Some("3".repeat(64)),
        ..asset.clone()
    };
    config.assets = config.assets.iter().map(known).collect();
    config
}

pub fn instance_facts(cgroup_v1: bool) -> InstanceFacts {
    InstanceFacts {
        instance_id: "i-0abc".into(),
        zone: "eu-west-1a".into(),
        cgroup_v1,
        ..InstanceFacts::placeholder()
    }
}

fn role_resources(role: Role) -> Vec<HostResource> {
    desired_resources(&config_of(&expanded_spec(), role), &instance_facts(false)).unwrap()
}

/// Each thing with what it needs, but for parameters of the kernel, of which there are many of one kind.
fn resource_list(all: &[HostResource]) -> String {
    let brief = |id: String| {
        if id.starts_with("sysctl/") {
            "sysctl/*".to_owned()
        } else {
            id
        }
    };
    let mut lines = Vec::new();
    for resource in all {
        let mut needs: Vec<String> = resource
            .needs
            .iter()
            .map(|need| brief(need.to_string()))
            .collect();
        needs.dedup();
        lines.push(format!(
            "{} <- {}",
            brief(resource.id().to_string()),
            needs.join(" ")
        ));
    }
    lines.dedup();
    lines.join("\n")
}

fn find_unit(all: &[HostResource], name: &str) -> (String, Vec<String>) {
    let found = all.iter().find_map(|resource| match &resource.thing {
        HostObject::Unit(unit) if unit.name == name => {
            let needs = resource.needs.iter().map(ToString::to_string).collect();
            Some((unit.starts_with.clone(), needs))
        }
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_control_plane_is_made_of_these() {
    insta::assert_snapshot!(resource_list(&role_resources(Role::ControlPlane)));
}

/// Root on a control plane has one issued for hours: `protokube admin-kubeconfig`.
#[test]
fn no_instance_has_the_key_of_an_administrator() {
    for role in [Role::ControlPlane, Role::Node] {
        for resource in role_resources(role) {
            if let HostObject::Certificate(certificate) = &resource.thing {
                let organization = certificate.organization.as_deref();
                assert_ne!(organization, Some("system:masters"), "{certificate:?}");
            }
        }
    }
}

#[test]
fn a_worker_is_made_of_these() {
    insta::assert_snapshot!(resource_list(&role_resources(Role::Node)));
}

#[test]
fn every_machine_can_be_made_from_nothing() {
    let volumes = json!([
        { "device": "/dev/nvme2n1", "filesystem": "ext4", "path": "/var/lib/containerd" },
        { "device": "/dev/nvme3n1", "filesystem": "xfs", "path": "/var/lib/kubelet" },
        { "device": "/dev/nvme4n1", "filesystem": "xfs", "path": "/var/lib/kubelet/pods" },
    ]);
    let hooks = json!([
        { "name": "early", "manifest": "ExecStart=/bin/true", "before": ["containerd.service", "kubelet.service"] },
        { "name": "pull", "before": ["containerd.service"], "execContainer": { "image": "busybox" } },
        { "name": "off", "disabled": true },
    ]);
    let busy = expanded_with(|_, groups| {
        for group in groups {
            group.spec.volume_mounts = serde_json::from_value(volumes.clone()).unwrap();
            group.spec.hooks = serde_json::from_value(hooks.clone()).unwrap();
        }
    });
    for expanded in std::iter::once(expanded_spec()).chain(std::iter::once(busy)) {
        for role in [Role::ControlPlane, Role::Node] {
            for distribution in [Distribution::Debian, Distribution::AmazonLinux] {
                let host = InstanceFacts {
                    distribution,
                    ..instance_facts(false)
                };
                let all = desired_resources(&config_of(&expanded, role), &host).unwrap();
                let plan = plan(&all, &Snapshot::default()).unwrap();
                assert_eq!(plan.steps.len(), all.len());
            }
        }
    }
}

/// The proxy itself waits for nothing: it finds kubelet's certificate when it is there.
#[test]
fn kubelet_starts_after_the_proxy_of_the_api() {
    let api = json!({ "nodeProxy": {} });
    let expanded = expanded_with(|cluster, _| {
        cluster.spec.api = Some(serde_json::from_value(api).unwrap());
    });
    for role in [Role::ControlPlane, Role::Node] {
        let all = desired_resources(&config_of(&expanded, role), &instance_facts(false)).unwrap();
        let (_, needs) = find_unit(&all, "kubelet.service");
        assert!(
            needs.contains(&format!("unit/{API_PROXY_UNIT}")),
            "{needs:?}"
        );
        assert_eq!(find_unit(&all, API_PROXY_UNIT).1, [""; 0]);
    }
}

#[test]
fn folders_of_volumes_are_made_on_the_volumes() {
    let volumes =
        json!([{ "device": "/dev/nvme2n1", "filesystem": "xfs", "path": "/var/lib/kubelet" }]);
    let expanded = expanded_with(|_, groups| {
        for group in groups {
            group.spec.volume_mounts = serde_json::from_value(volumes.clone()).unwrap();
        }
    });
    let all = desired_resources(&config_of(&expanded, Role::Node), &instance_facts(false)).unwrap();
    let needs: BTreeMap<String, String> = all
        .iter()
        .map(|resource| (resource.id().to_string(), format!("{:?}", resource.needs)))
        .collect();
    assert!(needs["directory//var/lib/kubelet"].contains("\"mount\""));
    assert!(!needs["mount//var/lib/kubelet"].contains("\"directory\""));
    assert!(
        find_unit(&all, "kubelet.service")
            .1
            .contains(&"mount//var/lib/kubelet".to_owned())
    );
    assert!(needs.contains_key("file//etc/systemd/system/var-lib-kubelet.mount"));
}

#[test]
fn a_unit_starts_again_exactly_when_something_it_needs_is_another() {
    let before = role_resources(Role::Node);
    let mut config = config_of(&expanded_spec(), Role::Node);
    config.kubelet.config["maxPods"] = json!(7);
    let after = desired_resources(&config, &instance_facts(false)).unwrap();
    assert_ne!(
        find_unit(&before, "kubelet.service").0,
        find_unit(&after, "kubelet.service").0
    );
    assert_eq!(
        find_unit(&before, "containerd.service").0,
        find_unit(&after, "containerd.service").0
    );
    let v1 = desired_resources(
        &config_of(&expanded_spec(), Role::Node),
        &instance_facts(true),
    )
    .unwrap();
    assert_ne!(
        find_unit(&before, "kubelet.service").0,
        find_unit(&v1, "kubelet.service").0
    );
    assert_eq!(
        find_unit(&before, "containerd.service").0,
        find_unit(&v1, "containerd.service").0
    );
}

#[test]
fn what_is_only_good_to_have_keeps_no_machine_out() {
    let users = expanded_with(|cluster, _| {
        cluster.spec.sysctl_parameters = vec!["no.such.key=1".into(), "vm.max_map_count=7".into()];
        cluster.spec.packages = vec!["nfs-common".into()];
    });
    let all = desired_resources(&config_of(&users, Role::Node), &instance_facts(false)).unwrap();
    for name in ["containerd.service", "kubelet.service"] {
        let needs = find_unit(&all, name).1;
        for other in [
            "packages/upkeep",
            "packages/user",
            "sysctl/no.such.key",
            "sysctl/vm.max_map_count",
        ] {
            assert!(!needs.contains(&other.to_owned()), "{name} needs {other}");
        }
        assert!(needs.contains(&"packages/needed".to_owned()));
        assert!(needs.contains(&"sysctl/net.ipv4.ip_forward".to_owned()));
    }
}

/// A registry that is slow or away holds nothing up.
#[test]
fn nothing_waits_for_images() {
    let pulls = Id::new("unit", IMAGE_PULLS);
    for role in [Role::ControlPlane, Role::Node] {
        let all = role_resources(role);
        assert!(all.iter().any(|resource| resource.id() == pulls));
        assert!(!all.iter().any(|resource| resource.needs.contains(&pulls)));
    }
}

#[test]
fn hooks_come_before_what_they_say_and_never_in_a_circle() {
    let hooks = json!([
        { "name": "early", "manifest": "ExecStart=/bin/true", "before": ["kubelet.service"] },
        { "name": "pull", "before": ["containerd.service"], "execContainer": { "image": "busybox" } },
    ]);
    let expanded = expanded_with(|cluster, _| {
        cluster.spec.hooks = serde_json::from_value(hooks).unwrap();
    });
    let all = desired_resources(&config_of(&expanded, Role::Node), &instance_facts(false)).unwrap();
    // It may bring the certificate authority of a registry.
    for name in ["kubelet.service", IMAGE_PULLS] {
        let (_, needs) = find_unit(&all, name);
        assert!(needs.contains(&"unit/early.service".to_owned()), "{name}");
    }
    assert!(
        find_unit(&all, "pull.service")
            .1
            .contains(&"unit/containerd.service".to_owned())
    );
    assert!(
        !find_unit(&all, "containerd.service")
            .1
            .contains(&"unit/pull.service".to_owned())
    );
}

#[test]
fn certificates_say_who_signs_them_and_whom_they_name() {
    let certificates = |role| -> BTreeMap<String, Certificate> {
        let all = role_resources(role).into_iter();
        let certificates = all.filter_map(|resource| match resource.thing {
            HostObject::Certificate(certificate) => {
                Some((certificate.path().to_owned(), certificate))
            }
            _ => None,
        });
        certificates.collect()
    };
    let worker = certificates(Role::Node);
    let signers: Vec<(&str, &str)> = worker
        .values()
        .map(|certificate| {
            (
                certificate.common_name.as_str(),
                certificate.signer.as_str(),
            )
        })
        .collect();
    assert_eq!(
        signers,
        [
            ("system:kube-proxy", "kubernetes-ca"),
            ("system:node:i-0abc", "kubernetes-ca")
        ]
    );
    let control_plane = certificates(Role::ControlPlane);
    let api = &control_plane["/srv/kubernetes/kube-apiserver/server.crt"];
    for name in [
        "127.0.0.1",
        "100.64.0.1",
        "api.a.example.com",
        "api.internal.a.example.com",
    ] {
        assert!(api.names.contains(&name.to_owned()), "{:?}", api.names);
    }
    let peer = &control_plane["/srv/kubernetes/etcd-events/peer.crt"];
    assert_eq!(peer.signer, "etcd-peers-ca-events");
    assert_eq!(peer.names, ["etcd-events-a.internal.a.example.com"]);
    let server = &control_plane["/srv/kubernetes/etcd/server.crt"];
    assert_eq!(
        server.names,
        ["127.0.0.1", "etcd-a.internal.a.example.com", "localhost"]
    );
}

#[test]
fn kubelets_certificates_live_as_long_as_kubernetes_signs_and_others_for_a_year() {
    let days = |days: i64| days * 24 * 60 * 60;
    for (said, kubelet) in [
        (None, days(455)),
        (Some("10m"), 600),
        (Some("8760h"), days(365)),
    ] {
        let expanded = expanded_with(|cluster, _| {
            let manager = cluster.spec.kube_controller_manager.get_or_insert_default();
            manager.cluster_signing_duration = said.map(str::to_owned);
        });
        let all = desired_resources(
            &config_of(&expanded, Role::ControlPlane),
            &instance_facts(false),
        )
        .unwrap();
        for thing in all.into_iter().map(|resource| resource.thing) {
            if let HostObject::Certificate(certificate) = thing {
                let own = certificate.common_name == "system:node:i-0abc";
                let expected = if own { kubelet } else { days(455) };
                let name = &certificate.common_name;
                assert_eq!(certificate.validity_seconds, expected, "{name}, {said:?}");
            }
        }
    }
}

#[test]
fn no_desired_state_holds_a_key() {
    for role in [Role::ControlPlane, Role::Node] {
        let text = serde_json::to_string(&role_resources(role)).unwrap();
        assert!(!text.contains("PRIVATE KEY") && !text.contains("client-key-data"));
    }
}

#[test]
fn an_offline_render_can_be_shown_and_not_installed() {
    let mut config = node_config_of(&full_spec(), Role::Node, "");
    config.assets[0].sha256 = None;
    let error = desired_resources(&config, &instance_facts(false)).unwrap_err();
    assert!(
        error.to_string().contains(&config.assets[0].name),
        "{error}"
    );
}

/// kube-proxy loads the module only after nodeup has set the kernel up.
#[test]
fn parameters_of_connection_tracking_come_with_their_module() {
    let made = |parameter: Option<&str>| {
        let mut config = config_of(&expanded_spec(), Role::Node);
        config.sysctls.extend(parameter.map(str::to_owned));
        let all = desired_resources(&config, &instance_facts(false)).unwrap();
        let needed = all.iter().any(|resource| {
            let id = resource.id().to_string();
            id.starts_with("sysctl/")
                && resource
                    .needs
                    .iter()
                    .any(|need| need.to_string() == "kernel_module/nf_conntrack")
        });
        let at_boot = all.iter().any(|resource| match &resource.thing {
            HostObject::File(file) => {
                file.path == "/etc/modules-load.d/kubernetes.conf"
                    && format!("{file:?}").contains("nf_conntrack")
            }
            _ => false,
        });
        (needed, at_boot)
    };
    for (parameter, expected) in [
        (None, false),
        (Some("net.core.somaxconn=1"), false),
        (Some("net.netfilter.nf_conntrack_max=1000000"), true),
        (
            Some("-net/netfilter/nf_conntrack_tcp_timeout_close_wait=60"),
            true,
        ),
        (Some("net.nf_conntrack_max=1000000"), true),
    ] {
        assert_eq!(made(parameter), (expected, expected), "{parameter:?}");
    }
}
