//! A completed spec runs the control plane with the command lines that kOps gives it.
use full::FullSpec;
use node::components;
use node::config::{InstanceFacts, NodeConfig, Role, etcd_pod};
use node::manifests::{self, Pod};
use serde_json::{Value, json};
use spec::api::kube_apiserver::KubeAPIServerConfig;
use std::collections::BTreeSet;
use test_support::trace::{LeafType, type_leaves};
use test_support::{
    expanded_with, expanded_with_fields, full_spec, node_config_of, try_expanded_with,
};

/// kOps' flags of plain AWS clusters, and --kubelet-certificate-authority, which is ours; `NAME` being the cluster's name. One flag a line.
const API_SERVER: &str = "
--allow-privileged=true
--anonymous-auth=false
--api-audiences=kubernetes.svc.default
--apiserver-count=1
--authorization-mode=Node,RBAC
--bind-address=0.0.0.0
--client-ca-file=/srv/kubernetes/ca.crt
--enable-admission-plugins=DefaultStorageClass,DefaultTolerationSeconds,LimitRanger,MutatingAdmissionWebhook,NamespaceLifecycle,NodeRestriction,ResourceQuota,RuntimeClass,ServiceAccount,ValidatingAdmissionPolicy,ValidatingAdmissionWebhook
--etcd-cafile=/srv/kubernetes/kube-apiserver/etcd-ca.crt
--etcd-certfile=/srv/kubernetes/kube-apiserver/etcd-client.crt
--etcd-keyfile=/srv/kubernetes/kube-apiserver/etcd-client.key
--etcd-servers-overrides=/events#https://127.0.0.1:4002
--etcd-servers=https://127.0.0.1:4001
--kubelet-certificate-authority=/srv/kubernetes/ca.crt
--kubelet-client-certificate=/srv/kubernetes/kube-apiserver/kubelet-api.crt
--kubelet-client-key=/srv/kubernetes/kube-apiserver/kubelet-api.key
--kubelet-preferred-address-types=InternalIP,Hostname,ExternalIP
--proxy-client-cert-file=/srv/kubernetes/kube-apiserver/apiserver-aggregator.crt
--proxy-client-key-file=/srv/kubernetes/kube-apiserver/apiserver-aggregator.key
--requestheader-allowed-names=aggregator
--requestheader-client-ca-file=/srv/kubernetes/kube-apiserver/apiserver-aggregator-ca.crt
--requestheader-extra-headers-prefix=X-Remote-Extra-
--requestheader-group-headers=X-Remote-Group
--requestheader-username-headers=X-Remote-User
--secure-port=443
--service-account-issuer=https://api.internal.NAME
--service-account-jwks-uri=https://api.internal.NAME/openid/v1/jwks
--service-account-key-file=/srv/kubernetes/kube-apiserver/service-account.pub
--service-account-signing-key-file=/srv/kubernetes/kube-apiserver/service-account.key
--service-cluster-ip-range=100.64.0.0/13
--storage-backend=etcd3
--tls-cert-file=/srv/kubernetes/kube-apiserver/server.crt
--tls-private-key-file=/srv/kubernetes/kube-apiserver/server.key
--v=2
";

const CONTROLLER_MANAGER: &str = "
--allocate-node-cidrs=true
--attach-detach-reconcile-sync-period=1m0s
--authentication-kubeconfig=/var/lib/kube-controller-manager/kubeconfig
--authorization-kubeconfig=/var/lib/kube-controller-manager/kubeconfig
--cloud-provider=external
--cluster-cidr=100.96.0.0/11
--cluster-name=NAME
--cluster-signing-cert-file=/srv/kubernetes/kube-controller-manager/ca.crt
--cluster-signing-key-file=/srv/kubernetes/kube-controller-manager/ca.key
--configure-cloud-routes=false
--flex-volume-plugin-dir=/usr/libexec/kubernetes/kubelet-plugins/volume/exec/
--kubeconfig=/var/lib/kube-controller-manager/kubeconfig
--leader-elect=true
--root-ca-file=/srv/kubernetes/ca.crt
--service-account-private-key-file=/srv/kubernetes/kube-controller-manager/service-account.key
--tls-cert-file=/srv/kubernetes/kube-controller-manager/server.crt
--tls-private-key-file=/srv/kubernetes/kube-controller-manager/server.key
--use-service-account-credentials=true
--v=2
";

