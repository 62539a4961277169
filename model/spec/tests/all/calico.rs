//! calico, as `spec.networking.calico` wants it.
use crate::addons::{find_addon, find_kind};
use full::FullSpec;
use full::addons::Addon;
use full::iam::role_policy;
use full::nodes::node_config;
use node::config::{Networking, Role};
use serde_json::{Value, json};
use spec::network_change::find_network_change;
use spec::read::{Problem, read_documents};
use spec::validate::validate_documents;
use std::collections::BTreeSet;
use test_support::{expanded_with, expanded_with_fields, made_up_agents, try_expanded_with};

const NAME: &str = "networking.projectcalico.org";

fn full_with(calico: &Value) -> FullSpec {
    let bpf = calico["bpfEnabled"] == true;
    let fields = json!({"networking": {"calico": calico}, "kubeProxy": {"enabled": !bpf}});
    expanded_with_fields(&fields).full
}

fn addon_with(calico: &Value) -> Addon {
    find_addon(&full_with(calico), NAME).unwrap()
}

fn named<'a>(addon: &'a Addon, kind: &str, name: &str) -> &'a Value {
    let mut objects = addon.objects.iter();
    let found = objects.find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
    found.unwrap_or(&Value::Null)
}

fn agent(addon: &Addon) -> &Value {
    &find_kind(&addon.objects, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
}

/// A variable of the agent's environment; null: it has none.
fn variable<'a>(addon: &'a Addon, name: &str) -> &'a Value {
    let mut all = agent(addon)["env"].as_array().unwrap().iter();
    let found = all.find(|one| one["name"] == name);
    found.map_or(&Value::Null, |one| &one["value"])
}

fn command(addon: &Addon, probe: &str) -> String {
    agent(addon)[probe]["exec"]["command"].to_string()
}

#[test]
fn packets_are_encapsulated_as_the_spec_says() {
    for (calico, backend, ipip, vxlan) in [
        (json!({}), "bird", "CrossSubnet", "Never"),
        (json!({"ipipMode": "Always"}), "bird", "Always", "Never"),
        (json!({"ipipMode": "Never"}), "bird", "Never", "Never"),
        (
            json!({"encapsulationMode": "vxlan"}),
            "vxlan",
            "Never",
            "CrossSubnet",
        ),
        (
            json!({"encapsulationMode": "vxlan", "vxlanMode": "Always"}),
            "vxlan",
            "Never",
            "Always",
        ),
    ] {
        let addon = addon_with(&calico);
        let data = &named(&addon, "ConfigMap", "calico-config")["data"];
        assert_eq!(data["calico_backend"], backend, "{calico}");
        assert_eq!(variable(&addon, "CALICO_IPV4POOL_IPIP"), ipip, "{calico}");
        assert_eq!(variable(&addon, "CALICO_IPV4POOL_VXLAN"), vxlan, "{calico}");
        assert_eq!(variable(&addon, "CALICO_IPV4POOL_CIDR"), "100.96.0.0/11");
        let routes = backend == "bird";
        for (probe, argument) in [
            ("livenessProbe", "-bird-live"),
            ("readinessProbe", "-bird-ready"),
        ] {
            let asked = command(&addon, probe).contains(argument);
            assert_eq!(asked, routes, "{calico} {probe}");
        }
    }
}

#[test]
fn the_first_pool_is_what_the_controller_manager_takes_for_pods() {
    let fields = json!({"networking": {"calico": {}}, "podCIDR": "100.100.0.0/16"});
    let addon = find_addon(&expanded_with_fields(&fields).full, NAME).unwrap();
    assert_eq!(variable(&addon, "CALICO_IPV4POOL_CIDR"), "100.100.0.0/16");
}

