//! The AWS IAM authenticator, as `spec.authentication.aws` wants it.
use crate::addons::{find_addon, find_kind};
use crate::host::{config_of, instance_facts};
use full::FullSpec;
use node::config::{InstanceFacts, NodeConfig, Role, host_files};
use node::host::{HostObject, desired_resources};
use serde_json::{Value, json};
use spec::expand::Expanded;
use test_support::expanded_with_fields;

const NAME: &str = "authentication.aws";

fn expanded(aws: &Value) -> Expanded {
    expanded_with_fields(&json!({"authentication": {"aws": aws}}))
}

fn full_with(aws: &Value) -> FullSpec {
    expanded(aws).full
}

fn pods(aws: &Value) -> Value {
    let addon = find_addon(&full_with(aws), NAME).unwrap();
    find_kind(&addon.objects, "DaemonSet")["spec"]["template"]["spec"].clone()
}

fn arguments(aws: &Value) -> Value {
    pods(aws)["containers"][0]["args"].clone()
}

/// Path, mode and owner of what an instance has for it.
fn things(config: &NodeConfig) -> Vec<String> {
    let objects = desired_resources(config, &instance_facts(false)).unwrap();
    let of = objects.iter().map(|object| match &object.thing {
        HostObject::Certificate(one) => serde_json::to_string(one).unwrap(),
        HostObject::Directory(one) => format!("{} {}", one.path, one.mode),
        HostObject::File(one) => format!("{} {}", one.path, one.mode),
        _ => String::new(),
    });
    let of = of.filter(|one| one.contains("aws-iam-authenticator") || one.contains("authn.config"));
    of.collect()
}

#[test]
fn it_is_there_if_the_spec_has_its_section() {
    assert_eq!(find_addon(&full_with(&json!(null)), NAME), None);
    assert!(find_addon(&full_with(&json!({})), NAME).is_some());
}

#[test]
fn its_backends_decide_where_it_finds_identities_and_the_id_of_the_cluster() {
    let rest = [
        "--state-dir=/var/aws-iam-authenticator",
        "--kubeconfig-pregenerated=true",
    ];
    let config = "--config=/etc/aws-iam-authenticator/config.yaml";
    let mounts = |aws: &Value| pods(aws)["volumes"].to_string().contains("\"configMap\"");
    let file = json!({});
    assert_eq!(
        arguments(&file),
        json!(["server", config, rest[0], rest[1]])
    );
    assert!(mounts(&file));
    let id = json!({"clusterID": "mine"});
    let wanted = json!(["server", config, "--cluster-id=mine", rest[0], rest[1]]);
    assert_eq!(arguments(&id), wanted);
    let objects = json!({"backendMode": "CRD"});
    let (of, mode) = ("--cluster-id=a.example.com", "--backend-mode=CRD");
    assert_eq!(
        arguments(&objects),
        json!(["server", of, rest[0], rest[1], mode])
    );
    assert!(!mounts(&objects));
    let both = json!({"backendMode": "MountedFile,CRD"});
    let mode = "--backend-mode=MountedFile,CRD";
    assert_eq!(
        arguments(&both),
        json!(["server", config, rest[0], rest[1], mode])
    );
    assert!(mounts(&both));
}

#[test]
fn it_has_the_settings_of_the_spec() {
    let aws = json!({
        "image": "example.com/own:v1", "backendMode": "CRD", "cpuRequest": "1m", "cpuLimit": "2m",
        "memoryRequest": "3Mi", "memoryLimit": "4Mi",
        "identityMappings": [{"arn": "arn:aws:iam::123456789012:role/dev", "username": "dev:{{SessionName}}", "groups": ["dev"]}],
    });
    let container = pods(&aws)["containers"][0].clone();
    assert_eq!(container["image"], "example.com/own:v1");
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "1m", "memory": "3Mi"}, "limits": {"cpu": "2m", "memory": "4Mi"}})
    );
    let addon = find_addon(&full_with(&aws), NAME).unwrap();
    let mapping = find_kind(&addon.objects, "IAMIdentityMapping");
    assert_eq!(mapping["metadata"]["name"], "iam-identity-mapping-0");
    assert_eq!(mapping["spec"], aws["identityMappings"][0]);
    let plain = pods(&json!({}))["containers"][0]["resources"].clone();
    assert_eq!(
        plain,
        json!({"requests": {"cpu": "10m", "memory": "20Mi"}, "limits": {"memory": "20Mi"}})
    );
}

#[test]
fn the_api_server_asks_the_authenticator_of_its_instance() {
    let config = config_of(&expanded(&json!({})), Role::ControlPlane);
    let pod = &config.control_plane.as_ref().unwrap().static_pods["kube-apiserver"];
    let container = serde_json::to_value(&pod.spec.containers[0]).unwrap();
    let flag = "--authentication-token-webhook-config-file=/etc/kubernetes/authn.config";
    assert!(container["args"].as_array().unwrap().contains(&json!(flag)));
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mount = mounts
        .iter()
        .find(|one| one["mountPath"] == "/etc/kubernetes/authn.config");
    assert_eq!(mount.unwrap()["readOnly"], true);
    let files = host_files(&config, &InstanceFacts::placeholder()).unwrap();
    let file = files
        .iter()
        .find(|file| file.path == "/etc/kubernetes/authn.config");
    let config: Value = serde_saphyr::from_str(&file.unwrap().content).unwrap();
    assert_eq!(
        config["clusters"][0]["cluster"],
        json!({"certificate-authority": "/srv/kubernetes/ca.crt", "server": "https://127.0.0.1:21362/authenticate"})
    );
    let context = &config["contexts"][0];
    assert_eq!(config["current-context"], context["name"]);
    assert_eq!(context["context"]["cluster"], config["clusters"][0]["name"]);
    assert_eq!(context["context"]["user"], config["users"][0]["name"]);
}

/// The pod's user is not root: it must reach the folder and read the key.
#[test]
fn control_planes_have_its_certificate_and_its_user_can_read_the_key() {
    let with = expanded(&json!({}));
    let found = things(&config_of(&with, Role::ControlPlane));
    assert_eq!(found.len(), 3, "{found:#?}");
    let all = found.join("\n");
    let folder = "/srv/kubernetes/aws-iam-authenticator";
    assert!(all.contains(&format!("{folder} 0755")), "{all}");
    assert!(all.contains("/etc/kubernetes/authn.config 0600"), "{all}");
    let certificate = found.iter().find(|one| one.starts_with('{')).unwrap();
    let certificate: Value = serde_json::from_str(certificate).unwrap();
    let pair = &certificate["storage"]["pair"];
    assert_eq!(pair["certificate"], format!("{folder}/cert.pem"));
    assert_eq!(pair["key"], format!("{folder}/key.pem"));
    let user = &pods(&json!({}))["containers"][0]["securityContext"]["runAsUser"];
    assert_eq!(pair["owner"], *user);
    assert_eq!(certificate["names"], json!(["127.0.0.1", "localhost"]));
    assert_eq!(certificate["signer"], "kubernetes-ca");
    assert_eq!(things(&config_of(&with, Role::Node)), [""; 0]);
    let without = expanded(&json!(null));
    assert_eq!(things(&config_of(&without, Role::ControlPlane)), [""; 0]);
}
