//! What IPv6 clusters get beside what kOps' fixtures show.

use crate::addons::{find_addon, find_kind};
use crate::host::{config_of, instance_facts};
use full::FullSpec;
use full::iam::role_policy;
use full::nodes::{UserData, user_data};
use node::config::{InstanceFacts, NodeConfig, Role, host_files};
use node::host::desired_resources;
use serde_json::{Value, json};
use spec::expand::Expanded;
use spec::network_change::find_network_change;
use test_support::{expanded_spec, expanded_with, group_of, made_up_agents};

/// The sample cluster on IPv6, with cilium.
fn ipv6_cluster(more: &Value) -> Expanded {
    ipv6_cluster_with(&json!({"cilium": {}}), more)
}

fn ipv6_cluster_with(networking: &Value, more: &Value) -> Expanded {
    expanded_with(|cluster, _| {
        let mut spec = serde_json::to_value(&cluster.spec).unwrap();
        let fields = spec.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        fields.insert("nonMasqueradeCIDR".to_owned(), json!("::/0"));
        fields.insert("networking".to_owned(), networking.clone());
        fields.remove("podCIDR");
        cluster.spec = serde_json::from_value(spec).unwrap();
        for (number, subnet) in cluster.spec.subnets.iter_mut().enumerate() {
            subnet.ipv6_cidr = Some(format!("/64#{number:x}"));
        }
    })
}

fn configs() -> [NodeConfig; 2] {
    let cluster = ipv6_cluster(&json!({}));
    [Role::ControlPlane, Role::Node].map(|role| config_of(&cluster, role))
}

#[test]
fn instances_pass_on_ipv6_and_keep_their_default_route() {
    let host = InstanceFacts {
        advertised_interfaces: vec!["ens5".to_owned(), "ens6".to_owned()],
        ..instance_facts(false)
    };
    let forwarding = "sysctl/net.ipv6.conf.all.forwarding";
    for config in configs() {
        let all = desired_resources(&config, &host).unwrap();
        let forwards = all
            .iter()
            .find(|one| one.thing.id().to_string() == forwarding);
        let needs: Vec<String> = forwards
            .unwrap()
            .needs
            .iter()
            .map(ToString::to_string)
            .collect();
        for interface in ["ens5", "ens6"] {
            let kept = format!("sysctl/net.ipv6.conf.{interface}.accept_ra");
            assert!(needs.contains(&kept), "{needs:?}");
        }
        let files = host_files(&config, &host).unwrap();
        let file = files
            .iter()
            .find(|file| file.path.ends_with("99-k8s-general.conf"));
        let text = &file.unwrap().content;
        let place = |line: &str| {
            text.find(line)
                .unwrap_or_else(|| panic!("no {line}: {text}"))
        };
        assert!(
            place("net.ipv6.conf.ens6.accept_ra = 2") < place("net.ipv6.conf.all.forwarding = 1"),
            "{text}"
        );
        assert!(!text.contains("net.ipv4.ip_forward"), "{text}");
    }
    let config = config_of(&expanded_spec(), Role::Node);
    let files = host_files(&config, &host).unwrap();
    assert!(!files.iter().any(|file| file.content.contains("accept_ra")));
}

#[test]
fn kubelet_takes_an_ipv6_address_and_no_configuration_of_ipv4_says_so() {
    for config in configs() {
        assert!(config.ipv6);
        assert_eq!(config.kubelet.flags.get("node-ip"), Some("::"));
    }
    let before = config_of(&expanded_spec(), Role::ControlPlane);
    assert_eq!(before.kubelet.flags.get("node-ip"), None);
    assert!(!before.to_yaml().unwrap().contains("ipv6"));
}

#[test]
fn the_api_server_answers_at_both_families_and_services_have_ipv6() {
    let [control_plane, _] = configs();
    let pods = control_plane.control_plane.unwrap().static_pods;
    let flags = |name: &str| pods[name].spec.containers[0].args.join(" ");
    let api = flags("kube-apiserver");
    assert!(api.contains("--bind-address=::"), "{api}");
    assert!(
        api.contains("--service-cluster-ip-range=fd00:5e4f:ce::/108"),
        "{api}"
    );
    let manager = flags("kube-controller-manager");
    assert!(manager.contains("--allocate-node-cidrs=false"), "{manager}");
    assert!(!manager.contains("--cluster-cidr"), "{manager}");
}

fn issuer_of(full: &FullSpec) -> &str {
    &full.pod_identity.as_ref().unwrap().issuer
}

#[test]
fn the_issuer_is_reached_at_a_name_with_ipv6() {
    let store = json!({
        "serviceAccountIssuerDiscovery": {"discoveryStore": "s3://issuer/prod", "enableAWSOIDCProvider": true},
    });
    let cluster = ipv6_cluster(&store);
    let issuer = issuer_of(&cluster.full);
    assert!(
        issuer.starts_with("https://s3.dualstack.")
            && issuer.ends_with(".amazonaws.com/issuer/prod"),
        "{issuer}"
    );
}

/// Where DHCP gives an instance without IPv4 not even a link-local address, all that it needs of AWS has another one.
#[test]
fn instances_reach_the_services_of_ec2_without_any_ipv4_address() {
    let script = |cluster: &Expanded| {
        let of = UserData {
            full: &cluster.full,
            group: &group_of(&cluster.full, Role::Node).name,
            node_config: &"3".repeat(64),
            trust_bundle: "",
            agents: &made_up_agents(),
        };
        user_data(&of)
            .unwrap()
            .unwrap()
            .as_known()
            .unwrap()
            .to_owned()
    };
    let time = |cluster: &Expanded| {
        let config = config_of(cluster, Role::Node);
        let files = host_files(&config, &instance_facts(false)).unwrap();
        let file = files
            .into_iter()
            .find(|file| file.path.ends_with("amazon.sources"));
        file.unwrap().content
    };
    let (six, four) = (ipv6_cluster(&json!({})), expanded_spec());
    assert!(script(&six).contains("http://[fd00:ec2::254]"));
    assert!(!script(&four).contains("fd00:"));
    assert_eq!(time(&six).lines().count(), 2);
    assert!(time(&six).contains("server fd00:ec2::123 "));
    assert!(!time(&four).contains("fd00:"));
}