#[test]
fn without_kube_proxy_the_api_is_reached_by_its_name() {
    let endpoint = |calico: Value| {
        let addon = addon_with(&calico);
        let found = named(&addon, "ConfigMap", "kubernetes-services-endpoint");
        found["data"]["KUBERNETES_SERVICE_HOST"].clone()
    };
    assert_eq!(endpoint(json!({})), Value::Null);
    assert_eq!(
        endpoint(json!({"bpfEnabled": true})),
        "api.internal.a.example.com"
    );
    let addon = addon_with(&json!({"bpfEnabled": true, "bpfExternalServiceMode": "DSR"}));
    assert_eq!(variable(&addon, "FELIX_BPFENABLED"), "true");
    assert_eq!(variable(&addon, "FELIX_BPFEXTERNALSERVICEMODE"), "DSR");
}

#[test]
fn typha_stands_before_the_api_where_the_spec_wants_it() {
    let without = addon_with(&json!({"typhaReplicas": 0, "typhaPrometheusMetricsEnabled": true}));
    assert!(named(&without, "Deployment", "calico-typha").is_null());
    assert!(named(&without, "Service", "calico-typha").is_null());
    let service = |addon: &Addon| {
        named(addon, "ConfigMap", "calico-config")["data"]["typha_service_name"].clone()
    };
    assert_eq!(service(&without), "none");

    let with = addon_with(&json!({"typhaReplicas": 3, "typhaPrometheusMetricsEnabled": true}));
    assert_eq!(service(&with), "calico-typha");
    let deployment = named(&with, "Deployment", "calico-typha");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let ports = &deployment["spec"]["template"]["spec"]["containers"][0]["ports"];
    assert_eq!(ports[0]["containerPort"], 5473);
    assert_eq!(ports[1]["containerPort"], 9093);
    assert!(named(&with, "PodDisruptionBudget", "calico-typha").is_object());
    // A pod that tolerates a cordoned node comes back to it while the node is drained.
    let tolerations = &deployment["spec"]["template"]["spec"]["tolerations"];
    for toleration in tolerations.as_array().unwrap() {
        assert!(toleration["key"].is_string(), "{toleration}");
    }
}

#[test]
fn metrics_have_a_port_where_they_are_served() {
    for (calico, port) in [
        (json!({}), Value::Null),
        (json!({"prometheusMetricsPort": 9999}), Value::Null),
        (json!({"prometheusMetricsEnabled": true}), json!(9091)),
        (
            json!({"prometheusMetricsEnabled": true, "prometheusMetricsPort": 9999}),
            json!(9999),
        ),
    ] {
        let addon = addon_with(&calico);
        assert_eq!(agent(&addon)["ports"][0]["containerPort"], port, "{calico}");
    }
}

#[test]
fn a_change_of_what_agents_read_when_they_start_restarts_them() {
    let template = |calico: Value| {
        let addon = addon_with(&calico);
        find_kind(&addon.objects, "DaemonSet")["spec"]["template"].clone()
    };
    let before = template(json!({}));
    assert_eq!(template(json!({})), before);
    for change in [
        json!({"mtu": 8981}),
        json!({"allowIPForwarding": true}),
        json!({"typhaReplicas": 1}),
        json!({"encapsulationMode": "vxlan"}),
    ] {
        assert_ne!(template(change.clone()), before, "{change}");
    }
}

#[test]
fn the_plugin_is_configured_by_json_once_it_is_filled_in() {
    for forwarding in [false, true] {
        let addon = addon_with(&json!({ "allowIPForwarding": forwarding }));
        let data = &named(&addon, "ConfigMap", "calico-config")["data"];
        let text = data["cni_network_config"].as_str().unwrap();
        let filled = text.replace("__CNI_MTU__", "0");
        let config: Value = serde_json::from_str(&filled).unwrap();
        let settings = &config["plugins"][0]["container_settings"];
        assert_eq!(settings["allow_ip_forwarding"] == true, forwarding);
    }
}

