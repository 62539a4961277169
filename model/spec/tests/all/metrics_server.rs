//! metrics-server, as `spec.metricsServer` wants it.
use crate::addons::{find_addon, find_kind};
use full::addons::Addon;
use serde_json::{Value, json};
use spec::api::{Cluster, InstanceGroup, InstanceGroupRole, Object};
use spec::read::read_documents;
use spec::validate::{ClusterInput, validate};
use test_support::{expanded_with, expanded_with_fields};

const NAME: &str = "metrics-server.addons.k8s.io";

fn metrics_server(fields: &Value) -> Option<Addon> {
    find_addon(&expanded_with_fields(fields).full, NAME)
}

fn arguments(addon: &Addon) -> &Value {
    &find_kind(&addon.objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
}

fn has(list: &Value, wanted: &str) -> bool {
    let list = list.as_array().unwrap();
    list.iter().any(|one| one.as_str() == Some(wanted))
}

#[test]
fn it_is_installed_if_the_spec_says_so() {
    for (settings, installed) in [
        (json!({}), false),
        (json!({"enabled": false}), false),
        (json!({"enabled": true, "insecure": true}), true),
    ] {
        let found = metrics_server(&json!({ "metricsServer": settings }));
        assert_eq!(found.is_some(), installed, "{settings}");
    }
}

#[test]
fn api_servers_ask_all_of_its_pods_unless_the_spec_says_otherwise() {
    let routing = |fields: Value| {
        let spec = expanded_with_fields(&fields).cluster.spec;
        spec.kube_api_server.unwrap().enable_aggregator_routing
    };
    let on = json!({"enabled": true, "insecure": true});
    let otherwise = json!({"enableAggregatorRouting": false});
    assert_eq!(routing(json!({})), None);
    assert_eq!(routing(json!({ "metricsServer": on })), Some(true));
    let fields = json!({"metricsServer": on, "kubeAPIServer": otherwise});
    assert_eq!(routing(fields), Some(false));
}

#[test]
fn it_verifies_kubelets_unless_some_have_certificates_of_the_user() {
    let verifies = |fields: Value| {
        let addon = metrics_server(&fields).unwrap();
        let (authority, none) = (
            "--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
            "--kubelet-insecure-tls",
        );
        assert!(has(arguments(&addon), authority) != has(arguments(&addon), none));
        has(arguments(&addon), authority)
    };
    let on = json!({"enabled": true, "insecure": true});
    assert!(verifies(json!({ "metricsServer": on })));
    for kubelet in ["kubelet", "masterKubelet"] {
        let own = json!({"tlsCertFile": "/mine.crt", "tlsPrivateKeyFile": "/mine.key"});
        assert!(
            !verifies(json!({"metricsServer": on, kubelet: own})),
            "{kubelet}"
        );
    }
}

#[test]
fn api_servers_verify_its_certificate_if_cert_manager_issues_one() {
    let insecure = metrics_server(&json!({"metricsServer": {"enabled": true}})).unwrap();
    let service = find_kind(&insecure.objects, "APIService");
    assert_eq!(service["spec"]["insecureSkipTLSVerify"], true);
    assert!(find_kind(&insecure.objects, "Certificate").is_null());
    let fields = json!({"metricsServer": {"enabled": true, "insecure": false}});
    let secure = metrics_server(&fields).unwrap();
    let service = find_kind(&secure.objects, "APIService");
    assert!(service["spec"].get("insecureSkipTLSVerify").is_none());
    assert_eq!(
        service["metadata"]["annotations"]["cert-manager.io/inject-ca-from"],
        "kube-system/metrics-server"
    );
    assert_eq!(
        find_kind(&secure.objects, "Certificate")["spec"]["secretName"],
        "metrics-server-tls"
    );
    assert!(has(arguments(&secure), "--tls-cert-file=/srv/tls.crt"));
    assert!(!has(arguments(&secure), "--cert-dir=/tmp"));
}

#[test]
fn without_cert_manager_the_spec_must_say_that_nobody_verifies_it() {
    let refused = |fields: Value| {
        let sample = test_support::CLUSTER;
        let mut objects = read_documents("a.yaml", sample).unwrap().into_iter();
        let cluster = objects.find_map(|document| match document.object {
            Object::Cluster(cluster) => Some(cluster),
            _ => None,
        });
        let mut cluster = serde_json::to_value(cluster.unwrap()).unwrap();
        for (name, value) in fields.as_object().unwrap() {
            cluster["spec"][name] = value.clone();
        }
        let cluster: Cluster = serde_json::from_value(cluster).unwrap();
        let groups: Vec<InstanceGroup> = Vec::new();
        let problems = validate(&ClusterInput {
            cluster: &cluster,
            instance_groups: &groups,
            ssh_keys: &[],
        });
        let mut paths = problems.iter().map(|problem| problem.path.as_str());
        paths.any(|path| path == "spec.metricsServer.insecure")
    };
    let manager = json!({"enabled": true});
    for (settings, manager, wanted) in [
        (json!({"enabled": true}), json!({}), true),
        (json!({"enabled": true, "insecure": false}), json!({}), true),
        (json!({"enabled": true, "insecure": true}), json!({}), false),
        (json!({"enabled": false}), json!({}), false),
        (json!({"enabled": true}), manager.clone(), false),
        (json!({"enabled": true, "insecure": false}), manager, false),
    ] {
        let fields = json!({"metricsServer": settings, "certManager": manager});
        assert_eq!(refused(fields.clone()), wanted, "{fields}");
    }
}

/// Its token reads the pods of all namespaces.
#[test]
fn its_pods_run_on_control_planes_whatever_their_taints() {
    let expanded = expanded_with(|cluster, groups| {
        let on = json!({"enabled": true, "insecure": true});
        cluster.spec.metrics_server = serde_json::from_value(on).unwrap();
        let mut groups = groups.iter_mut();
        let group = groups.find(|group| group.spec.role == Some(InstanceGroupRole::ControlPlane));
        group.unwrap().spec.taints = vec!["dedicated=x:NoSchedule".to_owned()];
    });
    let addon = find_addon(&expanded.full, NAME).unwrap();
    let pods = &find_kind(&addon.objects, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(
        pods["nodeSelector"]["node-role.kubernetes.io/control-plane"],
        ""
    );
    let keys = pods["tolerations"].as_array().unwrap().iter();
    let keys: Vec<&Value> = keys.map(|one| &one["key"]).collect();
    assert_eq!(
        keys,
        [
            "node-role.kubernetes.io/control-plane",
            "node-role.kubernetes.io/master",
            "dedicated"
        ]
    );
}
