//! Parts of cilium that a spec turns on: addresses of the VPC, Ingresses, Gateways, IPsec.
use crate::addons::{find_addon, find_kind};
use cloud::Cloud;
use full::FullSpec;
use full::addons::{add_ipsec_key, make_addons};
use full::iam::role_policy;
use full::objects::desired_objects;
use node::config::{InstanceFacts, Role, VPC_INTERFACES, host_files};
use node::secret::Secret;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use test_support::{expanded_with_fields, node_config_of};

const NAME: &str = "networking.cilium.io";

/// The sample with cilium, in the place of kube-proxy.
fn cilium(settings: &Value) -> FullSpec {
    with_cilium(settings, &json!({}))
}

fn with_cilium(settings: &Value, fields: &Value) -> FullSpec {
    let mut cilium = json!({"enableNodePort": true});
    merge(&mut cilium, settings);
    let mut all = json!({"networking": {"cilium": cilium}, "kubeProxy": {"enabled": false}});
    merge(&mut all, fields);
    expanded_with_fields(&all).full
}

fn merge(into: &mut Value, more: &Value) {
    let more = more.as_object().unwrap().clone();
    into.as_object_mut().unwrap().extend(more);
}

fn objects(full: &FullSpec) -> Vec<Value> {
    find_addon(full, NAME).unwrap().objects
}

/// The entries of cilium's ConfigMap.
fn settings(full: &FullSpec) -> Value {
    find_kind(&objects(full), "ConfigMap")["data"].clone()
}

fn names_of(full: &FullSpec, kind: &str) -> Vec<String> {
    let objects = objects(full).into_iter();
    let of_kind = objects.filter(|object| object["kind"] == kind);
    let name = |object: Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    of_kind.map(name).collect()
}

/// Of its only container.
fn operator_variables(full: &FullSpec) -> Value {
    let objects = objects(full);
    let operator = find_kind(&objects, "Deployment");
    operator["spec"]["template"]["spec"]["containers"][0]["env"].clone()
}

/// An update replaces the operator at once, and an agent with its instance only.
#[test]
fn agents_use_the_proxy_of_their_node_and_the_operator_does_not() {
    let api_of = |full: &FullSpec, kind: &str| -> Vec<(Value, Value)> {
        let pods = find_kind(&objects(full), kind)["spec"]["template"]["spec"].clone();
        let containers = ["initContainers", "containers"].into_iter();
        let containers = containers.filter_map(|list| pods[list].as_array().cloned());
        let variable = |container: &Value, name: &str| {
            let mut all = container["env"].as_array()?.iter();
            Some(all.find(|one| one["name"] == name)?["value"].clone())
        };
        let api = containers.flatten().filter_map(|container| {
            let host = variable(&container, "KUBERNETES_SERVICE_HOST")?;
            Some((host, variable(&container, "KUBERNETES_SERVICE_PORT")?))
        });
        api.collect()
    };
    let named = (json!("api.internal.a.example.com"), json!("443"));
    let own = (json!("127.0.0.1"), json!("6443"));
    let plain = cilium(&json!({}));
    let proxied = with_cilium(&json!({}), &json!({"api": {"nodeProxy": {}}}));
    assert_eq!(api_of(&plain, "DaemonSet"), vec![named.clone(); 3]);
    assert_eq!(api_of(&proxied, "DaemonSet"), vec![own; 3]);
    for full in [&plain, &proxied] {
        assert_eq!(api_of(full, "Deployment"), std::slice::from_ref(&named));
    }
}

