//! cert-manager, as `spec.certManager` wants it.
use crate::addons::find_addon;
use full::{FullSpec, iam};
use serde_json::{Value, json};
use test_support::expanded_with_fields;

fn full_with(settings: &Value) -> FullSpec {
    expanded_with_fields(&json!({ "certManager": settings })).full
}

/// Its objects; `None`: there is no such addon.
fn objects_with(settings: &Value) -> Option<Vec<Value>> {
    find_addon(&full_with(settings), "certmanager.io").map(|addon| addon.objects)
}

/// The pods of its controller.
fn controller_with(settings: &Value) -> Value {
    let objects = objects_with(settings).unwrap();
    let mut objects = objects.iter();
    let of = |object: &&Value| {
        object["kind"] == "Deployment" && object["metadata"]["name"] == "cert-manager"
    };
    objects.find(of).unwrap()["spec"].clone()
}

#[test]
fn it_is_installed_if_the_spec_says_so_and_the_user_does_not_do_it() {
    for settings in [
        json!({}),
        json!({"enabled": false}),
        json!({"enabled": true, "managed": false}),
    ] {
        assert_eq!(objects_with(&settings), None, "{settings}");
    }
    for settings in [
        json!({"enabled": true}),
        json!({"enabled": true, "managed": true}),
    ] {
        let objects = objects_with(&settings).unwrap();
        let kinds = objects.iter().map(|object| &object["kind"]);
        let definitions = kinds.filter(|kind| *kind == "CustomResourceDefinition");
        assert_eq!(definitions.count(), 6);
    }
}

#[test]
fn its_controller_has_the_settings_of_the_spec() {
    let plain = controller_with(&json!({"enabled": true}));
    let pods = &plain["template"]["spec"];
    assert_eq!(pods["hostNetwork"], Value::Null);
    assert_eq!(pods["dnsPolicy"], Value::Null);
    let set = controller_with(&json!({
        "enabled": true, "image": "example.com/own:v1", "defaultIssuer": "letsencrypt",
        "nameservers": ["192.0.2.1"], "featureGates": {"A": true, "B": false},
    }));
    let pods = &set["template"]["spec"];
    assert_eq!(pods["dnsPolicy"], "None");
    assert_eq!(pods["dnsConfig"], json!({"nameservers": ["192.0.2.1"]}));
    let container = &pods["containers"][0];
    assert_eq!(container["image"], "example.com/own:v1");
    let args = container["args"].as_array().unwrap();
    let more = args.iter().skip(6).cloned().collect::<Value>();
    let wanted = [
        "--default-issuer-name=letsencrypt",
        "--default-issuer-kind=ClusterIssuer",
        "--default-issuer-group=cert-manager.io",
        "--feature-gates=A=true",
        "--feature-gates=B=false",
    ];
    assert_eq!(more, json!(wanted));
}

#[test]
fn all_of_its_images_come_from_where_the_spec_wants_them() {
    let full = expanded_with_fields(&json!({
        "certManager": {"enabled": true}, "assets": {"containerProxy": "proxy.example.com"},
    }));
    let manifest = find_addon(&full.full, "certmanager.io").unwrap().manifest;
    assert!(!manifest.contains("quay.io/"), "an image of quay.io");
    let solver = "=proxy.example.com/jetstack/cert-manager-acmesolver:v1.19.5";
    assert!(manifest.contains(solver));
}

/// Only then: the instance's network has the credentials of the whole role.
#[test]
fn it_may_answer_challenges_in_the_zones_of_the_spec_and_reaches_the_credentials_for_it() {
    let settings = json!({"enabled": true, "hostedZoneIDs": ["Z0123456789ABC"]});
    let controller = controller_with(&settings);
    let pods = &controller["template"]["spec"];
    assert_eq!(pods["hostNetwork"], true);
    assert_eq!(pods["dnsPolicy"], "ClusterFirstWithHostNet");
    assert_eq!(controller["strategy"]["rollingUpdate"]["maxSurge"], 0);
    let policy = |settings: &Value| {
        let role = node::config::Role::ControlPlane;
        iam::role_policy(&full_with(settings), role)
            .unwrap()
            .to_string()
    };
    let zone = "arn:aws:route53:::hostedzone/Z0123456789ABC";
    assert!(policy(&settings).contains(zone));
    assert!(policy(&settings).contains("\"_acme-challenge.*\""));
    let unmanaged = json!({"enabled": true, "managed": false, "hostedZoneIDs": ["Z0123456789ABC"]});
    for without in [json!({"enabled": true}), unmanaged] {
        assert!(!policy(&without).contains("_acme-challenge"), "{without}");
    }
}
