//! NodeConfig of each group, and the files and units that follow from it.
use full::addons::make_addons;
use full::images::cluster_images;
use full::nodes::node_config;
use node::config::{
    API_PROXY_UNIT, Distribution, Error, File, IMAGE_PULLS, InstanceFacts, NodeConfig, Role,
    host_files, read_node_config, to_stored,
};
use node::manifests::Pod;
use serde_json::{Value, json};
use spec::api::api_access::NodeProxySpec;
use spec::expand::Expanded;
use spec::read::Problem;
use spec::validate::{ClusterInput, validate};
use std::collections::BTreeSet;
use std::process::Command;
use test_support::{
    expanded_spec, expanded_with, expanded_with_fields, full_spec, group_of, made_up_agents,
    node_config_of, try_expanded_with, write_script,
};

const CERTIFICATES: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

fn config_of(expanded: &Expanded, role: Role) -> NodeConfig {
    node_config_of(&expanded.full, role, CERTIFICATES)
}

fn render_machine() -> InstanceFacts {
    InstanceFacts {
        instance_id: "i-0abc".into(),
        zone: "eu-west-1a".into(),
        ..InstanceFacts::placeholder()
    }
}

fn file_content(files: &[File], path: &str) -> String {
    let file = files.iter().find(|file| file.path == path);
    file.unwrap_or_else(|| panic!("no {path}")).content.clone()
}

fn config_yaml(files: &[File], path: &str) -> Value {
    serde_saphyr::from_str(&file_content(files, path)).unwrap()
}

/// With the cluster's spec changed as JSON.
#[test]
fn it_is_stored_under_its_own_hash_and_reads_back_as_it_was() {
    for role in [Role::ControlPlane, Role::Node] {
        let config = config_of(&expanded_spec(), role);
        let stored = to_stored(&config).unwrap();
        assert_eq!(
            read_node_config(&stored.text, &stored.sha256).unwrap(),
            config
        );
        assert!(stored.keys[0].ends_with(&format!("/nodeupconfig-{}.yaml", stored.sha256)));
        let changed = stored.text.replace("1.36.3", "1.36.4");
        assert!(matches!(
            read_node_config(&changed, &stored.sha256),
            Err(Error::WrongHash { .. })
        ));
    }
    let config = config_of(&expanded_spec(), Role::Node);
    assert_eq!(
        to_stored(&config).unwrap().keys[1],
        "igconfig/node/nodes-eu-west-1a/nodeupconfig.yaml"
    );
    let config = config_of(&expanded_spec(), Role::ControlPlane);
    assert_eq!(
        to_stored(&config).unwrap().keys[1],
        "igconfig/control-plane/control-plane-eu-west-1a/nodeupconfig.yaml"
    );
}

#[test]
fn equal_specs_make_equal_text_and_only_what_a_machine_is_made_of_changes_it() {
    let text = |expanded: &Expanded, role| to_stored(&config_of(expanded, role)).unwrap().text;
    let followed = expanded_with(|cluster, groups| {
        for group in groups {
            group.spec.node_labels.insert("team".into(), "a".into());
            group.spec.max_size = Some(9);
            group.spec.cloud_labels.insert("cost".into(), "1".into());
        }
        for etcd in &mut cluster.spec.etcd_clusters {
            etcd.etcd_members[0].volume_size = Some(100);
            etcd.manager.get_or_insert_default().backup_interval = Some("1h".into());
        }
    });
    let workers = expanded_with_fields(
        &json!({ "kubelet": { "maxPods": 200 }, "masterKubelet": { "maxPods": 110 } }),
    );
    let before = expanded_with_fields(&json!({ "masterKubelet": { "maxPods": 110 } }));
    for role in [Role::ControlPlane, Role::Node] {
        assert_eq!(text(&expanded_spec(), role), text(&expanded_spec(), role));
        assert_eq!(
            text(&expanded_spec(), role),
            text(&followed, role),
            "these follow without a new instance"
        );
    }
    assert_eq!(
        text(&workers, Role::ControlPlane),
        text(&before, Role::ControlPlane)
    );
    assert_ne!(text(&workers, Role::Node), text(&before, Role::Node));
}