#[test]
fn pods_have_addresses_of_interfaces_or_of_a_range() {
    let tunnel = settings(&cilium(&json!({})));
    let vpc = settings(&cilium(&json!({"ipam": "eni"})));
    for (entry, ranges, interfaces) in [
        ("ipam", json!("kubernetes"), json!("eni")),
        ("routing-mode", json!("tunnel"), json!("native")),
        ("tunnel-protocol", json!("vxlan"), Value::Null),
        ("enable-bpf-masquerade", json!("false"), json!("true")),
        ("enable-ipv4-masquerade", json!("true"), json!("true")),
        ("enable-endpoint-routes", Value::Null, json!("true")),
        (
            "auto-create-cilium-node-resource",
            Value::Null,
            json!("true"),
        ),
    ] {
        assert_eq!(tunnel[entry], ranges, "{entry}");
        assert_eq!(vpc[entry], interfaces, "{entry}");
    }
}

/// `kctl delete cluster` finds what is left by its tags, and the operators of two clusters in one account leave each other's alone.
#[test]
fn interfaces_have_the_clusters_tags() {
    let labels = json!({"cloudLabels": {"team": "a,b"}});
    let vpc = settings(&with_cilium(&json!({"ipam": "eni"}), &labels));
    let tags_of =
        |entry: &str| -> Value { serde_json::from_str(vpc[entry].as_str().unwrap()).unwrap() };
    let name = "a.example.com";
    let owner = "kubernetes.io/cluster/a.example.com";
    assert_eq!(
        tags_of("eni-tags"),
        json!({"KubernetesCluster": name, owner: "owned", "team": "a,b"})
    );
    let found_again = json!({"io.cilium/cilium-managed": "true", "io.cilium/cluster-name": name});
    assert_eq!(tags_of("eni-gc-tags"), found_again);
}

/// The operator runs on control planes only; roles of service accounts take the permissions from the instances.
#[test]
fn the_operator_alone_changes_interfaces() {
    const ACTION: &str = "ec2:AssignPrivateIpAddresses";
    let policy = |full: &FullSpec, role| role_policy(full, role).unwrap_or_default().to_string();
    let vpc = cilium(&json!({"ipam": "eni"}));
    assert!(policy(&vpc, Role::ControlPlane).contains(ACTION));
    assert!(!policy(&vpc, Role::Node).contains(ACTION));
    assert!(!policy(&cilium(&json!({})), Role::ControlPlane).contains(ACTION));
    assert!(operator_variables(&vpc).to_string().contains("AWS_REGION"));

    let roles = json!({
        "iam": {"useServiceAccountExternalPermissions": true},
        "serviceAccountIssuerDiscovery": {"discoveryStore": "s3://issuer/a", "enableAWSOIDCProvider": true},
    });
    let full = with_cilium(&json!({"ipam": "eni"}), &roles);
    assert!(!policy(&full, Role::ControlPlane).contains(ACTION));
    let desired = desired_objects(&full, &BTreeMap::new(), Vec::new());
    let role = desired.iter().find_map(|one| match one {
        Cloud::IamRolePolicy(one) => one
            .policy_name
            .starts_with("cilium-operator.kube-system.sa.")
            .then(|| one.policy_document.to_string()),
        _ => None,
    });
    assert!(role.unwrap().contains(ACTION));
    let variables = operator_variables(&full).to_string();
    assert!(variables.contains("AWS_WEB_IDENTITY_TOKEN_FILE"));
}

/// Whatever changes an interface needs the cluster's tag on it.
#[test]
fn interfaces_of_others_stay_as_they_are() {
    let vpc = cilium(&json!({"ipam": "eni"}));
    let policy: Value = role_policy(&vpc, Role::ControlPlane).unwrap();
    let statements = policy["Statement"].as_array().unwrap().iter();
    let changing = statements.filter(|one| one.to_string().contains("NetworkInterface\""));
    for one in changing {
        let tagged = one["Condition"].to_string().contains("KubernetesCluster");
        let resources = one["Resource"].to_string();
        let place = resources.contains(":subnet/*") && !resources.contains(":network-interface/*");
        assert!(tagged || place, "{one}");
    }
}