#[test]
fn an_egress_proxy_leads_agents_to_ec2() {
    let proxied = json!({
        "networking": {"calico": {}},
        "egressProxy": {"httpProxy": {"host": "proxy.example.com", "port": 3128}},
    });
    let addon = find_addon(&expanded_with_fields(&proxied).full, NAME).unwrap();
    assert_eq!(
        variable(&addon, "https_proxy"),
        "http://proxy.example.com:3128"
    );
    let excluded = variable(&addon, "no_proxy").as_str().unwrap();
    assert!(excluded.contains("169.254.169.254"), "{excluded}");
    assert!(variable(&addon_with(&json!({})), "https_proxy").is_null());
}

#[test]
fn instances_may_change_their_check_of_addresses_and_nothing_else() {
    for role in [Role::ControlPlane, Role::Node] {
        let statement = |calico: Value| {
            let policy = role_policy(&full_with(&calico), role).unwrap();
            let all = policy["Statement"].as_array().unwrap().clone();
            all.into_iter().find(|one| {
                one["Action"]
                    .to_string()
                    .contains("ModifyNetworkInterfaceAttribute")
            })
        };
        for check in ["Disable", "Enable"] {
            let found = statement(json!({ "awsSrcDstCheck": check })).unwrap();
            assert_eq!(
                found["Action"],
                json!(["ec2:ModifyNetworkInterfaceAttribute"])
            );
            let resource = found["Resource"].to_string();
            assert!(resource.contains(":network-interface/*"), "{resource}");
            let tag = &found["Condition"]["StringEquals"]["aws:ResourceTag/KubernetesCluster"];
            assert_eq!(*tag, "a.example.com");
        }
        assert!(statement(json!({})).is_some());
        assert!(statement(json!({"awsSrcDstCheck": "DoNothing"})).is_none());
    }
}

#[test]
fn no_setting_needs_other_instances() {
    let config = |calico: Value| {
        let full = full_with(&calico);
        let group = full.groups.iter().find(|group| group.role == Role::Node);
        let name = group.unwrap().name.clone();
        node_config(&full, &name, "", &made_up_agents()).unwrap()
    };
    let before = config(json!({})).unwrap();
    assert_eq!(before.networking, Networking::Calico);
    let mut files = before.files.iter();
    let found = files.find(|file| file.path == "/etc/NetworkManager/conf.d/calico.conf");
    let lines: Vec<&str> = found.unwrap().content.lines().collect();
    assert_eq!(lines[0], "[keyfile]");
    assert!(lines[1].starts_with("unmanaged-devices=interface-name:cali*;"));
    assert!(lines[1].ends_with(";interface-name:wg-v6.cali") && !lines[1].contains(' '));
    for change in [
        json!({"version": "v3.31.5", "mtu": 8981, "wireguardEnabled": true}),
        json!({"encapsulationMode": "vxlan", "typhaReplicas": 3}),
    ] {
        assert_eq!(config(change.clone()), Some(before.clone()), "{change}");
    }
}

#[test]
fn accounts_of_workers_write_what_calico_needs_and_nothing_else() {
    let addon = addon_with(&json!({}));
    let written = |account: &str| {
        let rules = named(&addon, "ClusterRole", account)["rules"].as_array();
        let reads = ["get", "list", "watch"].map(Value::from);
        let writing = rules.unwrap().iter().filter(|rule| {
            let mut verbs = rule["verbs"].as_array().unwrap().iter();
            verbs.any(|verb| !reads.contains(verb))
        });
        let resources = writing.flat_map(|rule| rule["resources"].as_array().unwrap());
        let resources = resources.map(|one| one.as_str().unwrap());
        resources.collect::<BTreeSet<&str>>()
    };
    let addresses = [
        "blockaffinities",
        "ipamblocks",
        "ipamconfigs",
        "ipamhandles",
    ];
    let wanted: BTreeSet<&str> = addresses.into_iter().chain(["pods/status"]).collect();
    assert_eq!(written("calico-cni-plugin"), wanted);
    let more = [
        "bgpconfigurations",
        "caliconodestatuses",
        "clusterinformations",
        "felixconfigurations",
        "ippools",
        "nodes/status",
        "serviceaccounts/token",
        "tiers",
    ];
    let wanted: BTreeSet<&str> = wanted.into_iter().chain(more).collect();
    assert_eq!(written("calico-node"), wanted);
    // Of ConfigMaps it reads two, which kctl's clusters do not have.
    let role = named(&addon, "Role", "calico-node")["rules"].clone();
    assert_eq!(role[0]["resources"], json!(["configmaps"]));
    assert_eq!(role[0]["resourceNames"].as_array().unwrap().len(), 2);
}

