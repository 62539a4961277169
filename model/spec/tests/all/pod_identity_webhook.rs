//! The pod identity webhook, as `spec.podIdentityWebhook` wants it.
use crate::addons::{find_addon, find_kind};
use full::addons::{Addon, make_addons};
use serde_json::{Value, json};
use spec::api::{Cluster, InstanceGroup, Object};
use spec::read::read_documents;
use spec::validate::{ClusterInput, validate};
use test_support::expanded_with_fields;

const NAME: &str = "eks-pod-identity-webhook.addons.k8s.io";

fn webhook(settings: &Value) -> Option<Addon> {
    let fields = json!({"podIdentityWebhook": settings, "certManager": {"enabled": true}});
    find_addon(&expanded_with_fields(&fields).full, NAME)
}

#[test]
fn it_is_installed_if_the_spec_says_so() {
    assert_eq!(webhook(&json!({})), None);
    assert_eq!(webhook(&json!({"enabled": false, "replicas": 3})), None);
    let replicas = |settings: Value| {
        let addon = webhook(&settings).unwrap();
        find_kind(&addon.objects, "Deployment")["spec"]["replicas"].clone()
    };
    assert_eq!(replicas(json!({"enabled": true, "replicas": 3})), 3);
    // The sample has one control plane.
    assert_eq!(replicas(json!({"enabled": true})), 1);
}

#[test]
fn it_knows_the_roles_of_service_accounts() {
    let config = |fields: &Value| {
        let addon = find_addon(&expanded_with_fields(fields).full, NAME).unwrap();
        let config = find_kind(&addon.objects, "ConfigMap")["data"]["config"].clone();
        serde_json::from_str::<Value>(config.as_str().unwrap()).unwrap()
    };
    let mut fields = json!({"podIdentityWebhook": {"enabled": true}});
    assert_eq!(config(&fields), json!({}));
    let arns = ["arn:aws:iam::123456789012:policy/mine"];
    fields["iam"] = json!({"serviceAccountExternalPermissions": [
        {"namespace": "shop", "name": "cart", "aws": {"policyARNs": arns}},
    ]});
    fields["serviceAccountIssuerDiscovery"] =
        json!({"discoveryStore": "s3://issuer/a", "enableAWSOIDCProvider": true});
    let role = config(&fields)["shop/cart"].clone();
    assert!(
        role["RoleARN"]
            .as_str()
            .unwrap()
            .contains(":role/cart.shop.sa."),
        "{role}"
    );
    assert_eq!(role["Audience"], "amazonaws.com");
    assert_eq!(role["UseRegionalSTS"], true);
}

/// The webhook stands before the pods of everything, and its own pods need the network, DNS and cert-manager.
#[test]
fn pods_of_addons_start_without_it() {
    let fields = json!({
        "podIdentityWebhook": {"enabled": true}, "certManager": {"enabled": true},
        "metricsServer": {"enabled": true}, "nodeProblemDetector": {"enabled": true},
    });
    let addons = make_addons(&expanded_with_fields(&fields).full).unwrap();
    let webhook = addons.iter().find(|addon| addon.name == NAME).unwrap();
    let hooks = &find_kind(&webhook.objects, "MutatingWebhookConfiguration")["webhooks"];
    let spared = &hooks[0]["objectSelector"]["matchExpressions"][0];
    assert_eq!(
        *spared,
        json!({"key": "kops.k8s.io/managed-by", "operator": "NotIn", "values": ["kops"]})
    );
    let objects = addons.iter().flat_map(|addon| &addon.objects);
    let pods = objects.filter_map(|object| object.pointer("/spec/template/metadata"));
    let pods: Vec<&Value> = pods.collect();
    assert!(pods.len() > 8, "{}", pods.len());
    for pod in pods {
        assert_eq!(pod["labels"]["kops.k8s.io/managed-by"], "kops", "{pod}");
    }
}

#[test]
fn it_needs_cert_manager_and_a_pod() {
    let found = |webhook: Value, manager: Value| -> Vec<String> {
        let (mut cluster, groups) = sample();
        cluster.spec.pod_identity_webhook = serde_json::from_value(webhook).unwrap();
        cluster.spec.cert_manager = serde_json::from_value(manager).unwrap();
        let input = ClusterInput {
            cluster: &cluster,
            instance_groups: &groups,
            ssh_keys: &[],
        };
        let found = validate(&input).into_iter();
        let found = found.filter(|one| one.path.contains("podIdentityWebhook"));
        found.map(|one| one.path).collect()
    };
    let enabled = "spec.podIdentityWebhook.enabled";
    let replicas = "spec.podIdentityWebhook.replicas";
    let manager = json!({"enabled": true});
    assert_eq!(found(json!({"enabled": true}), json!(null)), [enabled]);
    assert_eq!(found(json!({"enabled": true}), manager.clone()), [""; 0]);
    for few in [0, -1] {
        let webhook = json!({"enabled": true, "replicas": few});
        assert_eq!(found(webhook, manager.clone()), [replicas], "{few}");
    }
    let off = json!({"enabled": false, "replicas": 0});
    assert_eq!(found(off, json!(null)), [""; 0]);
}

fn sample() -> (Cluster, Vec<InstanceGroup>) {
    let (mut cluster, mut groups) = (None, Vec::new());
    for document in read_documents("cluster.yaml", test_support::CLUSTER).unwrap() {
        match document.object {
            Object::Cluster(object) => cluster = Some(object),
            Object::InstanceGroup(object) => groups.push(object),
            _ => {}
        }
    }
    (cluster.unwrap(), groups)
}