/// Where pods have addresses of the VPC, it is the operator's word which are whose.
#[test]
fn agents_are_limited_to_addresses_of_their_node() {
    let of_all = "cilium.networking.kctl.dev";
    let policies = |settings: Value| names_of(&cilium(&settings), "ValidatingAdmissionPolicy");
    assert_eq!(
        policies(json!({})),
        [
            of_all,
            "ranges.cilium.networking.kctl.dev",
            "instances.cilium.networking.kctl.dev"
        ]
    );
    let in_vpc = json!({"ipam": "eni"});
    assert_eq!(
        policies(in_vpc.clone()),
        [
            of_all,
            "interfaces.cilium.networking.kctl.dev",
            "endpoints.cilium.networking.kctl.dev",
            "instances.cilium.networking.kctl.dev"
        ]
    );
    // The status of a CiliumNode is the operator's.
    let objects = objects(&cilium(&in_vpc));
    let mut roles = objects.iter();
    let agents = roles
        .find(|one| one["kind"] == "ClusterRole" && one["metadata"]["name"] == "cilium")
        .unwrap();
    assert!(!agents.to_string().contains("ciliumnodes/status"));
}

#[test]
fn instances_leave_its_interfaces_alone() {
    for (ipam, unmanaged) in [("kubernetes", false), ("eni", true)] {
        let config = node_config_of(&cilium(&json!({"ipam": ipam})), Role::Node, "");
        let unit = config.units.iter().any(|unit| unit.name == VPC_INTERFACES);
        assert_eq!(unit, unmanaged, "{ipam}");
        assert_eq!(config.networking.attaches_interfaces(), unmanaged, "{ipam}");
        // Of the addresses of all interfaces only the first is the Node's.
        let host = InstanceFacts::placeholder();
        let files = host_files(&config, &host).unwrap().into_iter();
        let mut flags = files.filter(|file| file.path == "/etc/sysconfig/kubelet");
        let flags = flags.next().unwrap().content;
        assert_eq!(flags.contains("--node-ip=<address>"), unmanaged, "{flags}");
    }
}

/// kube-proxy would take them for strangers, and hide who they are.
#[test]
fn kube_proxy_does_not_masquerade_pods_of_the_vpc() {
    let range = |ipam: &str| {
        let fields = json!({"networking": {"cilium": {"ipam": ipam}}});
        let spec = expanded_with_fields(&fields).cluster.spec;
        spec.kube_proxy.unwrap().cluster_cidr
    };
    assert_eq!(range("eni"), None);
    assert_eq!(range("kubernetes"), Some("100.96.0.0/11".into()));
}

/// The rules of the operator's ClusterRole.
fn operator_rules(full: &FullSpec) -> String {
    let objects = objects(full);
    let mut roles = objects.iter();
    let role = roles
        .find(|one| one["kind"] == "ClusterRole" && one["metadata"]["name"] == "cilium-operator");
    role.unwrap()["rules"].to_string()
}

#[test]
fn ingresses_have_a_class_and_those_that_share_a_load_balancer_its_service() {
    let usual = cilium(&json!({}));
    assert_eq!(settings(&usual)["enable-ingress-controller"], Value::Null);
    assert!(!operator_rules(&usual).contains("ingresses"));
    assert_eq!(names_of(&usual, "IngressClass"), Vec::<String>::new());

    let dedicated = cilium(&json!({"ingress": {}}));
    let said = settings(&dedicated);
    for (entry, value) in [
        ("enable-envoy-config", "true"),
        ("enable-ingress-controller", "true"),
        ("enable-ingress-secrets-sync", "true"),
        ("enforce-ingress-https", "true"),
        ("ingress-default-lb-mode", "dedicated"),
        ("ingress-secrets-namespace", "cilium-secrets"),
        ("ingress-shared-lb-service-name", "cilium-ingress"),
    ] {
        assert_eq!(said[entry], value, "{entry}");
    }
    assert_eq!(names_of(&dedicated, "IngressClass"), ["cilium"]);
    // A load balancer that nobody asked for would cost.
    assert_eq!(names_of(&dedicated, "Service"), Vec::<String>::new());
    let rules = operator_rules(&dedicated);
    assert!(rules.contains("ingresses/status") && !rules.contains("gateways"));

    let shared = json!({"ingress": {"defaultLoadBalancerMode": "shared"}});
    let named = json!({"ingress": {
        "enforceHttps": false,
        "loadBalancerAnnotationPrefixes": "a.example.com",
        "sharedLoadBalancerServiceName": "front",
    }});
    assert_eq!(names_of(&cilium(&shared), "Service"), ["cilium-ingress"]);
    let named = cilium(&named);
    assert_eq!(names_of(&named, "Service"), ["front"]);
    assert_eq!(names_of(&named, "EndpointSlice"), ["front"]);
    let said = settings(&named);
    assert_eq!(said["enforce-ingress-https"], "false");
    assert_eq!(said["ingress-lb-annotation-prefixes"], "a.example.com");
    assert_eq!(said["ingress-shared-lb-service-name"], "front");
}

