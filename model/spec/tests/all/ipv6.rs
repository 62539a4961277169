//! What IPv6 clusters get beside what kOps' fixtures show.

use crate::host::{config_of, instance_facts};
use full::FullSpec;
use node::config::{InstanceFacts, NodeConfig, Role, host_files};
use node::host::desired_resources;
use serde_json::{Value, json};
use spec::expand::Expanded;
use test_support::{expanded_spec, expanded_with};

/// The sample cluster on IPv6.
fn ipv6_cluster(more: &Value) -> Expanded {
    expanded_with(|cluster, _| {
        let mut spec = serde_json::to_value(&cluster.spec).unwrap();
        let fields = spec.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        fields.insert("nonMasqueradeCIDR".to_owned(), json!("::/0"));
        fields.insert("networking".to_owned(), json!({"cilium": {}}));
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