const SCHEDULER: &str = "
--authentication-kubeconfig=/var/lib/kube-scheduler/kubeconfig
--authentication-skip-lookup=false
--authentication-tolerate-lookup-failure=false
--authorization-kubeconfig=/var/lib/kube-scheduler/kubeconfig
--config=/var/lib/kube-scheduler/config.yaml
--leader-elect=true
--tls-cert-file=/srv/kubernetes/kube-scheduler/server.crt
--tls-private-key-file=/srv/kubernetes/kube-scheduler/server.key
--v=2
";

const PROXY: &str = "
--cluster-cidr=100.96.0.0/11
--conntrack-max-per-core=131072
--hostname-override=i-1
--kubeconfig=/var/lib/kube-proxy/kubeconfig
--master=https://127.0.0.1
--oom-score-adj=-998
--v=2
";

const KUBELET: &str = "
--cloud-provider=external
--config=/var/lib/kubelet/kubelet.conf
--image-credential-provider-bin-dir=/usr/local/bin
--image-credential-provider-config=/var/lib/kubelet/credential-provider.conf
--kubeconfig=/var/lib/kubelet/kubeconfig
--runtime-request-timeout=15m0s
--v=2
";

fn assert_same_arguments(arguments: &[String], expected: &str) {
    let expected = expected.replace("NAME", "a.example.com");
    let mut expected: Vec<&str> = expected.trim().lines().collect();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    expected.sort_unstable();
    arguments.sort_unstable();
    assert_eq!(arguments, expected);
}

fn proxy_pod(full: &FullSpec) -> Pod {
    manifests::build_proxy_pod(
        full.kube_proxy.as_ref().unwrap(),
        "https://127.0.0.1",
        &InstanceFacts {
            instance_id: "i-1".into(),
            ..InstanceFacts::placeholder()
        },
    )
}

fn control_plane(full: &FullSpec) -> NodeConfig {
    node_config_of(full, Role::ControlPlane, "")
}

fn member_pod(full: &FullSpec, name: &str) -> Pod {
    let config = control_plane(full);
    let data = "/mnt/master-vol-1/var/etcd/data";
    etcd_pod(&config, name, "a", &components::EtcdStart::Existing, data).unwrap()
}

fn all_pods(full: &FullSpec) -> Vec<Pod> {
    vec![
        full::manifests::api_server_pod(full),
        full::manifests::controller_manager_pod(full),
        full::manifests::scheduler_pod(full),
        proxy_pod(full),
        member_pod(full, "main"),
        member_pod(full, "events"),
    ]
}

#[test]
fn command_lines_are_kops() {
    let full = full_spec();
    let pods = all_pods(&full);
    for (pod, expected) in pods
        .iter()
        .zip([API_SERVER, CONTROLLER_MANAGER, SCHEDULER, PROXY])
    {
        assert_same_arguments(&pod.spec.containers[0].args, expected);
    }
    let kubelet = control_plane(&full).kubelet;
    assert_same_arguments(&kubelet.flags.arguments(), KUBELET);
}

#[test]
fn kubelets_file_is_kops_but_for_certificates_that_it_renews_itself() {
    let file = control_plane(&full_spec()).kubelet.config;
    let expected = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": "/srv/kubernetes/ca.crt" },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "systemd",
        "cgroupRoot": "/",
        "clusterDNS": ["100.64.0.10"],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "crashLoopBackOff": { "maxContainerRestartPeriod": "1m0s" },
        "enableDebuggingHandlers": true,
        "evictionHard": {
            "imagefs.available": "10%", "imagefs.inodesFree": "5%", "memory.available": "100Mi",
            "nodefs.available": "10%", "nodefs.inodesFree": "5%",
        },
        "protectKernelDefaults": true,
        "registerWithTaints": [{ "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" }],
        "rotateCertificates": true,
        "serverTLSBootstrap": true,
        "shutdownGracePeriod": "30s",
        "shutdownGracePeriodCriticalPods": "10s",
        "staticPodPath": "/etc/kubernetes/manifests",
        "volumePluginDir": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    });
    assert_eq!(file, expected);
}

#[test]
fn manifests_read_back_as_they_were() {
    for pod in all_pods(&full_spec()) {
        let yaml = node::yaml::to_yaml(&pod).unwrap();
        let read: Pod = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read, pod, "{yaml}");
    }
}

#[test]
fn every_mount_has_its_volume_and_every_volume_is_mounted_once() {
    for pod in all_pods(&full_spec()) {
        let container = &pod.spec.containers[0];
        let mut volumes: Vec<&str> = pod
            .spec
            .volumes
            .iter()
            .map(|volume| volume.name.as_str())
            .collect();
        let mut mounts: Vec<&str> = container
            .volume_mounts
            .iter()
            .map(|mount| mount.name.as_str())
            .collect();
        volumes.sort_unstable();
        mounts.sort_unstable();
        assert_eq!(mounts, volumes, "{}", pod.metadata.name);
        volumes.dedup();
        assert_eq!(mounts, volumes, "{}", pod.metadata.name);
        for name in volumes {
            let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.len() < 64 && name.chars().all(label), "{name}");
        }
    }
}