#[test]
fn an_agent_requests_tokens_with_the_audiences_of_the_api_only() {
    let rule = |fields: &Value| {
        let mut fields = fields.clone();
        fields["networking"] = json!({"calico": {}});
        let addon = find_addon(&expanded_with_fields(&fields).full, NAME).unwrap();
        let policy = named(
            &addon,
            "ValidatingAdmissionPolicy",
            "tokens.calico.networking.kctl.dev",
        );
        policy["spec"]["validations"][1]["expression"].clone()
    };
    let usual = r#"variables.wanted.audiences.all(one, one in ["kubernetes.svc.default"])"#;
    assert_eq!(rule(&json!({})), usual);
    let own = json!({"kubeAPIServer": {"apiAudiences": ["one", "other"]}});
    let both = r#"variables.wanted.audiences.all(one, one in ["one","other"])"#;
    assert_eq!(rule(&own), both);
}

#[test]
fn another_encapsulation_is_another_network() {
    let cluster =
        |calico: Value| expanded_with_fields(&json!({"networking": {"calico": calico}})).cluster;
    let last = cluster(json!({}));
    let mut unset = last.clone();
    let networking = unset.spec.networking.as_mut().unwrap();
    networking.calico.as_mut().unwrap().encapsulation_mode = None;
    assert!(find_network_change(&last, &unset).is_none());
    assert!(find_network_change(&unset, &last).is_none());
    assert!(find_network_change(&cluster(json!({"ipipMode": "Always"})), &last).is_none());
    let wanted = cluster(json!({"encapsulationMode": "vxlan"}));
    let found = find_network_change(&wanted, &last).unwrap();
    assert!(found.is_error());
    for named in ["calico (ipip)", "calico (vxlan)"] {
        assert!(found.message.contains(named), "{}", found.message);
    }
}

#[test]
fn pods_of_several_subnets_need_encapsulation() {
    let refused = |calico: Value, role: &str| {
        let expanded = try_expanded_with(|cluster, groups| {
            let networking = json!({ "calico": calico });
            cluster.spec.networking = serde_json::from_value(networking).unwrap();
            let mut other = cluster.spec.subnets[0].clone();
            other.name = "other".into();
            other.cidr = Some("172.20.128.0/17".into());
            cluster.spec.subnets[0].cidr = Some("172.20.0.0/17".into());
            cluster.spec.subnets.push(other);
            let mut groups = groups.iter_mut();
            let group = groups.find(|group| group.name().starts_with(role));
            group.unwrap().spec.subnets = vec!["other".into()];
        });
        expanded.map_or_else(|found| found[0].path.clone(), |_| String::new())
    };
    let never = || json!({"ipipMode": "Never"});
    assert_eq!(refused(never(), "nodes"), "spec.networking.calico.ipipMode");
    // Bastions have no pods.
    assert_eq!(refused(never(), "bastions"), "");
    for calico in [
        json!({}),
        json!({"ipipMode": "Always"}),
        json!({"encapsulationMode": "vxlan"}),
    ] {
        assert_eq!(refused(calico, "nodes"), "");
    }
}

