//! external-dns, as `spec.externalDns` wants it.
use crate::addons::{find_addon, find_kind};
use full::FullSpec;
use full::iam::role_policy;
use node::config::Role;
use serde_json::{Value, json};
use test_support::expanded_with_fields;

const NAME: &str = "external-dns.addons.k8s.io";

fn full_with(settings: &Value) -> FullSpec {
    let public = json!({"dns": {"type": "Public"}});
    let fields = json!({"externalDns": settings, "topology": public, "dnsZone": "Z0123456789ABC"});
    expanded_with_fields(&fields).full
}

fn deployment(full: &FullSpec) -> Value {
    let addon = find_addon(full, NAME).unwrap();
    find_kind(&addon.objects, "Deployment").clone()
}

fn arguments(settings: &Value) -> Vec<String> {
    let pod = &deployment(&full_with(settings))["spec"]["template"]["spec"];
    serde_json::from_value(pod["containers"][0]["args"].clone()).unwrap()
}

#[test]
fn it_is_installed_if_it_is_the_provider_and_not_disabled() {
    for (settings, installed) in [
        (json!({}), false),
        (json!({"provider": "dns-controller"}), false),
        (json!({"provider": "none"}), false),
        (json!({"provider": "external-dns"}), true),
        (json!({"provider": "external-dns", "disable": true}), false),
        (json!({"provider": "external-dns", "disable": false}), true),
    ] {
        let full = full_with(&settings);
        assert_eq!(find_addon(&full, NAME).is_some(), installed, "{settings}");
        let policy = role_policy(&full, Role::ControlPlane).unwrap().to_string();
        assert_eq!(policy.contains("route53:ListHostedZones"), installed);
    }
}

#[test]
fn its_arguments_are_those_of_kops_and_the_names_of_protokube_stay_protokubes() {
    let all = arguments(&json!({"provider": "external-dns"}));
    let zone = full_with(&json!({})).dns.zone.unwrap().id;
    let (excluded, rest): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|argument| argument.starts_with("--exclude-domains="));
    let wanted = [
        "--provider=aws",
        "--events",
        "--source=ingress",
        "--source=pod",
        "--source=service",
        "--compatibility=kops-dns-controller",
        "--registry=txt",
        "--txt-owner-id=kops-a.example.com",
        &format!("--zone-id-filter={zone}"),
    ];
    assert_eq!(rest, wanted);
    for name in ["api", "api.internal", "kops-controller.internal"] {
        let argument = format!("--exclude-domains={name}.a.example.com");
        assert!(excluded.contains(&argument), "{argument} in {excluded:?}");
    }
}

#[test]
fn it_has_the_settings_of_the_spec() {
    let settings = json!({
        "provider": "external-dns", "watchIngress": false, "watchNamespace": "kube-system",
        "priorityClassName": "mine",
    });
    let all = arguments(&settings);
    assert!(!all.contains(&"--source=ingress".to_owned()), "{all:?}");
    assert!(all.contains(&"--namespace=kube-system".to_owned()));
    let deployment = deployment(&full_with(&settings));
    assert_eq!(
        deployment["spec"]["template"]["spec"]["priorityClassName"],
        "mine"
    );
    assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
}

/// The statements of dns-controller's role in kOps' goldens, which are those of external-dns.
#[test]
fn it_may_change_the_records_of_the_zone_as_in_kops() {
    let full = full_with(&json!({"provider": "external-dns"}));
    let zone = full.dns.zone.as_ref().unwrap().id.clone();
    let policy = role_policy(&full, Role::ControlPlane).unwrap();
    let statements = policy["Statement"].as_array().unwrap();
    let arn = format!("arn:aws:route53:::hostedzone/{zone}");
    let changes = json!({
        "Action": ["route53:ChangeResourceRecordSets", "route53:GetHostedZone", "route53:ListResourceRecordSets"],
        "Effect": "Allow", "Resource": [arn],
    });
    assert!(statements.contains(&changes), "{policy:#}");
    let lists = json!({
        "Action": ["route53:ListHostedZones", "route53:ListTagsForResource"],
        "Effect": "Allow", "Resource": ["*"],
    });
    assert!(statements.contains(&lists), "{policy:#}");
}
