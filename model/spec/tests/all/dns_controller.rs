//! Names of Services, Ingresses and pods, which protokube publishes as kOps' dns-controller does: what `spec.externalDns` lets it do.
use crate::addons::find_addon;
use full::FullSpec;
use full::iam::role_policy;
use node::config::Role;
use node::protokube::ACCESS_ADDON;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use test_support::expanded_with_fields;

const CHANGES: &str = "route53:ChangeResourceRecordSets";

fn full_with(settings: &Value, dns: &str) -> FullSpec {
    let topology = json!({"dns": {"type": dns}});
    let mut fields = json!({"externalDns": settings, "topology": topology});
    if dns != "None" {
        fields["dnsZone"] = json!("Z0123456789ABC");
    }
    expanded_with_fields(&fields).full
}

/// Statements that let control planes change records.
fn change_statements(full: &FullSpec) -> Vec<Value> {
    let policy = role_policy(full, Role::ControlPlane).unwrap();
    let all = policy["Statement"].as_array().unwrap().clone();
    all.into_iter()
        .filter(|one| one["Action"].to_string().contains(CHANGES))
        .collect()
}

/// Verbs of protokube's user for a kind of object, in all namespaces.
fn allowed_verbs(full: &FullSpec, resource: &str) -> Vec<String> {
    let access = find_addon(full, ACCESS_ADDON).unwrap();
    let roles = access.objects.iter();
    let roles = roles.filter(|one| one["kind"] == "ClusterRole");
    let rules = roles.flat_map(|role| role["rules"].as_array().unwrap());
    let rules = rules.filter(|rule| rule["resources"] == json!([resource]));
    let verbs = rules.flat_map(|rule| rule["verbs"].as_array().unwrap());
    verbs
        .map(|verb| verb.as_str().unwrap().to_owned())
        .collect()
}

fn names_of(list: &Value) -> BTreeSet<&str> {
    let names = list.as_array().unwrap().iter();
    names.map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn it_is_on_in_every_cluster_with_a_zone_as_in_kops_and_has_permissions_only_then() {
    for (settings, dns, names, ingresses) in [
        (json!({}), "Public", true, false),
        (json!({}), "Private", true, false),
        (json!({}), "None", false, false),
        (json!({"provider": "dns-controller"}), "Public", true, false),
        (json!({"watchIngress": true}), "Public", true, true),
        (json!({"watchIngress": false}), "Public", true, false),
        (json!({"watchNamespace": "shop"}), "Public", true, false),
        (
            json!({"disable": true, "watchIngress": true}),
            "Public",
            false,
            false,
        ),
        (json!({"provider": "none"}), "Public", false, false),
        (json!({"provider": "external-dns"}), "Public", false, false),
    ] {
        let full = full_with(&settings, dns);
        let any_name = |one: &Value| !one["Condition"]["ForAllValues:StringNotEquals"].is_null();
        let any_name = change_statements(&full).iter().any(any_name);
        assert_eq!(any_name, names, "{settings} {dns}");
        let listed = ["list", "watch"];
        let wanted: &[&str] = if names { &listed } else { &[] };
        assert_eq!(allowed_verbs(&full, "services"), wanted, "{settings} {dns}");
        let wanted: &[&str] = if ingresses { &listed } else { &[] };
        assert_eq!(
            allowed_verbs(&full, "ingresses"),
            wanted,
            "{settings} {dns}"
        );
        let watched = allowed_verbs(&full, "pods").contains(&"watch".to_owned());
        assert_eq!(watched, names, "{settings} {dns}");
    }
}

#[test]
fn it_may_change_records_of_three_types_of_any_name_but_those_of_the_cluster() {
    let full = full_with(&json!({}), "Public");
    let statements = change_statements(&full);
    let [of_cluster, of_objects] = statements.as_slice() else {
        panic!("{statements:?}");
    };
    let key = |what: &str| format!("{CHANGES}{what}");
    let own = &of_cluster["Condition"]["ForAllValues:StringEquals"][key("NormalizedRecordNames")];
    let conditions = &of_objects["Condition"];
    let others = &conditions["ForAllValues:StringNotEquals"][key("NormalizedRecordNames")];
    // kctl writes this one, and no instance may change it.
    let mut kept = vec![json!("bastion.a.example.com")];
    kept.extend(own.as_array().unwrap().clone());
    assert_eq!(names_of(others), names_of(&json!(kept)));
    let equal = &conditions["ForAllValues:StringEquals"];
    assert_eq!(equal[key("RecordTypes")], json!(["A", "AAAA", "CNAME"]));
    assert_eq!(equal[key("Actions")], json!(["DELETE", "UPSERT"]));
    assert_eq!(of_objects["Resource"], of_cluster["Resource"]);
}