#[test]
fn every_pod_sees_the_tools_of_the_release_and_cannot_change_them() {
    for pod in all_pods(&full_spec()) {
        let name = &pod.metadata.name;
        let mut mounts = pod.spec.containers[0].volume_mounts.iter();
        let tools = mounts.find(|mount| mount.mount_path == "/opt/kctl/tools/current");
        let tools = tools.unwrap_or_else(|| panic!("{name} has no tools"));
        assert!(tools.read_only, "{name}");
        let mut volumes = pod.spec.volumes.iter();
        let volume = volumes.find(|volume| volume.name == tools.name).unwrap();
        assert_eq!(volume.host_path.path, tools.mount_path);
        // Without it containerd would make an empty folder where nodeup makes the link.
        assert_eq!(volume.host_path.kind.as_deref(), Some("Directory"));
    }
}

#[test]
fn every_file_a_flag_names_is_mounted() {
    for pod in all_pods(&full_spec()) {
        let container = &pod.spec.containers[0];
        let values = container
            .args
            .iter()
            .filter_map(|argument| argument.split_once('='));
        let environment = container
            .env
            .iter()
            .filter_map(|variable| variable.value.as_deref());
        for path in values
            .map(|(_, value)| value)
            .chain(environment)
            .filter(|value| value.starts_with("/srv/") || value.starts_with("/var/"))
        {
            let mounted = container.volume_mounts.iter().any(|mount| {
                path == mount.mount_path
                    || path.starts_with(&format!("{}/", mount.mount_path.trim_end_matches('/')))
                    || path.trim_end_matches('/') == mount.mount_path.trim_end_matches('/')
            });
            assert!(mounted, "{}: {path}", pod.metadata.name);
        }
    }
}

/// The API server's pod where that field of its settings has this value; `None` where the field takes no such value.
fn api_server_with(field: &str, value: &Value) -> Option<Pod> {
    let config: KubeAPIServerConfig = serde_json::from_value(json!({ field: value })).ok()?;
    let expanded = try_expanded_with(|cluster, _| cluster.spec.kube_api_server = Some(config));
    Some(full::manifests::api_server_pod(&expanded.ok()?.full))
}

#[test]
fn every_file_that_the_spec_can_name_reaches_the_api_server() {
    const FILE: &str = "/elsewhere/file";
    let mut named = Vec::new();
    for leaf in type_leaves::<KubeAPIServerConfig>("")
        .iter()
        .filter(|leaf| leaf.takes == LeafType::Text)
    {
        let field = leaf.path.trim_start_matches('.');
        let (field, value) = match field.strip_suffix("[]") {
            Some(list) => (list, json!([FILE])),
            None => (field, json!(FILE)),
        };
        let Some(pod) = api_server_with(field, &value) else {
            continue;
        };
        let container = &pod.spec.containers[0];
        let suffix = format!("={FILE}");
        let flag = container
            .args
            .iter()
            .find_map(|one| one.strip_suffix(&suffix));
        let ends = ["file", "config", "certificate", "key", "authority"];
        let Some(flag) = flag.filter(|flag| ends.iter().any(|end| flag.ends_with(end))) else {
            continue;
        };
        let mount = container
            .volume_mounts
            .iter()
            .find(|mount| mount.mount_path == FILE);
        let mount = mount.unwrap_or_else(|| panic!("{flag} names a file that is not mounted"));
        assert!(mount.read_only, "{flag}");
        let volume = pod
            .spec
            .volumes
            .iter()
            .find(|volume| volume.name == mount.name);
        let host = &volume.unwrap().host_path;
        assert_eq!(
            (host.path.as_str(), host.kind.as_deref()),
            (FILE, Some("File")),
            "{flag}"
        );
        named.push(flag.to_owned());
    }
    assert!(named.len() >= 22, "{named:?}");
}

