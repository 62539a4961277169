//! The node-local DNS cache, as `spec.kubeDNS.nodeLocalDNS` wants it.
use crate::addons::{find_addon, find_kind};
use full::FullSpec;
use node::config::Role;
use serde_json::{Value, json};
use test_support::{expanded_with_fields, node_config_of};

fn full_with(dns: &Value, more: &Value) -> FullSpec {
    let mut fields = json!({ "kubeDNS": dns });
    let more = more.as_object().unwrap().clone();
    fields.as_object_mut().unwrap().extend(more);
    expanded_with_fields(&fields).full
}

fn objects_with(dns: &Value, more: &Value) -> Option<Vec<Value>> {
    find_addon(&full_with(dns, more), "nodelocaldns.addons.k8s.io").map(|addon| addon.objects)
}

fn corefile_with(dns: &Value, more: &Value) -> String {
    let objects = objects_with(dns, more).unwrap();
    find_kind(&objects, "ConfigMap")["data"]["Corefile"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn it_is_installed_if_the_spec_says_so_and_kubelets_tell_pods_to_ask_it() {
    let none = json!({});
    assert_eq!(objects_with(&json!({}), &none), None);
    for (cache, address) in [
        (json!({"enabled": false}), "100.64.0.10"),
        (json!({"enabled": true}), "169.254.20.10"),
        (
            json!({"enabled": true, "localIP": "169.254.20.11"}),
            "169.254.20.11",
        ),
    ] {
        let dns = json!({"nodeLocalDNS": cache});
        let full = full_with(&dns, &none);
        for role in [Role::ControlPlane, Role::Node] {
            let config = node_config_of(&full, role, "");
            let config = serde_json::to_string(&config).unwrap();
            let asked = format!("\"clusterDNS\":[\"{address}\"]");
            assert!(config.contains(&asked), "{cache}");
        }
        let installed = cache["enabled"] == true;
        assert_eq!(objects_with(&dns, &none).is_some(), installed);
    }
}

#[test]
fn names_of_the_cluster_go_to_core_dns_and_others_to_the_instances_servers() {
    let text = corefile_with(&json!({"nodeLocalDNS": {"enabled": true}}), &json!({}));
    assert!(text.starts_with("cluster.local:53 {\n"), "{text}");
    let upstream = ".:53 {\n    errors\n    cache 30\n    reload\n    loop\n    bind 169.254.20.10\n    forward . __PILLAR__UPSTREAM__SERVERS__\n";
    assert!(text.contains(upstream), "{text}");
    assert_eq!(
        text.matches("forward . __PILLAR__CLUSTER__DNS__ {").count(),
        3
    );
    let ipvs = json!({"kubeProxy": {"proxyMode": "ipvs"}});
    let text = corefile_with(&json!({"nodeLocalDNS": {"enabled": true}}), &ipvs);
    assert_eq!(text.matches("forward . 100.64.0.10 {").count(), 3);
}

/// Otherwise pods would not find these names any more.
#[test]
fn all_names_go_to_core_dns_where_it_knows_more_than_the_instances_servers() {
    let no_names = json!({"topology": {"dns": {"type": "None"}}});
    for (dns, more) in [
        (
            json!({"stubDomains": {"a.example.com": ["10.0.0.2"]}}),
            json!({}),
        ),
        (json!({"upstreamNameservers": ["10.0.0.2"]}), json!({})),
        (
            json!({"externalCoreFile": ".:53 {\n  whoami\n}\n"}),
            json!({}),
        ),
        (json!({}), no_names),
    ] {
        for (chosen, forwards) in [(Value::Null, true), (json!(false), false)] {
            let mut dns = dns.clone();
            dns["nodeLocalDNS"] = json!({"enabled": true});
            if !chosen.is_null() {
                dns["nodeLocalDNS"]["forwardToKubeDNS"] = chosen;
            }
            let text = corefile_with(&dns, &more);
            assert_eq!(text.contains("UPSTREAM__SERVERS"), !forwards, "{dns}");
        }
    }
}

#[test]
fn its_pods_have_the_settings_of_the_spec() {
    let own = json!({"nodeLocalDNS": {
        "enabled": true, "image": "example.com/cache:v1", "cpuRequest": "30m",
        "memoryRequest": "6Mi", "podAnnotations": {"a": "b"},
        "additionalConfig": "example.com:53 {\n  whoami\n}\n",
    }});
    let objects = objects_with(&own, &json!({})).unwrap();
    let pods = objects.iter().find(|object| object["kind"] == "DaemonSet");
    let pods = &pods.unwrap()["spec"]["template"];
    assert_eq!(pods["metadata"]["annotations"]["a"], "b");
    assert_eq!(
        pods["metadata"]["annotations"]["prometheus.io/port"],
        "9253"
    );
    let container = &pods["spec"]["containers"][0];
    assert_eq!(container["image"], "example.com/cache:v1");
    let requests = json!({"cpu": "30m", "memory": "6Mi"});
    assert_eq!(container["resources"]["requests"], requests);
    let text = corefile_with(&own, &json!({}));
    assert!(text.starts_with("example.com:53 {\n  whoami\n}\ncluster.local:53 {\n"));
    let whole = json!({"nodeLocalDNS": {"enabled": true, "externalCoreFile": ".:53 {\n}\n"}});
    assert_eq!(corefile_with(&whole, &json!({})), ".:53 {\n}\n");
}