#[test]
fn formats_of_other_releases_are_refused_by_number() {
    let text = to_stored(&config_of(&expanded_spec(), Role::Node))
        .unwrap()
        .text;
    let newer = text.replace("\nformat: 1\n", "\nformat: 3\nfromTheFuture: true\n");
    assert_ne!(newer, text);
    let hash = node::digest::sha256_hex(&newer);
    let error = read_node_config(&newer, &hash).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Format {
                found: 3,
                known: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn bastions_are_no_nodes() {
    assert!(
        node_config(&full_spec(), "bastions", CERTIFICATES, &made_up_agents())
            .unwrap()
            .is_none()
    );
    assert!(matches!(
        node_config(&full_spec(), "other", CERTIFICATES, &made_up_agents()),
        Err(Error::NoGroup(_))
    ));
}

#[test]
fn a_group_without_our_binaries_is_refused_by_name() {
    let mut none = made_up_agents();
    none.protokube.clear();
    assert!(node_config(&full_spec(), "nodes-eu-west-1a", CERTIFICATES, &none).is_ok());
    let error = node_config(
        &full_spec(),
        "control-plane-eu-west-1a",
        CERTIFICATES,
        &none,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "instance group control-plane-eu-west-1a needs protokube for amd64, which this kctl does not have"
    );
}

#[test]
fn workers_know_nothing_of_the_control_plane_and_of_the_store() {
    let text = to_stored(&config_of(&expanded_spec(), Role::Node))
        .unwrap()
        .text;
    for part in ["etcd", "s3://", "protokube", "kube-apiserver"] {
        // An empty list of protokube's binaries is all.
        let found = text
            .lines()
            .filter(|line| line.contains(part))
            .collect::<Vec<_>>();
        assert!(
            found.iter().all(|line| line.trim() == "protokube: []"),
            "{part}: {found:?}"
        );
    }
}

#[test]
fn a_control_plane_gets_these_files() {
    let all = host_files(
        &config_of(&expanded_spec(), Role::ControlPlane),
        &render_machine(),
    )
    .unwrap();
    let listed: Vec<String> = all
        .iter()
        .map(|file| format!("{} {}", file.mode, file.path))
        .collect();
    insta::assert_snapshot!(listed.join("\n"));
}

#[test]
fn a_worker_gets_these_files() {
    let all = host_files(&config_of(&expanded_spec(), Role::Node), &render_machine()).unwrap();
    let listed: Vec<String> = all
        .iter()
        .map(|file| format!("{} {}", file.mode, file.path))
        .collect();
    insta::assert_snapshot!(listed.join("\n"));
}

#[test]
fn a_node_is_called_after_its_instance() {
    let all = host_files(&config_of(&expanded_spec(), Role::Node), &render_machine()).unwrap();
    assert!(file_content(&all, "/etc/sysconfig/kubelet").contains("--hostname-override=i-0abc"));
    assert_eq!(
        config_yaml(&all, "/var/lib/kubelet/kubelet.conf")["providerID"],
        "aws:///eu-west-1a/i-0abc"
    );
    let proxy: Pod = serde_saphyr::from_str(&file_content(
        &all,
        "/etc/kubernetes/manifests/kube-proxy.manifest",
    ))
    .unwrap();
    assert!(
        proxy.spec.containers[0]
            .args
            .contains(&"--hostname-override=i-0abc".to_owned())
    );
}

#[test]
fn components_find_the_api_wherever_it_is() {
    let server = |expanded: &Expanded, role| -> Vec<String> {
        let all = host_files(&config_of(expanded, role), &render_machine()).unwrap();
        let of = |component: &str| {
            let config = config_yaml(&all, &format!("/var/lib/{component}/kubeconfig"));
            config["clusters"][0]["cluster"]["server"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let proxy: Pod = serde_saphyr::from_str(&file_content(
            &all,
            "/etc/kubernetes/manifests/kube-proxy.manifest",
        ))
        .unwrap();
        let master = proxy.spec.containers[0]
            .args
            .iter()
            .find_map(|flag| flag.strip_prefix("--master="));
        let master = master.unwrap_or("none").to_owned();
        vec![of("kubelet"), of("kube-proxy"), master]
    };
    let without_dns = expanded_with_fields(&json!({
        "api": { "loadBalancer": { "class": "Network", "type": "Public" } },
        "topology": { "dns": { "type": "None" } },
    }));
    assert_eq!(
        server(&expanded_spec(), Role::ControlPlane),
        [
            "https://127.0.0.1",
            "https://127.0.0.1",
            "https://127.0.0.1"
        ]
    );
    assert_eq!(
        server(&expanded_spec(), Role::Node),
        [
            "https://api.internal.a.example.com",
            "https://api.internal.a.example.com",
            "https://api.internal.a.example.com"
        ]
    );
    // Where DNS does not have the name, the instance's own list of hosts does.
    assert_eq!(
        server(&without_dns, Role::Node),
        server(&expanded_spec(), Role::Node)
    );
    let proxied = expanded_with_fields(&json!({ "api": { "nodeProxy": {} } }));
    assert_eq!(
        server(&proxied, Role::Node),
        [
            "https://127.0.0.1:6443",
            "https://127.0.0.1:6443",
            "https://127.0.0.1:6443"
        ]
    );
    // A new kubelet must not meet the older API server of another control plane.
    assert_eq!(
        server(&proxied, Role::ControlPlane),
        server(&expanded_spec(), Role::ControlPlane)
    );
}

#[test]
fn every_node_has_a_proxy_of_the_api_if_the_spec_says_so_and_none_otherwise() {
    let proxied = expanded_with_fields(&json!({ "api": { "nodeProxy": {} } }));
    // It says nothing of how clients reach the API.
    let mut api = expanded_with_fields(&json!({ "api": {} })).cluster.spec.api;
    api.get_or_insert_default().node_proxy = Some(NodeProxySpec {});
    assert_eq!(proxied.cluster.spec.api, api);
    for (role, server) in [
        (Role::ControlPlane, "127.0.0.1"),
        (Role::Node, "api.internal.a.example.com"),
    ] {
        let config = config_of(&proxied, role);
        assert_eq!(config.api_proxy.unwrap().server, server);
        let mut units = config.units.into_iter();
        let unit = units.find(|unit| unit.name == API_PROXY_UNIT).unwrap();
        assert!(
            unit.content
                .contains("/opt/kctl/nodeup --boot-config /opt/kctl/boot.yaml --api-proxy\n")
        );
        let without = config_of(&expanded_spec(), role);
        assert_eq!(without.api_proxy, None);
        assert!(without.units.iter().all(|unit| unit.name != API_PROXY_UNIT));
    }
}

#[test]
fn what_a_machine_lacks_is_taken_into_account() {
    let config = config_of(&expanded_spec(), Role::Node);
    let usual = host_files(&config, &render_machine()).unwrap();
    let odd = InstanceFacts {
        cgroup_v1: true,
        restrict_oom_score_adj: true,
        systemd_resolved: false,
        ..render_machine()
    };
    let odd = host_files(&config, &odd).unwrap();
    let kubelet = |files: &[File], field: &str| {
        config_yaml(files, "/var/lib/kubelet/kubelet.conf")
            .get(field)
            .cloned()
    };
    assert_eq!(kubelet(&usual, "failCgroupV1"), None);
    assert_eq!(kubelet(&odd, "failCgroupV1"), Some(json!(false)));
    assert_eq!(
        kubelet(&usual, "resolvConf"),
        Some(json!("/run/systemd/resolve/resolv.conf"))
    );
    assert_eq!(kubelet(&odd, "resolvConf"), None);
    assert!(
        !file_content(&usual, "/etc/containerd/config.toml").contains("restrict_oom_score_adj")
    );
    assert!(
        file_content(&odd, "/etc/containerd/config.toml").contains("restrict_oom_score_adj = true")
    );
}

#[test]
fn kube_proxy_leaves_the_table_of_connections_alone_where_it_may_not_size_it() {
    let size = |expanded: &Expanded, fixed| {
        let host = InstanceFacts {
            conntrack_max_fixed: fixed,
            ..render_machine()
        };
        let all = host_files(&config_of(expanded, Role::Node), &host).unwrap();
        let pod = file_content(&all, "/etc/kubernetes/manifests/kube-proxy.manifest");
        let pod: Pod = serde_saphyr::from_str(&pod).unwrap();
        let mut flags = pod.spec.containers[0].args.iter();
        let size = flags.find_map(|flag| flag.strip_prefix("--conntrack-max-per-core="));
        size.unwrap().to_owned()
    };
    let users = expanded_with_fields(&json!({ "kubeProxy": { "conntrackMaxPerCore": 7 } }));
    assert_eq!(size(&expanded_spec(), false), "131072");
    assert_eq!(size(&expanded_spec(), true), "0");
    assert_eq!(size(&users, true), "7");
}

#[test]
fn every_file_in_a_format_parses() {
    for role in [Role::ControlPlane, Role::Node] {
        for file in host_files(
            &config_of(&expanded_spec(), role),
            &InstanceFacts::placeholder(),
        )
        .unwrap()
        {
            let yaml = [".yaml", ".conf", "kubeconfig", ".manifest"]
                .iter()
                .any(|end| file.path.ends_with(end));
            let system = file.path.starts_with("/etc/sysctl.d")
                || file.path.starts_with("/etc/systemd")
                || file.path.starts_with("/etc/modules-load.d");
            if std::path::Path::new(&file.path).extension() == Some("toml".as_ref()) {
                file.content.parse::<toml::Table>().unwrap();
            } else if file.path.ends_with(".template") {
                serde_json::from_str::<Value>(&file.content).unwrap();
            } else if yaml && !system {
                serde_saphyr::from_str::<Value>(&file.content).unwrap();
            }
        }
    }
}

#[test]
fn environment_files_mean_to_the_shell_what_they_mean_to_systemd() {
    let all = host_files(&config_of(&expanded_spec(), Role::Node), &render_machine()).unwrap();
    let script = format!(
        "{}\nprintf %s \"$DAEMON_ARGS\"",
        file_content(&all, "/etc/sysconfig/kubelet")
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let arguments = String::from_utf8(output.stdout).unwrap();
    assert!(
        arguments
            .split(' ')
            .all(|argument| argument.starts_with("--") && argument.contains('=')),
        "{arguments}"
    );
}

#[test]
fn the_users_kernel_parameters_come_last_and_node_ports_are_nobodys() {
    let expanded = expanded_with(|cluster, groups| {
        cluster.spec.sysctl_parameters = vec!["vm.max_map_count=1".into(), "a.b=1".into()];
        for group in groups {
            group.spec.sysctl_parameters = vec!["a.b = 2".into()];
        }
    });
    let all = host_files(&config_of(&expanded, Role::Node), &render_machine()).unwrap();
    let file = file_content(&all, "/etc/sysctl.d/99-k8s-general.conf");
    let last = |name: &str| {
        let mut lines = file.lines().filter_map(|line| line.split_once(" = "));
        lines
            .rfind(|(other, _)| *other == name)
            .unwrap()
            .1
            .to_owned()
    };
    assert_eq!(
        (last("vm.max_map_count"), last("a.b")),
        ("1".into(), "2".into())
    );
    assert_eq!(last("net.ipv4.ip_local_reserved_ports"), "30000-32767");
}

#[test]
fn files_of_the_users_are_written_for_their_roles_and_keep_their_bytes() {
    let expanded = expanded_with_fields(&json!({ "fileAssets": [
        { "name": "all", "content": "text\n" },
        { "name": "some", "path": "/etc/some", "roles": ["Master"], "mode": "0600", "content": "c29tZQ==", "isBase64": true },
        { "name": "bytes", "path": "/etc//bytes", "content": "/wA=", "isBase64": true },
        { "name": "bare", "path": "/etc/bare", "content": "c29tZQ", "isBase64": true },
    ] }));
    let control_plane =
        host_files(&config_of(&expanded, Role::ControlPlane), &render_machine()).unwrap();
    let worker = host_files(&config_of(&expanded, Role::Node), &render_machine()).unwrap();
    assert_eq!(
        file_content(&worker, "/srv/kubernetes/assets/all"),
        "text\n"
    );
    assert!(worker.iter().all(|file| file.path != "/etc/some"));
    let some = control_plane
        .iter()
        .find(|file| file.path == "/etc/some")
        .unwrap();
    assert_eq!(
        (some.content.as_str(), some.mode.as_str(), some.base64),
        ("some", "0600", false)
    );
    let bytes = worker
        .iter()
        .find(|file| file.path == "/etc/bytes")
        .unwrap();
    assert_eq!(
        (bytes.content.as_str(), bytes.mode.as_str(), bytes.base64),
        ("/wA=", "0440", true)
    );
    assert_eq!(file_content(&worker, "/etc/bare"), "some");
}

/// What stands in the way of making an instance of this role with these fields of the spec.
fn refusal(fields: &Value, role: Role) -> String {
    let expanded = expanded_with_fields(fields);
    let group = &group_of(&expanded.full, role).name;
    let made = node_config(&expanded.full, group, CERTIFICATES, &made_up_agents());
    let error = made.err().unwrap_or_else(|| panic!("{fields} is made"));
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
        error.source()
    });
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[test]
fn no_two_objects_of_an_instance_have_one_path() {
    let file =
        |path: &str| json!({ "fileAssets": [{ "name": "x", "path": path, "content": "x" }] });
    for path in [
        "/etc/crictl.yaml",
        "/etc//containerd/./config.toml",
        "/etc/hosts",
        "/etc/kubernetes/manifests/kube-proxy.manifest",
        "/etc/systemd/system/kubelet.service",
        "/etc/systemd/system/nodeup.service",
        "/etc/systemd/system/chrony.service",
        "/opt/kctl/boot.yaml",
        "/srv/kubernetes/ca.crt",
        "/usr/bin/containerd",
        // The same by links of the distribution.
        "/bin/containerd",
        "/usr/local/bin/kubelet",
        "/var/lib/kubelet/kubeconfig",
        // Folders of others.
        "/etc",
        "/etc/containerd",
        "/opt/cni/bin",
        "/srv/kubernetes",
        // Below files of others.
        "/etc/crictl.yaml/x",
        "/usr/local/bin/kubelet/x",
    ] {
        let said = refusal(&file(path), Role::Node);
        assert!(
            said.contains("one path") || said.contains("kctl's own"),
            "{path}: {said}"
        );
    }
    for path in [
        "/etc/kubernetes/manifests/kube-apiserver.manifest",
        "/srv/kubernetes/kube-scheduler/client.key",
        "/opt/kctl/protokube",
        "/var/lib/kube-scheduler/config.yaml",
    ] {
        let said = refusal(&file(path), Role::ControlPlane);
        assert!(
            said.contains("one path") || said.contains("kctl's own"),
            "{path}: {said}"
        );
    }
    let hook =
        |name: &str| json!({ "hooks": [{ "name": name, "manifest": "ExecStart=/bin/true" }] });
    for name in [
        "kubelet",
        "containerd.service",
        "nodeup",
        "chronyd",
        "nodeup-certificates",
    ] {
        let said = refusal(&hook(name), Role::Node);
        assert!(said.contains("one path"), "{name}: {said}");
    }
    // This network has no unit for those of the VPC CNI, and this spec no proxy of the API.
    let absent = [node::config::VPC_INTERFACES, API_PROXY_UNIT];
    let own = node::config::OWN_UNITS.into_iter();
    for name in own.filter(|name| !absent.contains(name)) {
        let hook =
            json!({ "hooks": [{ "name": name, "useRawManifest": true, "manifest": "[Unit]" }] });
        assert!(
            refusal(&hook, Role::ControlPlane).contains("one path"),
            "{name}"
        );
    }
}

#[test]
fn who_writes_containerds_file_is_told_how_to_change_it() {
    let file = json!({ "fileAssets": [{ "name": "x", "path": "/etc/containerd/config.toml", "content": "x" }] });
    let expanded = expanded_with_fields(&file);
    let group = &group_of(&expanded.full, Role::Node).name;
    let made = node_config(&expanded.full, group, CERTIFICATES, &made_up_agents());
    let said = format!("{:?}", made.err());
    assert!(said.contains("configOverride"), "{said}");
}

/// Units of the distribution that kctl does not want may be masked.
#[test]
fn a_hook_masks_what_the_spec_does_not_ask_for() {
    let masked = |name: &str, fields: Value| {
        let mut fields = fields;
        fields["hooks"] = json!([{ "name": name, "disabled": true }]);
        let expanded = try_expanded_with(|cluster, groups| {
            let mut spec = serde_json::to_value(&cluster.spec).unwrap();
            let given = fields.as_object().unwrap().clone();
            spec.as_object_mut().unwrap().extend(given);
            cluster.spec = serde_json::from_value(spec).unwrap();
            let input = ClusterInput {
                cluster,
                instance_groups: groups,
                ssh_keys: &[],
            };
            let found = validate(&input);
            assert!(!found.iter().any(Problem::is_error), "{name}: {found:?}");
        });
        let expanded = expanded.map_err(|problems| format!("{problems:?}"))?;
        let config = config_of(&expanded, Role::Node);
        let mut enabled = Vec::new();
        for distribution in [Distribution::Debian, Distribution::AmazonLinux] {
            let facts = InstanceFacts {
                distribution,
                ..render_machine()
            };
            let mut known = config.clone();
            for asset in &mut known.assets {
                asset.sha256 = Some("3".repeat(64));
            }
            let all = node::host::desired_resources(&known, &facts).unwrap();
            enabled.extend(all.into_iter().filter_map(|one| match one.thing {
                node::host::HostObject::Unit(unit) if unit.name == name => Some(unit.enabled),
                _ => None,
            }));
        }
        Ok::<_, String>(enabled)
    };
    let external = json!({ "updatePolicy": "external" });
    let unmanaged = json!({ "ntp": { "managed": false } });
    for (name, fields) in [
        ("logrotate.timer", json!({})),
        ("chrony.service", unmanaged.clone()),
        ("chronyd.service", unmanaged),
        ("dnf-automatic-install.timer", external),
    ] {
        assert_eq!(masked(name, fields).unwrap(), [false, false], "{name}");
    }
    for name in [
        "chrony.service",
        "chronyd.service",
        "dnf-automatic-install.timer",
    ] {
        let said = masked(name, json!({})).unwrap_err();
        assert!(said.contains("masked by a hook"), "{name}: {said}");
    }
}

#[test]
fn a_node_has_the_name_that_its_certificate_has() {
    let expanded = expanded_with_fields(&json!({
        "kubelet": { "hostnameOverride": "@aws" },
        "kubeProxy": { "hostnameOverride": "@hostname" },
    }));
    let files = host_files(&config_of(&expanded, Role::Node), &render_machine()).unwrap();
    let flags = file_content(&files, "/etc/sysconfig/kubelet");
    assert_eq!(
        flags.matches("--hostname-override=i-0abc").count(),
        1,
        "{flags}"
    );
    assert_eq!(flags.matches("hostname-override").count(), 1, "{flags}");
    let proxy = file_content(&files, "/etc/kubernetes/manifests/kube-proxy.manifest");
    assert_eq!(
        proxy.matches("hostname-override=i-0abc").count(),
        1,
        "{proxy}"
    );
    assert_eq!(proxy.matches("hostname-override").count(), 1, "{proxy}");
}

#[test]
fn containers_of_hooks_run_as_in_kops() {
    for (image, full) in [
        ("busybox", "docker.io/library/busybox:latest"),
        ("nginx/unit:1", "docker.io/nginx/unit:1"),
        (
            "registry.internal:5000/tools/x",
            "registry.internal:5000/tools/x:latest",
        ),
    ] {
        let expanded = expanded_with_fields(
            &json!({ "hooks": [{ "name": "tune@nic--v1.2", "execContainer": { "image": image } }] }),
        );
        let units = config_of(&expanded, Role::Node).units;
        let unit = units
            .iter()
            .find(|unit| unit.name == "tune@nic--v1.2.service")
            .unwrap();
        for wanted in [
            format!("images pull \"{full}\"\n"),
            format!(" \"{full}\" \"tune-nic-v1-2\""),
            "src=/,dst=/rootfs,".to_owned(),
            "src=/var/run/dbus,dst=/var/run/dbus,".to_owned(),
            "src=/run/systemd,dst=/run/systemd,".to_owned(),
        ] {
            assert!(unit.content.contains(&wanted), "{wanted}: {}", unit.content);
        }
    }
}

#[test]
fn hooks_become_units_and_the_groups_win() {
    let expanded = expanded_with(|cluster, groups| {
        let hooks = json!([
            { "manifest": "Type=oneshot\nExecStart=/bin/true\n", "before": ["kubelet.service"] },
            { "name": "pull.service", "execContainer": {
                "image": "docker.io/library/busybox:1", "command": ["sh", "-c", "echo $HOME 100%"], "environment": { "A": "b c" },
            } },
            { "name": "whole", "useRawManifest": true, "manifest": "[Unit]\nDescription=mine\n" },
            { "name": "off", "disabled": true, "manifest": "ExecStart=/bin/true" },
            { "name": "masters", "roles": ["Master"], "manifest": "ExecStart=/bin/true" },
        ]);
        cluster.spec.hooks = serde_json::from_value(hooks).unwrap();
        for group in groups {
            let hooks = json!([{ "name": "whole", "useRawManifest": true, "manifest": "[Unit]\nDescription=groups\n" }]);
            group.spec.hooks = serde_json::from_value(hooks).unwrap();
        }
    });
    let units = config_of(&expanded, Role::Node).units;
    let unit = |name: &str| units.iter().find(|unit| unit.name == name);
    let named = unit("kops-hook-0.service").unwrap();
    assert!(
        named.content.contains("Before=kubelet.service\n")
            && named.content.contains("[Service]\nType=oneshot\n")
    );
    let container = &unit("pull.service").unwrap().content;
    assert!(
        container.contains(
            r#" --env "A=b c" "docker.io/library/busybox:1" "pull" "sh" "-c" "echo $$HOME 100%%""#
        ),
        "{container}"
    );
    assert_eq!(
        unit("whole.service").unwrap().content,
        "[Unit]\nDescription=groups\n"
    );
    assert!(!unit("off.service").unwrap().enabled);
    assert_eq!(unit("masters.service"), None);
}

/// Whatever ends is back before anybody misses it, and takes no container with it.
#[test]
fn what_runs_for_ever_is_started_again_within_seconds_and_containers_outlive_it() {
    let units = config_of(&expanded_spec(), Role::ControlPlane).units;
    for name in ["containerd.service", "kubelet.service", "protokube.service"] {
        let unit = units.iter().find(|unit| unit.name == name);
        let content = &unit.unwrap_or_else(|| panic!("no {name}")).content;
        let setting = |key: &str| {
            let mut lines = content.lines();
            lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        };
        assert_eq!(setting("Restart"), Some("always"), "{name}");
        assert_eq!(setting("KillMode"), Some("process"), "{name}");
        let pause = setting("RestartSec").and_then(|pause| pause.parse().ok());
        assert!(pause.is_some_and(|pause: u32| pause <= 5), "{name}");
    }
}

#[test]
fn units_are_what_systemd_accepts() {
    let expanded = expanded_with_fields(&json!({ "hooks": [
        { "manifest": "Type=oneshot\nExecStart=/bin/true\n", "before": ["kubelet.service"] },
        { "name": "pull", "execContainer": { "image": "docker.io/library/busybox:1", "command": ["echo", "$HOME 100%"] } },
    ] }));
    let folder = std::env::temp_dir().join(format!("units-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let boot = templates::render(&templates::NodeupService {
        directory: "/opt/kctl".into(),
    })
    .unwrap();
    let mut units = config_of(&expanded, Role::ControlPlane).units;
    units.push(node::config::UnitFile::new("nodeup.service", boot));
    let interfaces = templates::render(&templates::VpcInterfacesService {}).unwrap();
    units.push(node::config::UnitFile::new(
        node::config::VPC_INTERFACES,
        interfaces,
    ));
    let proxy = templates::render(&templates::ApiProxyService {
        directory: "/opt/kctl".into(),
    })
    .unwrap();
    units.push(node::config::UnitFile::new(API_PROXY_UNIT, proxy));
    let files = config_of(&expanded, Role::ControlPlane).files;
    let services = files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("/etc/systemd/system/")?;
        Some(node::config::UnitFile::new(name, &file.content))
    });
    units.extend(services);
    let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
    for expected in [
        "containerd.service",
        "kubelet.service",
        "nodeup-certificates.service",
        "nodeup-certificates.timer",
        "protokube.service",
        "cni-iptables-setup.service",
        "pull.service",
    ] {
        assert!(names.contains(&expected), "{names:?}");
    }
    let mut command = Command::new("systemd-analyze");
    command
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .env("SYSTEMD_UNIT_PATH", format!("{}:", folder.display()));
    for unit in &units {
        let path = folder.join(&unit.name);
        std::fs::write(&path, &unit.content).unwrap();
        command.arg(path);
    }
    let output = command.output();
    std::fs::remove_dir_all(&folder).unwrap();
    let output = output.expect("systemd-analyze, of tests/requirements");
    let said = String::from_utf8(output.stderr).unwrap();
    let wrong: Vec<&str> = said
        .lines()
        .filter(|line| {
            let absent = line.contains("is not executable") || line.contains("No such file");
            line.contains(&folder.display().to_string()) && !absent
        })
        .collect();
    assert!(wrong.is_empty(), "{said}");
}

fn packages_on(config: &NodeConfig, distribution: Distribution) -> BTreeSet<String> {
    let host = InstanceFacts {
        distribution,
        ..render_machine()
    };
    let desired = node::host::desired_resources(config, &host).unwrap();
    let sets = desired
        .into_iter()
        .filter_map(|resource| match resource.thing {
            node::host::HostObject::Packages(set) => Some(set.packages),
            _ => None,
        });
    sets.flatten().collect()
}

#[test]
fn the_page_of_nodes_lists_the_packages() {
    let page = include_str!("../../../../docs/nodes.md");
    let (_, section) = page.split_once("\n### Packages\n").unwrap();
    let (section, _) = section.split_once("\n### ").unwrap();
    let config = config_of(&expanded_spec(), Role::Node);
    for (column, distribution) in [(2, Distribution::Debian), (3, Distribution::AmazonLinux)] {
        let cells = section
            .lines()
            .filter_map(|line| line.split('|').nth(column));
        let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let listed: BTreeSet<String> = names.map(str::to_owned).collect();
        assert_eq!(listed, packages_on(&config, distribution));
    }
}

/// The line that the unit of images runs, as the shell reads it.
fn pulling_line(config: &NodeConfig) -> String {
    let unit = config.units.iter().find(|unit| unit.name == IMAGE_PULLS);
    let mut lines = unit.unwrap().content.lines();
    let line = lines.find_map(|line| line.strip_prefix("ExecStart=-"));
    line.unwrap().replace("$$", r"\$")
}

/// The images that it pulls, in their order.
fn pulled_images(config: &NodeConfig) -> Vec<String> {
    let line = pulling_line(config);
    let (_, words) = line.split_once("\" pull ").unwrap();
    let words = words.split(' ').map(|word| word.trim_matches('"'));
    words.map(str::to_owned).collect()
}

#[test]
fn images_are_pulled_in_the_order_in_which_pods_need_them() {
    let with = |plugin: &str| json!({ "networking": { plugin: {} } });
    let alone = |plugin: &str, settings: Value| json!({ "networking": { plugin: settings }, "kubeProxy": { "enabled": false } });
    let pods = "etcd kube-apiserver kube-controller-manager kube-scheduler";
    for (fields, proxy, agents) in [
        (with("kubenet"), "kube-proxy", ""),
        (with("flannel"), "kube-proxy", "flannel-cni-plugin flannel"),
        (
            alone("cilium", json!({ "enableNodePort": true })),
            "",
            "cilium",
        ),
        (alone("kuberouter", json!({})), "", "kube-router"),
        // Replaced on running nodes, or in a registry with a password.
        (with("calico"), "kube-proxy", ""),
        (with("kindnet"), "kube-proxy", ""),
        (with("amazonvpc"), "kube-proxy", ""),
    ] {
        let expanded = expanded_with_fields(&fields);
        let listed = cluster_images(&expanded.full, &make_addons(&expanded.full).unwrap());
        for (role, of_role) in [(Role::ControlPlane, pods), (Role::Node, "")] {
            let images = pulled_images(&config_of(&expanded, role));
            assert!(
                images.iter().all(|image| listed.contains(image)),
                "{images:?}"
            );
            let names = images.iter().map(|image| {
                let name = image.rsplit('/').next().unwrap();
                name.split(':').next().unwrap()
            });
            let expected = ["pause", proxy, of_role, agents].join(" ");
            let expected: Vec<&str> = expected.split_whitespace().collect();
            assert_eq!(names.collect::<Vec<_>>(), expected, "{fields}");
        }
    }
}

#[test]
fn agents_that_are_replaced_on_running_nodes_replace_no_instance() {
    for (plugin, field, versions) in [
        ("calico", "version", ["v3.31.5", "v3.31.6"]),
        ("kindnet", "version", ["v1.0.0", "v1.0.1"]),
        (
            "amazonvpc",
            "imageName",
            ["r.example.com/cni:1", "r.example.com/cni:2"],
        ),
    ] {
        let stored = versions.map(|version| {
            let fields = json!({ "networking": { plugin: { field: version } } });
            let expanded = expanded_with_fields(&fields);
            [Role::ControlPlane, Role::Node].map(|role| to_stored(&config_of(&expanded, role)))
        });
        let [one, other] = stored.map(|roles| roles.map(Result::unwrap));
        assert_eq!(one, other, "{plugin}");
    }
}

/// crictl has no password, and containerd would go past a mirror that wants one.
#[test]
fn images_that_only_kubelet_has_a_password_for_are_left_to_it() {
    let ecr = "123456789012.dkr.ecr.eu-west-1.amazonaws.com";
    let copies = expanded_with_fields(&json!({ "assets": { "containerRegistry": ecr } }));
    for role in [Role::ControlPlane, Role::Node] {
        let units = config_of(&copies, role).units;
        assert!(units.iter().all(|unit| unit.name != IMAGE_PULLS));
    }
    let mirrored = |credentials: bool| {
        let fields = json!({ "networking": { "flannel": {} }, "containerd": {
            "registryMirrors": { "registry.k8s.io": [format!("https://{ecr}")] },
            "useECRCredentialsForMirrors": credentials,
        } });
        pulled_images(&config_of(&expanded_with_fields(&fields), Role::Node))
    };
    let all = mirrored(false);
    assert!(
        all[..2]
            .iter()
            .all(|image| image.starts_with("registry.k8s.io/"))
    );
    assert_eq!(mirrored(true), all[2..]);
}

/// Each of these pulls waits until three have begun.
#[test]
fn images_that_are_missing_are_pulled_side_by_side_whatever_fails() {
    const CRICTL: &str = r#"
case "$1 $2" in
"inspecti "*/pause:*) ;;
inspecti*) exit 1 ;;
*)
    echo "$2" >>"$FAKES/pulled"
    tries=0
    until [ "$(wc -l <"$FAKES/pulled")" -ge 3 ]; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "$2" >>"$FAKES/alone"; break; }
        sleep 0.05
    done
    case $2 in */etcd:*) echo 'not found' >&2; exit 1 ;; esac ;;