/// The network does not wait for definitions that the user installs.
#[test]
fn the_class_of_gateways_is_an_addon_of_its_own() {
    const GATEWAYS: &str = "gateway.networking.cilium.io";
    assert!(find_addon(&cilium(&json!({})), GATEWAYS).is_none());
    let off = cilium(&json!({"gatewayAPI": {"enabled": false}}));
    assert!(find_addon(&off, GATEWAYS).is_none());
    let full = cilium(&json!({"gatewayAPI": {"enableSecretsSync": false}}));
    let class = find_addon(&full, GATEWAYS).unwrap().objects;
    let class = find_kind(&class, "GatewayClass");
    assert_eq!(
        class["spec"]["controllerName"],
        "io.cilium/gateway-controller"
    );
    let said = settings(&full);
    for (entry, value) in [
        ("enable-envoy-config", "true"),
        ("enable-gateway-api", "true"),
        ("enable-gateway-api-secrets-sync", "false"),
        ("bpf-lb-sock-hostns-only", "true"),
    ] {
        assert_eq!(said[entry], value, "{entry}");
    }
    let rules = operator_rules(&full);
    assert!(rules.contains("gateways/status") && !rules.contains("ingresses"));
}

/// Another key is another manifest, and nothing of instances.
#[test]
fn the_key_of_ipsec_is_a_secret_that_no_plan_shows() {
    let full = cilium(&json!({"enableEncryption": true}));
    let said = settings(&full);
    assert_eq!(said["enable-ipsec"], "true");
    assert_eq!(said["ipsec-key-file"], "/etc/ipsec/keys");
    assert_eq!(said["enable-wireguard"], Value::Null);
    let objects = objects(&full);
    let agent = find_kind(&objects, "DaemonSet").to_string();
    assert!(agent.contains("cilium-ipsec-keys"));

    let key = Secret::new("3+ rfc4106(gcm(aes)) c0ffee 128");
    let mut addons = make_addons(&full).unwrap();
    add_ipsec_key(&full, &mut addons, Some(&key)).unwrap();
    let at = |name: &str| addons.iter().position(|one| one.name == name);
    let own = at("ipsec.networking.cilium.io").unwrap();
    assert!(own < at(NAME).unwrap());
    let secret = &addons[own].objects[0];
    let content = "MysgcmZjNDEwNihnY20oYWVzKSkgYzBmZmVlIDEyOA==";
    assert_eq!(secret["data"]["keys"], content);
    let shown = addons[own].shown.clone().unwrap();
    assert!(!shown.contains(content), "{shown}");

    // Who does not encrypt with it does not get it.
    let wireguard = cilium(&json!({"enableEncryption": true, "encryptionType": "wireguard"}));
    let mut addons = make_addons(&wireguard).unwrap();
    let count = addons.len();
    add_ipsec_key(&wireguard, &mut addons, Some(&key)).unwrap();
    assert_eq!(addons.len(), count);
}