#[test]
fn each_pod_of_typha_needs_a_node_that_it_tolerates() {
    let warned = |replicas: i32, taints: &[&str]| {
        let expanded = expanded_with(|cluster, groups| {
            let networking = json!({"calico": {"typhaReplicas": replicas}});
            cluster.spec.networking = serde_json::from_value(networking).unwrap();
            let mut groups = groups.iter_mut();
            let workers = groups.find(|group| group.name().starts_with("nodes"));
            let spec = &mut workers.unwrap().spec;
            (spec.min_size, spec.max_size) = (Some(2), Some(4));
            spec.taints = taints.iter().map(|taint| (*taint).to_owned()).collect();
        });
        let mut warnings = expanded.warnings.iter();
        warnings.any(|one| one.path == "spec.networking.calico.typhaReplicas")
    };
    // One control plane and two workers.
    assert!(!warned(3, &[]));
    assert!(warned(4, &[]));
    for taint in ["a=b:NoSchedule", "a=:NoExecute"] {
        assert!(!warned(1, &[taint]), "{taint}");
        assert!(warned(2, &[taint]), "{taint}");
    }
    assert!(!warned(3, &["a=b:PreferNoSchedule"]));
    let with = addon_with(&json!({"typhaReplicas": 1}));
    let pods = &named(&with, "Deployment", "calico-typha")["spec"]["template"]["spec"];
    for toleration in pods["tolerations"].as_array().unwrap() {
        let key = toleration["key"].as_str().unwrap();
        // kubelet and controllers set the others while a node starts.
        if !key.starts_with("node.") {
            assert!(!warned(3, &[&format!("{key}=:NoSchedule")]), "{key}");
        }
    }
}

/// Findings about a spec with these fields of calico, and these lines of the cluster's spec.
fn findings(calico: &str, more: &str) -> Vec<Problem> {
    let networking = format!("    calico: {calico}\n{more}");
    let text = test_support::CLUSTER.replace("    kubenet: {}\n", &networking);
    let documents = read_documents("cluster.yaml", &text);
    documents.map_or_else(|refused| refused, |read| validate_documents(&read))
}

/// The last fields of the paths of errors.
fn errors_in(found: Vec<Problem>) -> Vec<String> {
    let errors = found.into_iter().filter(Problem::is_error);
    let path = |one: Problem| one.path.rsplit('.').next().unwrap_or_default().to_owned();
    errors.map(path).collect()
}

/// The last fields of the paths of errors about a spec with these fields of calico.
fn found_at(calico: &str) -> Vec<String> {
    errors_in(findings(calico, ""))
}

#[test]
fn calico_and_kube_proxy_make_rules_of_one_kind() {
    for (mode, own, wrong) in [
        ("iptables", "", ""),
        ("iptables", "Auto", ""),
        ("iptables", "Disabled", ""),
        ("iptables", "Enabled", "nftablesMode"),
        ("ipvs", "Enabled", "nftablesMode"),
        ("nftables", "", "proxyMode"),
        ("nftables", "Disabled", "proxyMode"),
        ("nftables", "Auto", ""),
        ("nftables", "Enabled", ""),
    ] {
        let calico = match own {
            "" => "{}".to_owned(),
            own => format!("{{nftablesMode: {own}}}"),
        };
        let proxy = format!("  kubeProxy: {{proxyMode: {mode}}}\n");
        let found = errors_in(findings(&calico, &proxy)).join(" ");
        assert_eq!(found, wrong, "{mode} {own}");
    }
    // Nobody else makes rules.
    let off = "  kubeProxy: {enabled: false}\n";
    let found = findings("{bpfEnabled: true, nftablesMode: Enabled}", off);
    assert_eq!(errors_in(found), Vec::<String>::new());
}

