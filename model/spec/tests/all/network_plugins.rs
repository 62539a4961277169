//! The network plugins kube-router, kindnet and that of Amazon, as the spec wants them.
use crate::addons::{find_addon, find_kind};
use cloud::Cloud;
use cloud::facts::{Facts, InstanceType};
use full::FullSpec;
use full::iam::role_policy;
use full::objects::desired_objects;
use node::config::{Arch, Distribution, InstanceFacts, Role, VPC_INTERFACES, host_files};
use serde_json::{Value, json};
use spec::api::{InstanceGroup, Object};
use spec::catalog::Catalog;
use spec::expand::{Expanded, expand};
use spec::read::{Problem, read_documents};
use std::collections::BTreeMap;
use test_support::{expanded_with_fields, node_config_of};

const KINDNET: &str = "networking.kindnet";
const KUBE_ROUTER: &str = "networking.kuberouter";
const VPC_CNI: &str = "networking.amazon-vpc-routed-eni";

/// A spec with each plugin, its addon, its service account, and what the account may do in AWS.
fn plugins() -> [(Value, &'static str, &'static str, &'static str); 3] {
    [
        (
            json!({"networking": {"amazonvpc": {}}}),
            VPC_CNI,
            "aws-node",
            "ec2:AssignPrivateIpAddresses",
        ),
        (
            json!({"networking": {"kuberouter": {}}, "kubeProxy": {"enabled": false}}),
            KUBE_ROUTER,
            "kube-router",
            "ec2:ModifyInstanceAttribute",
        ),
        (
            json!({"networking": {"kindnet": {}}}),
            KINDNET,
            "kindnet",
            "ec2:ModifyInstanceAttribute",
        ),
    ]
}

/// The pods of the plugin's DaemonSet.
fn pods(full: &FullSpec, addon: &str) -> Value {
    let addon = find_addon(full, addon).unwrap();
    find_kind(&addon.objects, "DaemonSet")["spec"]["template"]["spec"].clone()
}

/// The first container with these settings of a plugin.
fn container(field: &str, settings: &Value, addon: &str) -> Value {
    let proxy = json!({"enabled": field != "kuberouter"});
    let fields = json!({"networking": {field: settings}, "kubeProxy": proxy});
    pods(&expanded_with_fields(&fields).full, addon)["containers"][0].clone()
}

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

fn policy(full: &FullSpec, role: Role) -> String {
    role_policy(full, role).unwrap_or_default().to_string()
}

#[test]
fn every_node_may_do_what_its_plugin_needs_and_only_then() {
    let action = |text: &str, action: &str| text.contains(action);
    for (fields, addon, account, needs) in plugins() {
        let full = expanded_with_fields(&fields).full;
        assert!(find_addon(&full, addon).is_some());
        for role in [Role::ControlPlane, Role::Node] {
            assert!(action(&policy(&full, role), needs), "{addon}");
        }
        assert!(!action(&policy(&full, Role::Bastion), needs));
        let other = expanded_with_fields(&json!({"networking": {"flannel": {}}})).full;
        assert!(find_addon(&other, addon).is_none());
        assert!(!action(&policy(&other, Role::Node), needs), "{addon}");

        // With roles of service accounts the pods have what was the instances'.
        let mut fields = fields;
        fields["iam"] = json!({"useServiceAccountExternalPermissions": true});
        fields["serviceAccountIssuerDiscovery"] =
            json!({"discoveryStore": "s3://issuer/a", "enableAWSOIDCProvider": true});
        let full = expanded_with_fields(&fields).full;
        assert!(!action(&policy(&full, Role::Node), needs), "{addon}");
        let desired = desired_objects(&full, &BTreeMap::new(), Vec::new());
        let role = desired.iter().find_map(|one| match one {
            Cloud::IamRolePolicy(one) => one
                .policy_name
                .starts_with(&format!("{account}.kube-system.sa."))
                .then(|| one.policy_document.to_string()),
            _ => None,
        });
        assert!(action(&role.unwrap(), needs), "{addon}");
        let variables = pods(&full, addon)["containers"][0]["env"].to_string();
        assert!(variables.contains("AWS_WEB_IDENTITY_TOKEN_FILE"), "{addon}");
        assert!(variables.contains("AWS_REGION"), "{addon}");
    }
}

#[test]
fn every_node_has_the_plugin_whatever_its_taints() {
    for (fields, addon, ..) in plugins() {
        let pods = pods(&expanded_with_fields(&fields).full, addon);
        assert_eq!(pods["tolerations"], json!([{"operator": "Exists"}]));
        assert_eq!(pods["priorityClassName"], "system-node-critical");
        assert_eq!(pods["hostNetwork"], true);
    }
}

#[test]
fn kube_router_answers_for_services_and_has_its_settings() {
    let image = "docker.io/cloudnativelabs/kube-router:v2.11.1";
    let usual = container("kuberouter", &json!({}), KUBE_ROUTER);
    assert_eq!(usual["image"], image);
    let arguments = texts(&usual["args"]);
    for wanted in [
        "--run-service-proxy=true",
        "--service-cluster-ip-range=100.64.0.0/13",
        "--service-node-port-range=30000-32767",
    ] {
        assert!(arguments.iter().any(|one| one == wanted), "{arguments:?}");
    }
    let nftables = json!({"useNFTablesForNetpol": true});
    let arguments = texts(&container("kuberouter", &nftables, KUBE_ROUTER)["args"]);
    assert!(arguments.contains(&"--use-nftables-for-netpol=true".to_owned()));
    let (fields, ..) = plugins()[1].clone();
    let full = expanded_with_fields(&fields).full;
    assert_eq!(full.kube_proxy, None);
}

#[test]
fn kindnet_has_kops_settings_and_those_of_the_spec() {
    let usual = container("kindnet", &json!({}), KINDNET);
    assert_eq!(usual["image"], "registry.k8s.io/networking/kindnet:v1.0.1");
    assert_eq!(
        texts(&usual["command"]),
        [
            "/bin/kindnetd",
            "--hostname-override=$(NODE_NAME)",
            "--v=2",
            "--dns-caching=false",
            "--nat64=false",
            "--fastpath-threshold=0",
            "--masquerading=true",
            "--no-masquerade-cidr=172.20.0.0/16,100.96.0.0/11,100.64.0.0/13",
        ]
    );
    let settings = json!({
        "version": "v1.0.2", "networkPolicies": true, "nat64": true, "fastPathThreshold": 20,
        "masquerade": {"enabled": false}, "logLevel": 4,
    });
    let changed = container("kindnet", &settings, KINDNET);
    assert_eq!(
        changed["image"],
        "registry.k8s.io/networking/kindnet:v1.0.2"
    );
    assert_eq!(
        texts(&changed["command"])[2..],
        [
            "--v=4",
            "--network-policy=true",
            "--dns-caching=false",
            "--nat64=true",
            "--fastpath-threshold=20",
            "--masquerading=false",
        ]
    );
}

#[test]
fn the_vpc_cni_has_kops_settings_and_those_of_the_spec() {
    let settings = json!({
        "imageName": "example.com/cni:1", "initImageName": "example.com/init:1",
        "networkPolicyAgentImage": "example.com/policies:1",
        "env": [
            {"name": "WARM_ENI_TARGET", "value": "2"},
            {"name": "ENABLE_IPv6", "value": "true"},
            {"name": "ANNOTATE_POD_IP", "value": "true"},
        ],
    });
    let fields = json!({"networking": {"amazonvpc": settings}});
    let full = expanded_with_fields(&fields).full;
    let pods = pods(&full, VPC_CNI);
    assert_eq!(pods["containers"][0]["image"], "example.com/cni:1");
    assert_eq!(pods["containers"][1]["image"], "example.com/policies:1");
    assert_eq!(pods["initContainers"][0]["image"], "example.com/init:1");
    let variables = pods["containers"][0]["env"].as_array().unwrap();
    let value = |name: &str| {
        let named: Vec<_> = variables.iter().filter(|one| one["name"] == name).collect();
        assert_eq!(named.len(), 1, "{name}");
        named[0]["value"].as_str().unwrap()
    };
    assert_eq!(value("WARM_ENI_TARGET"), "2");
    assert_eq!(value("ENABLE_IPv6"), "false");
    assert_eq!(value("AWS_VPC_ENI_MTU"), "9001");
    let tags =
        r#"{"KubernetesCluster":"a.example.com","kubernetes.io/cluster/a.example.com":"owned"}"#;
    assert_eq!(value("ADDITIONAL_ENI_TAGS"), tags);
    // Whoever writes annotations of pods may change pods.
    let verbs = |full: &FullSpec| {
        let addon = find_addon(full, VPC_CNI).unwrap();
        find_kind(&addon.objects, "ClusterRole")["rules"][2]["verbs"].clone()
    };
    assert_eq!(verbs(&full), json!(["list", "watch", "get", "patch"]));
    let (usual, ..) = plugins()[0].clone();
    let usual = expanded_with_fields(&usual).full;
    assert_eq!(verbs(&usual), json!(["list", "watch", "get"]));
}

#[test]
fn the_vpc_cni_has_its_ranges_and_kubelets_stop_at_once() {
    let fields = json!({"networking": {"amazonvpc": {}}, "nonMasqueradeCIDR": null});
    let expanded = expanded_with_fields(&fields);
    let spec = &expanded.cluster.spec;
    assert_eq!(spec.non_masquerade_cidr.as_deref(), Some("172.20.0.0/16"));
    assert_eq!(spec.pod_cidr.as_deref(), Some("172.20.128.0/17"));
    let services = spec.service_cluster_ip_range.as_deref();
    assert_eq!(services, Some("100.64.0.0/13"));
    let proxy = spec.kube_proxy.as_ref().unwrap();
    assert_eq!(proxy.cluster_cidr, None);
    let kubelet = spec.kubelet.as_ref().unwrap();
    assert_eq!(kubelet.shutdown_grace_period.as_deref(), Some("0s"));
    let asset = |full: &FullSpec| full.assets.iter().any(|one| one.name == "cni-plugins");
    assert!(!asset(&expanded.full));
    let (router, ..) = plugins()[1].clone();
    assert!(asset(&expanded_with_fields(&router).full));
}

/// Paths of the files that an instance gets for its network.
fn network_paths(full: &FullSpec, distribution: Distribution) -> Vec<String> {
    let config = node_config_of(full, Role::Node, "");
    let host = InstanceFacts {
        distribution,
        ..InstanceFacts::placeholder()
    };
    let files = host_files(&config, &host).unwrap().into_iter();
    let paths = files.map(|file| file.path);
    let folders = [
        "/etc/systemd/network",
        "/etc/udev/",
        "/etc/cloud/cloud.cfg.d/99-dis",
    ];
    paths
        .filter(|path| folders.iter().any(|folder| path.starts_with(folder)))
        .collect()
}

#[test]
fn the_host_leaves_routes_and_interfaces_of_the_plugin_alone() {
    let routes = "/etc/systemd/networkd.conf.d/40-kctl-foreign-routes.conf";
    let unit = |full: &FullSpec| {
        let config = node_config_of(full, Role::Node, "");
        config.units.iter().any(|unit| unit.name == VPC_INTERFACES)
    };
    for (fields, addon, ..) in plugins() {
        let full = expanded_with_fields(&fields).full;
        assert_eq!(unit(&full), addon == VPC_CNI);
        let more = match addon {
            VPC_CNI => [4, 5],
            _ => [1, 1],
        };
        let systems = [Distribution::Debian, Distribution::AmazonLinux];
        for (distribution, count) in systems.into_iter().zip(more) {
            let paths = network_paths(&full, distribution);
            assert!(paths.iter().any(|path| path == routes), "{paths:?}");
            assert_eq!(paths.len(), count, "{paths:?}");
        }
    }
    let flannel = expanded_with_fields(&json!({"networking": {"flannel": {}}})).full;
    assert!(!unit(&flannel));
    assert!(network_paths(&flannel, Distribution::AmazonLinux).is_empty());
}

/// Addresses of pods are the instance's too, and none of them is to be the Node's.
#[test]
fn kubelet_of_the_vpc_cni_knows_its_address() {
    for (fields, addon, ..) in plugins() {
        let config = node_config_of(&expanded_with_fields(&fields).full, Role::Node, "");
        let files = host_files(&config, &InstanceFacts::placeholder()).unwrap();
        let kubelet = files
            .iter()
            .find(|file| file.path == "/etc/sysconfig/kubelet");
        let named = kubelet.unwrap().content.contains("--node-ip=<address>");
        assert_eq!(named, addon == VPC_CNI, "{addon}");
    }
}

fn facts_of(types: &[(&str, u32, u32)]) -> Facts {
    let kind = |interfaces, addresses| InstanceType {
        arch: Arch::Amd64,
        instance_store_disks: 0,
        gpu: false,
        nvidia_gpu: false,
        xen: false,
        max_interfaces: Some(interfaces),
        addresses_per_interface: Some(addresses),
        zones: Vec::new(),
    };
    let types = types.iter();
    let types = types
        .map(|(name, interfaces, addresses)| ((*name).to_owned(), kind(*interfaces, *addresses)));
    Facts {
        account: "123456789012".into(),
        partition: "aws".into(),
        stand_in: true,
        instance_types: types.collect(),
        ..Facts::default()
    }
}

/// The sample with this plugin and these facts, and its workers changed.
fn expanded_in(
    plugin: &str,
    facts: &Facts,
    change: impl Fn(&mut InstanceGroup),
) -> Result<Expanded, Vec<Problem>> {
    let (mut cluster, mut groups) = (None, Vec::new());
    let text = test_support::CLUSTER.replace("kubenet: {}", plugin);
    for document in read_documents("cluster.yaml", &text).unwrap() {
        match document.object {
            Object::Cluster(object) => cluster = Some(object),
            Object::InstanceGroup(object) => groups.push(object),
            other => panic!("{other:?}"),
        }
    }
    let workers = groups
        .iter_mut()
        .find(|group| group.name() == "nodes-eu-west-1a");
    change(workers.unwrap());
    let catalog = Catalog::embedded().unwrap();
    expand(&cluster.unwrap(), &groups, &[], facts, &catalog)
}

/// Most pods of a worker with the VPC CNI.
fn max_pods(facts: &Facts, change: impl Fn(&mut InstanceGroup)) -> Value {
    max_pods_with("amazonvpc: {}", facts, change)
}

fn max_pods_with(plugin: &str, facts: &Facts, change: impl Fn(&mut InstanceGroup)) -> Value {
    let full = expanded_in(plugin, facts, change).unwrap().full;
    let config = node_config_of(&full, Role::Node, "").kubelet.config;
    config["maxPods"].clone()
}

#[test]
fn a_node_runs_as_many_pods_as_it_has_addresses() {
    let facts = facts_of(&[
        ("t3.micro", 2, 2),
        ("t3.medium", 3, 6),
        ("m5.large", 3, 10),
        ("m5.4xlarge", 8, 30),
    ]);
    let of_type = |name: &'static str| {
        max_pods(&facts, move |group| {
            group.spec.machine_type = Some(name.into());
        })
    };
    assert_eq!(of_type("t3.medium"), 17);
    assert_eq!(of_type("m5.large"), 29);
    // Addresses are not the only thing that is scarce.
    assert_eq!(of_type("m5.4xlarge"), 110);
    let mixed = |group: &mut InstanceGroup| {
        let policy = json!({"instances": ["m5.4xlarge", "t3.medium"]});
        group.spec.machine_type = Some("m5.4xlarge".into());
        group.spec.mixed_instances_policy = serde_json::from_value(policy).unwrap();
    };
    assert_eq!(max_pods(&facts, mixed), 17);
    let said = |group: &mut InstanceGroup| {
        group.spec.kubelet.get_or_insert_default().max_pods = Some(50);
    };
    assert_eq!(max_pods(&facts, said), 50);
    // Without AWS nobody knows.
    assert_eq!(max_pods(&facts_of(&[]), |_| ()), Value::Null);
    // cilium takes as many addresses for itself as there are pods on the host's network.
    let medium = |group: &mut InstanceGroup| group.spec.machine_type = Some("t3.medium".into());
    let cilium = |settings| max_pods_with(&format!("cilium: {settings}"), &facts, medium);
    assert_eq!(cilium("{ipam: eni}"), 15);
    assert_eq!(cilium("{}"), Value::Null);
}