#[test]
fn a_file_that_is_mounted_already_and_one_that_two_flags_name_are_mounted_once() {
    let inside = json!("/srv/kubernetes/kube-apiserver/policy.yaml");
    let plain = full::manifests::api_server_pod(&full_spec()).spec.volumes;
    let pod = api_server_with("auditPolicyFile", &inside).unwrap();
    assert_eq!(pod.spec.volumes, plain);
    let twice = json!(["/elsewhere/a.pub", "/elsewhere/b.pub", "/elsewhere/a.pub"]);
    let pod = api_server_with("serviceAccountKeyFile", &twice).unwrap();
    assert_eq!(pod.spec.volumes.len(), plain.len() + 2);
    let names: BTreeSet<&String> = pod.spec.volumes.iter().map(|volume| &volume.name).collect();
    assert_eq!(names.len(), pod.spec.volumes.len());
}

#[test]
fn etcd_cannot_start_without_its_volume() {
    let pod = member_pod(&full_spec(), "main");
    let data = pod
        .spec
        .volumes
        .iter()
        .find(|volume| volume.name == "data")
        .unwrap();
    assert_eq!(
        data.host_path.kind.as_deref(),
        Some("Directory"),
        "kubelet must not make it"
    );
    assert_eq!(data.host_path.path, "/mnt/master-vol-1/var/etcd/data");
    assert!(
        pod.spec.containers[0]
            .volume_mounts
            .iter()
            .any(|mount| mount.mount_path == "/etc/hosts")
    );
    assert_eq!(pod.spec.containers[0].image, "registry.k8s.io/etcd:v3.6.12");
}

#[test]
fn two_etcd_clusters_share_a_machine() {
    let full = full_spec();
    let own = |name| {
        let pod = member_pod(&full, name);
        let container = pod.spec.containers[0].clone();
        let probe = container.liveness_probe.unwrap().http_get.port.to_string();
        let mut ports: Vec<String> = container
            .env
            .iter()
            .filter(|variable| variable.name.contains("LISTEN"))
            .flat_map(|variable| {
                variable
                    .value
                    .clone()
                    .unwrap()
                    .split(',')
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .filter_map(|url| url.rsplit_once(':').map(|(_, port)| port.to_owned()))
            .collect();
        assert!(ports.contains(&probe), "the probe asks where etcd answers");
        ports.push(pod.metadata.name);
        ports
    };
    let events = own("events");
    assert!(own("main").iter().all(|own| !events.contains(own)));
}

#[test]
fn probes_ask_protokube_so_anonymous_access_stays_off() {
    let pod = full::manifests::api_server_pod(&full_spec());
    let container = &pod.spec.containers[0];
    assert!(
        container
            .args
            .contains(&"--anonymous-auth=false".to_owned())
    );
    for probe in [
        &container.liveness_probe,
        &container.readiness_probe,
        &container.startup_probe,
    ] {
        let asked = &probe.as_ref().unwrap().http_get;
        assert_eq!(
            (asked.host.as_str(), asked.port, asked.scheme.as_str()),
            ("127.0.0.1", 3990, "HTTP")
        );
    }
}

#[test]
fn names_follow_the_control_planes_unless_a_load_balancer_has_them() {
    let names = |change: Value| -> Vec<String> {
        let expanded = expanded_with_fields(&change);
        let pod = full::manifests::api_server_pod(&expanded.full);
        pod.metadata.annotations.values().cloned().collect()
    };
    let balancer = json!({ "loadBalancer": { "class": "Network", "type": "Public" } });
    let both = json!({ "loadBalancer": { "class": "Network", "type": "Public", "useForInternalApi": true } });
    assert_eq!(
        names(json!({})),
        ["api.a.example.com", "api.internal.a.example.com"]
    );
    assert_eq!(
        names(json!({ "api": balancer })),
        ["api.internal.a.example.com"]
    );
    assert!(names(json!({ "api": both })).is_empty());
    assert!(
        names(json!({ "api": balancer, "topology": { "dns": { "type": "None" } } })).is_empty()
    );
}

#[test]
fn images_come_from_where_the_spec_wants_them() {
    let expanded = expanded_with(|cluster, _| {
        let assets = cluster.spec.assets.get_or_insert_default();
        assets.container_registry = Some("registry.example.com".into());
    });
    for pod in all_pods(&expanded.full) {
        let image = &pod.spec.containers[0].image;
        assert!(image.starts_with("registry.example.com/"), "{image}");
    }
}

#[test]
fn an_audit_log_can_be_written() {
    let expanded = expanded_with(|cluster, _| {
        let api = cluster.spec.kube_api_server.get_or_insert_default();
        api.audit_log_path = Some("/var/log/audit/kube.log".into());
    });
    let pod = full::manifests::api_server_pod(&expanded.full);
    let mounts = &pod.spec.containers[0].volume_mounts;
    assert!(
        mounts
            .iter()
            .any(|mount| mount.mount_path == "/var/log/audit" && !mount.read_only)
    );
}