#[test]
fn what_ec2_would_drop_is_a_warning() {
    for (calico, warned) in [
        ("{}", ""),
        ("{awsSrcDstCheck: Disable}", ""),
        ("{awsSrcDstCheck: Enable}", "awsSrcDstCheck"),
        ("{awsSrcDstCheck: DoNothing}", "awsSrcDstCheck"),
        ("{awsSrcDstCheck: DoNothing, ipipMode: Always}", ""),
        ("{bpfEnabled: true, bpfExternalServiceMode: DSR}", ""),
        (
            "{awsSrcDstCheck: Enable, ipipMode: Always, bpfEnabled: true, bpfExternalServiceMode: DSR}",
            "bpfExternalServiceMode",
        ),
    ] {
        let found = findings(calico, "  kubeProxy: {enabled: false}\n").into_iter();
        let warnings = found.filter(|one| !one.is_error() && one.message.starts_with("EC2 drops"));
        let last = |one: Problem| one.path.rsplit('.').next().unwrap_or_default().to_owned();
        let paths: Vec<String> = warnings.map(last).collect();
        assert_eq!(paths.join(" "), warned, "{calico}");
    }
}

#[test]
fn methods_of_finding_an_address_are_those_of_kops() {
    for method in [
        "first-found",
        "can-reach=10.0.0.1",
        "interface=eth0",
        "interface=ens.*,eth0",
        "skip-interface=docker0, veth.*",
    ] {
        let found = found_at(&format!("{{ipv4AutoDetectionMethod: '{method}'}}"));
        assert!(found.is_empty(), "{method}: {found:?}");
    }
    for method in [
        "",
        "last-found",
        "can-reach=example.com",
        "can-reach=fd00::1",
        "interface=",
        "interface=(,en1",
        "interface=foo=bar",
        "=en0,eth.*",
        "cidr=10.0.0.0/8",
    ] {
        let found = found_at(&format!("{{ipv4AutoDetectionMethod: '{method}'}}"));
        assert_eq!(found, ["ipv4AutoDetectionMethod"], "{method}");
    }
    assert!(found_at("{ipv6AutoDetectionMethod: can-reach=fd00::1}").is_empty());
    assert!(!found_at("{ipv6AutoDetectionMethod: can-reach=10.0.0.1}").is_empty());
}

/// The cases of kOps' own tests.
#[test]
fn a_mode_belongs_to_its_encapsulation() {
    for fits in [
        "{}",
        "{ipipMode: Always}",
        "{ipipMode: Never}",
        "{encapsulationMode: ipip, ipipMode: CrossSubnet}",
        "{encapsulationMode: ipip, vxlanMode: Never}",
        "{encapsulationMode: vxlan, ipipMode: Never}",
        "{encapsulationMode: vxlan, vxlanMode: Always}",
        "{awsSrcDstCheck: Enable}",
        "{awsSrcDstCheck: DoNothing}",
        "{logSeverityScreen: WARNING}",
        "{bpfEnabled: true}",
        "{typhaReplicas: 0}",
    ] {
        assert_eq!(found_at(fits), Vec::<String>::new(), "{fits}");
    }
    for (wrong, field) in [
        ("{awsSrcDstCheck: 'off'}", "awsSrcDstCheck"),
        ("{encapsulationMode: none}", "encapsulationMode"),
        ("{ipipMode: unknown}", "ipipMode"),
        ("{encapsulationMode: vxlan, ipipMode: Always}", "ipipMode"),
        (
            "{encapsulationMode: vxlan, ipipMode: CrossSubnet}",
            "ipipMode",
        ),
        ("{vxlanMode: Always}", "vxlanMode"),
        // In kOps it is none, and pods do not reach each other.
        ("{encapsulationMode: vxlan, vxlanMode: Never}", "vxlanMode"),
        ("{typhaReplicas: -1}", "typhaReplicas"),
        ("{prometheusMetricsPort: 70000}", "prometheusMetricsPort"),
        ("{cpuRequest: much}", "cpuRequest"),
        ("{version: 'v3 31'}", "version"),
        ("{registry: 'https://x/y'}", "registry"),
    ] {
        assert_eq!(found_at(wrong), [field], "{wrong}");
    }
}