esac
"#;
    let config = config_of(&expanded_spec(), Role::ControlPlane);
    let folder = std::env::temp_dir().join(format!("images-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    write_script(&folder.join("crictl"), CRICTL);
    let path = std::env::var("PATH").unwrap();
    let ran = Command::new("sh")
        .args(["-c", &pulling_line(&config)])
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("FAKES", &folder)
        .output()
        .unwrap();
    let pulled = std::fs::read_to_string(folder.join("pulled")).unwrap();
    let alone = folder.join("alone").exists();
    std::fs::remove_dir_all(&folder).unwrap();
    let mut pulled: Vec<&str> = pulled.lines().collect();
    pulled.sort_unstable();
    let mut expected = pulled_images(&config);
    expected.retain(|image| !image.contains("/pause:"));
    expected.sort();
    assert_eq!(pulled, expected, "{ran:?}");
    assert!(!alone, "one at a time");
}

#[test]
fn packages_have_the_names_of_their_distribution_and_the_users_are_added() {
    let config = config_of(
        &expanded_with_fields(&json!({ "packages": ["nfs-common"], "ntp": { "managed": false } })),
        Role::Node,
    );
    let debian = packages_on(&config, Distribution::Debian);
    let amazon = packages_on(&config, Distribution::AmazonLinux);
    assert!(debian.contains("nfs-common") && amazon.contains("nfs-common"));
    assert!(debian.contains("conntrack") && amazon.contains("conntrack-tools"));
    assert!(!debian.contains("chrony"));
    assert!(debian.contains("unattended-upgrades"));
}

#[test]
fn no_file_of_a_group_and_no_configuration_holds_a_private_key() {
    for role in [Role::ControlPlane, Role::Node] {
        let config = config_of(&expanded_spec(), role);
        let text = to_stored(&config).unwrap().text;
        let files = host_files(&config, &InstanceFacts::placeholder()).unwrap();
        let all: String = files
            .iter()
            .map(|file| file.content.as_str())
            .chain([text.as_str()])
            .collect();
        assert!(!all.contains("PRIVATE KEY") && !all.contains("client-key-data"));
    }
}