/// What the ConfigMap of that name says.
fn config_map<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    let mut all = objects.iter();
    let found = all.find(|one| one["kind"] == "ConfigMap" && one["metadata"]["name"] == name);
    &found.unwrap()["data"]
}

#[test]
fn cilium_needs_no_tunnel_whether_the_spec_says_so_or_not() {
    let objects = |cilium: Value| {
        let cluster = ipv6_cluster_with(&json!({ "cilium": cilium }), &json!({}));
        find_addon(&cluster.full, "networking.cilium.io")
            .unwrap()
            .objects
    };
    let said = objects(json!({"tunnel": "disabled"}));
    assert_eq!(said, objects(json!({})));
    let settings = config_map(&said, "cilium-config");
    assert_eq!(settings["routing-mode"], "native");
    assert_eq!(settings["enable-ipv6-masquerade"], "false");
    assert_eq!(settings["tunnel-protocol"], Value::Null);
}

/// As kOps' template of calico says.
#[test]
fn calico_leaves_addresses_to_the_range_of_a_node_and_ways_to_the_vpc() {
    let networking = json!({"calico": {"typhaReplicas": 1}});
    let full = ipv6_cluster_with(&networking, &json!({})).full;
    let addon = find_addon(&full, "networking.projectcalico.org").unwrap();
    let config = config_map(&addon.objects, "calico-config");
    assert_eq!(config["calico_backend"], "none");
    let network: Value = serde_json::from_str(
        &config["cni_network_config"]
            .as_str()
            .unwrap()
            .replace("__CNI_MTU__", "0"),
    )
    .unwrap();
    let expected = json!({
        "assign_ipv4": "false",
        "assign_ipv6": "true",
        "type": "host-local",
        "ranges": [[{"subnet": "usePodCidrIPv6"}]],
    });
    assert_eq!(network["plugins"][0]["ipam"], expected);
    let pod = &find_kind(&addon.objects, "DaemonSet")["spec"]["template"]["spec"];
    let agent = &pod["containers"][0];
    let environment = agent["env"].as_array().unwrap();
    for (name, value) in [
        ("USE_POD_CIDR", json!("true")),
        ("IP", json!("none")),
        ("IP6", json!("autodetect")),
        ("IP_AUTODETECTION_METHOD", json!("none")),
        ("IP6_AUTODETECTION_METHOD", json!("first-found")),
        ("CALICO_IPV4POOL_IPIP", json!("Never")),
        ("CALICO_IPV4POOL_VXLAN", json!("Never")),
        ("CALICO_IPV6POOL_VXLAN", json!("Never")),
        ("CALICO_ROUTER_ID", json!("hash")),
        ("NO_DEFAULT_POOLS", json!("true")),
        ("FELIX_IPV6SUPPORT", json!("true")),
        ("FELIX_AWSSRCDSTCHECK", json!("DoNothing")),
        ("CALICO_IPV4POOL_CIDR", Value::Null),
    ] {
        let found = environment.iter().find(|one| one["name"] == name);
        assert_eq!(
            found.map_or(&Value::Null, |one| &one["value"]),
            &value,
            "{name}"
        );
    }
    for probe in ["livenessProbe", "readinessProbe"] {
        let command = agent[probe]["exec"]["command"].as_array().unwrap();
        assert_eq!(command.len(), 2, "no BGP: {command:?}");
    }
    let prepares = pod["initContainers"].as_array().unwrap();
    assert!(prepares.iter().all(|one| one["name"] != "upgrade-ipam"));
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(
        volumes
            .iter()
            .all(|one| one["name"] != "host-local-net-dir")
    );
    let role = role_policy(&full, Role::Node).unwrap().to_string();
    assert!(!role.contains("ModifyNetworkInterfaceAttribute"), "{role}");
}

#[test]
fn the_dns_cache_listens_at_ipv6_and_asks_coredns_which_makes_addresses_of_nat64() {
    let cache = json!({"enabled": true, "localIP": "fd00:ec1::10"});
    let dns = json!({"kubeDNS": {"nodeLocalDNS": cache}});
    let full = ipv6_cluster(&dns).full;
    let addon = find_addon(&full, "nodelocaldns.addons.k8s.io").unwrap();
    let text = json!(addon.objects).to_string();
    assert!(text.contains("health [fd00:ec1::10]:3989"), "{text}");
    assert!(text.contains("bind fd00:ec1::10"), "{text}");
    assert!(!text.contains("__PILLAR__UPSTREAM__"), "{text}");
}

#[test]
fn a_cluster_that_runs_stays_in_its_family() {
    let (six, four) = (ipv6_cluster(&json!({})).cluster, expanded_spec().cluster);
    for (wanted, last, said) in [
        (&six, &four, "the cluster runs IPv4"),
        (&four, &six, "the cluster runs IPv6"),
    ] {
        let problem = find_network_change(wanted, last).unwrap();
        assert_eq!(problem.path, "spec.nonMasqueradeCIDR");
        assert!(problem.message.starts_with(said), "{}", problem.message);
    }
    assert!(find_network_change(&six, &six).is_none());
}
