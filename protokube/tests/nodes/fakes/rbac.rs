//! What protokube's own user may do by the addon that is applied in every cluster, as the API server's RBAC authorizer decides it.

use super::http::ReceivedRequest;
use node::protokube::{ACCESS_ADDON, GROUP};
use serde_json::{Value, json};
use std::sync::LazyLock;
use test_support::expanded_with_fields;

/// Rules with the namespace in which they count; `None` in all.
static RULES: LazyLock<Vec<(Option<String>, Value)>> = LazyLock::new(|| {
    // All of them: also those for the names of objects.
    let fields = json!({
        "topology": {"dns": {"type": "Public"}}, "dnsZone": "Z0123456789ABC", "externalDns": {"watchIngress": true},
    });
    let addons = full::addons::make_addons(&expanded_with_fields(&fields).full).unwrap();
    let access = addons.iter().find(|addon| addon.name == ACCESS_ADDON);
    let objects = &access.unwrap().objects;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let bindings = objects.iter().filter(|object| !object["roleRef"].is_null());
    let granted = bindings.flat_map(|binding| {
        assert_eq!(binding["subjects"][0]["name"], GROUP);
        let namespace = text(&binding["metadata"]["namespace"]);
        let role = objects.iter().find(|object| {
            object["kind"] == binding["roleRef"]["kind"]
                && object["metadata"]["name"] == binding["roleRef"]["name"]
                && text(&object["metadata"]["namespace"]) == namespace
        });
        let rules = role.unwrap()["rules"].as_array().unwrap().iter();
        rules.map(move |rule| (namespace.clone(), rule.clone()))
    });
    granted.collect()
});

/// A request as the authorizer sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Attributes {
    pub verb: String,
    pub group: String,
    /// With the subresource: `pods/eviction`.
    pub resource: String,
    pub namespace: String,
    pub name: String,
}

impl Attributes {
    /// The attributes of a request for a resource.
    pub fn of_request(request: &ReceivedRequest) -> Self {
        let mut parts = request.path.trim_matches('/').split('/');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let group = match next().as_str() {
            "api" => String::new(),
            _ => next(),
        };
        let _version = next();
        let mut resource = next();
        let mut namespace = String::new();
        let mut name = next();
        let mut rest: Vec<String> = parts.map(str::to_owned).collect();
        if resource == "namespaces" && !rest.is_empty() {
            namespace = name;
            resource = rest.remove(0);
            name = if rest.is_empty() {
                String::new()
            } else {
                rest.remove(0)
            };
        }
        if let Some(subresource) = rest.first() {
            resource = format!("{resource}/{subresource}");
        }
        let verb = match request.method.as_str() {
            "GET" if request.query.contains("watch=true") => "watch",
            "GET" if name.is_empty() => "list",
            "GET" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            other => panic!("nobody sends {other}"),
        };
        Self {
            verb: verb.to_owned(),
            group,
            resource,
            namespace,
            name,
        }
    }

    /// The attributes in a SelfSubjectAccessReview.
    pub fn of_review(review: &Value) -> Self {
        let of = &review["spec"]["resourceAttributes"];
        let text = |name: &str| of[name].as_str().unwrap_or_default().to_owned();
        Self {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            namespace: text("namespace"),
            name: text("name"),
        }
    }

    /// True if a rule of the addon allows it.
    pub fn are_allowed(&self) -> bool {
        RULES.iter().any(|(namespace, rule)| {
            let has = |list: &str, word: &str| {
                let words = rule[list].as_array().unwrap();
                words.iter().any(|one| one == word || one == "*")
            };
            let names = &rule["resourceNames"];
            namespace.as_ref().is_none_or(|own| *own == self.namespace)
                && has("apiGroups", &self.group)
                && has("resources", &self.resource)
                && has("verbs", &self.verb)
                && (names.is_null() || has("resourceNames", &self.name))
        })
    }
}

#[test]
fn the_rules_are_narrow() {
    for (namespace, rule) in RULES.iter() {
        let text = rule.to_string();
        assert!(!text.contains('*'), "{text}");
        for word in [
            "secrets",
            "escalate",
            "bind",
            "impersonate",
            "serviceaccounts",
        ] {
            assert!(!text.contains(word), "{namespace:?} {text}");
        }
    }
    let ask = |verb: &str, group: &str, resource: &str, namespace: &str, name: &str| {
        let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name});
        Attributes::of_review(&json!({"spec": {"resourceAttributes": attributes}})).are_allowed()
    };
    assert!(ask("get", "", "configmaps", "kube-system", "kctl-addons"));
    assert!(!ask("get", "", "configmaps", "kube-system", "coredns"));
    assert!(!ask(
        "update",
        "",
        "configmaps",
        "kube-system",
        "kctl-addons"
    ));
    assert!(ask(
        "approve",
        "certificates.k8s.io",
        "signers",
        "",
        "kubernetes.io/kubelet-serving"
    ));
    assert!(!ask(
        "approve",
        "certificates.k8s.io",
        "signers",
        "",
        "kubernetes.io/kube-apiserver-client"
    ));
    assert!(!ask(
        "update",
        "coordination.k8s.io",
        "leases",
        "kube-system",
        "kube-scheduler"
    ));
}
