//! The addons of a cluster: which there are, in which order, and what follows from the spec's fields.
use cloud::{ObjectContent, S3Object};
use full::FullSpec;
use full::addons::{Addon, channel_yaml, make_addons, manifest_key};
use full::objects::addon_objects;
use node::addons::{
    ADDON_LABEL, CHANNEL_KEY, MANAGED_BY_LABEL, MANAGER, read_channel, read_manifest,
};
use node::digest::sha256_hex;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use test_support::expanded_with_fields;

/// What a cluster by default runs of itself, as public registries name it.
const IMAGES: [&str; 11] = [
    "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3",
    "ghcr.io/flannel-io/flannel:v0.28.9",
    "registry.k8s.io/coredns/coredns:v1.14.2",
    "registry.k8s.io/cpa/cluster-proportional-autoscaler:v1.9.0",
    "registry.k8s.io/provider-aws/aws-ebs-csi-driver:v1.58.0",
    "registry.k8s.io/sig-storage/csi-attacher:v4.11.0",
    "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.16.0",
    "registry.k8s.io/sig-storage/csi-provisioner:v6.2.0",
    "registry.k8s.io/sig-storage/csi-resizer:v2.1.0",
    "registry.k8s.io/sig-storage/livenessprobe:v2.18.0",
    "registry.k8s.io/provider-aws/cloud-controller-manager:v1.36.1",
];

/// The addon of that name; `None`: the cluster has none.
pub fn find_addon(full: &FullSpec, name: &str) -> Option<Addon> {
    let all = make_addons(full).unwrap();
    all.into_iter().find(|addon| addon.name == name)
}

/// The first object of a kind; null if there is none.
pub fn find_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut objects = objects.iter();
    let found = objects.find(|object| object["kind"] == kind);
    found.unwrap_or(&Value::Null)
}

/// The addons of the sample with its spec changed as JSON.
fn addons_with(change: &Value) -> Vec<Addon> {
    make_addons(&expanded_with_fields(change).full).unwrap()
}

fn flannel_addons() -> Vec<Addon> {
    addons_with(&json!({"networking": {"flannel": {}}}))
}

fn addon_names(addons: &[Addon]) -> Vec<&str> {
    addons.iter().map(|addon| addon.name.as_str()).collect()
}

/// An object of any addon; null if there is none.
fn find_object<'a>(addons: &'a [Addon], kind: &str, name: &str) -> &'a Value {
    let mut objects = addons.iter().flat_map(|addon| &addon.objects);
    let found = objects.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or(&Value::Null)
}

fn pod_template<'a>(addons: &'a [Addon], kind: &str, name: &str) -> &'a Value {
    &find_object(addons, kind, name)["spec"]["template"]
}

/// Values of all fields `image`.
fn collect_images(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| match value {
            Value::String(image) if key == "image" => drop(into.insert(image.clone())),
            other => collect_images(other, into),
        }),
        Value::Array(items) => items.iter().for_each(|item| collect_images(item, into)),
        _ => {}
    }
}

/// An evicted pod that tolerates a cordoned node comes back to it, again and again, while the drain waits.
#[test]
fn no_deployment_tolerates_a_node_that_is_drained() {
    let all = json!({
        "awsLoadBalancerController": {"enabled": true}, "certManager": {"enabled": true},
        "clusterAutoscaler": {"enabled": true}, "dnsZone": "example.com",
        "externalDns": {"provider": "external-dns"}, "metricsServer": {"enabled": true},
        "podIdentityWebhook": {"enabled": true}, "snapshotController": {"enabled": true},
    });
    let addons = addons_with(&all);
    let objects = addons.iter().flat_map(|addon| &addon.objects);
    let deployments = objects.filter(|object| object["kind"] == "Deployment");
    let mut count = 0;
    for deployment in deployments {
        let tolerations = &deployment["spec"]["template"]["spec"]["tolerations"];
        for toleration in tolerations.as_array().into_iter().flatten() {
            let key = toleration["key"].as_str();
            assert!(
                !matches!(key, None | Some("node.kubernetes.io/unschedulable")),
                "{}: {toleration}",
                deployment["metadata"]["name"]
            );
        }
        count += 1;
    }
    assert!(count >= 11, "{count} Deployments");
}

#[test]
fn access_comes_first_then_the_network_then_what_needs_it() {
    let rest = [
        "coredns.addons.k8s.io",
        "aws-cloud-controller.addons.k8s.io",
        "storage-aws.addons.k8s.io",
        "aws-ebs-csi-driver.addons.k8s.io",
    ];
    let first = [
        "protokube.rbac.kctl.dev",
        "kubelet-api.rbac.addons.k8s.io",
        "limit-range.addons.k8s.io",
        "node-registration.kctl.dev",
    ];
    let network = ["networking.flannel"];
    for backend in ["vxlan", "udp"] {
        let of = addons_with(&json!({"networking": {"flannel": {"backend": backend}}}));
        assert_eq!(addon_names(&of), [&first[..], &network, &rest].concat());
    }
    for own in ["kubenet", "cni", "external"] {
        let of = addons_with(&json!({"networking": {own: {}}}));
        assert_eq!(addon_names(&of), [&first[..], &rest].concat(), "{own}");
    }
    let without_dns = addons_with(&json!({"kubeDNS": {"provider": "None"}}));
    assert_eq!(addon_names(&without_dns), [&first[..], &rest[1..]].concat());
}

#[test]
fn nodes_need_the_taint_that_kubelets_set_where_all_of_them_do() {
    let all = addons_with(&json!({}));
    assert!(addon_names(&all).contains(&"node-registration.kctl.dev"));
    let other = addons_with(&json!({"kubelet": {"cloudProvider": ""}}));
    assert!(!addon_names(&other).contains(&"node-registration.kctl.dev"));
}

#[test]
fn they_are_the_same_every_time() {
    assert_eq!(flannel_addons(), flannel_addons());
}

#[test]
fn manifests_read_as_reviewed() {
    for addon in flannel_addons() {
        insta::assert_snapshot!(addon.name, addon.manifest);
    }
}

#[test]
fn every_object_says_which_addon_it_belongs_to_and_whose_it_is() {
    for addon in flannel_addons() {
        assert!(!addon.objects.is_empty());
        for object in &addon.objects {
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels[ADDON_LABEL], addon.name);
            assert_eq!(labels[MANAGED_BY_LABEL], MANAGER);
            assert_eq!(labels[addon.selector.0.as_str()], addon.selector.1);
        }
    }
}

/// The rules of all roles, with the namespace in which they count; none for all.
fn granted_rules(addons: &[Addon]) -> Vec<(Option<String>, Value)> {
    let objects = addons.iter().flat_map(|addon| &addon.objects);
    let roles = objects.filter(|object| object["rules"].is_array());
    let rules = roles.flat_map(|role| {
        let namespace = role["metadata"]["namespace"].as_str().map(str::to_owned);
        let rules = role["rules"].as_array().unwrap().iter().cloned();
        rules.map(move |rule| (namespace.clone(), rule))
    });
    rules.collect()
}

/// A token of a pod, which may be on any worker, changes what is its own.
#[test]
fn no_addon_changes_leases_or_endpoints_of_others_or_reads_secrets() {
    let says = |rule: &Value, list: &str, words: &[&str]| {
        let own = rule[list].as_array().unwrap().iter();
        own.filter_map(Value::as_str)
            .any(|own| own == "*" || words.contains(&own))
    };
    for (namespace, rule) in granted_rules(&flannel_addons()) {
        assert!(!says(&rule, "resources", &["secrets"]), "{rule}");
        let changes = says(
            &rule,
            "verbs",
            &["update", "patch", "delete", "deletecollection"],
        );
        let others = says(
            &rule,
            "resources",
            &["leases", "endpoints", "endpointslices"],
        );
        if changes && others {
            assert!(
                namespace.is_some() && rule["resourceNames"].is_array(),
                "{rule}"
            );
        }
        let creates = says(&rule, "verbs", &["create"]);
        assert!(!(creates && others) || namespace.is_some(), "{rule}");
    }
}

#[test]
fn pods_of_all_namespaces_are_read_by_nobody_on_workers_unless_the_users_corefile_wants_it() {
    // Its rights are the controller's, whose pods are on control planes.
    let on_control_planes = "aws-ebs-csi-driver.addons.k8s.io";
    let readers = |addons: &[Addon]| -> Vec<String> {
        let reads = |addon: &&Addon| {
            let rules = granted_rules(std::slice::from_ref(*addon));
            rules.iter().any(|(namespace, rule)| {
                let resources = rule["resources"].as_array().unwrap();
                namespace.is_none() && resources.iter().any(|one| one == "pods")
            })
        };
        addons
            .iter()
            .filter(reads)
            .map(|addon| addon.name.clone())
            .filter(|name| *name != on_control_planes)
            .collect()
    };
    assert_eq!(readers(&flannel_addons()), ["protokube.rbac.kctl.dev"]);
    // `pods verified` may come from a variable or a snippet too.
    for pods in ["verified # for autopath", "{$PODS}"] {
        let corefile =
            format!(".:53 {{\n  kubernetes cluster.local {{\n    pods {pods}\n  }}\n}}\n");
        let of = addons_with(&json!({"kubeDNS": {"externalCoreFile": corefile}}));
        assert!(
            readers(&of).contains(&"coredns.addons.k8s.io".to_owned()),
            "{pods}"
        );
    }
}

/// The controllers that it moves wait for a Lease of their own.
#[test]
fn the_cloud_controller_manager_updates_the_lease_of_leader_migration() {
    let of = addons_with(&json!({"cloudControllerManager": {"enableLeaderMigration": true}}));
    let leases = [
        "cloud-controller-manager",
        "cloud-provider-extraction-migration",
    ];
    let own = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": leases, "verbs": ["get", "update"]});
    let rules = granted_rules(&of);
    assert!(
        rules.contains(&(Some("kube-system".to_owned()), own)),
        "{rules:#?}"
    );
}

#[test]
fn the_cloud_controller_manager_updates_the_lease_that_its_flags_name() {
    let of = addons_with(&json!({"cloudControllerManager": {"leaderElection": {
        "leaderElectResourceName": "mine", "leaderElectResourceNamespace": "default"}}}));
    let rules = granted_rules(&of);
    let own = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["mine"], "verbs": ["get", "update"]});
    assert!(
        rules.contains(&(Some("default".to_owned()), own)),
        "{rules:?}"
    );
}

#[test]
fn no_object_is_in_two_addons() {
    let all = flannel_addons();
    let objects = all.iter().flat_map(|addon| &addon.objects);
    let ids: Vec<String> = objects
        .map(|object| {
            let metadata = &object["metadata"];
            format!(
                "{} {} {}",
                object["kind"], metadata["namespace"], metadata["name"]
            )
        })
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn a_namespace_stands_before_what_is_in_it() {
    let of = flannel_addons();
    for addon in &of {
        let mut known: BTreeSet<&str> = ["default", "kube-system"].into();
        for object in &addon.objects {
            if object["kind"] == "Namespace" {
                known.insert(object["metadata"]["name"].as_str().unwrap());
            }
            if let Some(namespace) = object["metadata"]["namespace"].as_str() {
                assert!(known.contains(namespace), "{namespace} in {}", addon.name);
            }
        }
    }
}

#[test]
fn images_are_the_public_ones_and_come_from_where_the_spec_wants_them() {
    let wanted = |assets: Value| {
        let of = addons_with(&json!({"networking": {"flannel": {}}, "assets": assets}));
        let mut found = BTreeSet::new();
        of.iter()
            .flat_map(|addon| &addon.objects)
            .for_each(|object| collect_images(object, &mut found));
        found
    };
    assert_eq!(wanted(json!({})), IMAGES.map(str::to_owned).into());
    let proxied = IMAGES.map(|image| {
        let (_, path) = image.split_once('/').unwrap();
        format!("proxy.example.com/{path}")
    });
    assert_eq!(
        wanted(json!({"containerProxy": "proxy.example.com"})),
        proxied.into()
    );
}

#[test]
fn volumes_are_made_unless_the_user_does_that() {
    let names = |config: Value| -> Vec<String> {
        let of = addons_with(&json!({"cloudConfig": config}));
        let of = of.into_iter().map(|addon| addon.name);
        of.filter(|name| name.contains("ebs") || name.contains("storage"))
            .collect()
    };
    let (driver, classes) = (
        "aws-ebs-csi-driver.addons.k8s.io",
        "storage-aws.addons.k8s.io",
    );
    assert_eq!(names(json!({})), [classes, driver]);
    assert_eq!(
        names(json!({"awsEBSCSIDriver": {"managed": false}})),
        [classes]
    );
    assert_eq!(names(json!({"manageStorageClasses": false})), [driver]);
}

#[test]
fn the_ebs_csi_driver_has_the_settings_of_the_spec() {
    let of = addons_with(&json!({
        "cloudLabels": {"Team": "data"},
        "cloudConfig": {"awsEBSCSIDriver": {
            "version": "v1.2.3", "kubeAPIQPS": "7", "kubeAPIBurst": 8, "hostNetwork": true,
            "volumeAttachLimit": 9, "podAnnotations": {"a": "b"},
        }},
    }));
    let node = pod_template(&of, "DaemonSet", "ebs-csi-node");
    let controller = pod_template(&of, "Deployment", "ebs-csi-controller");
    for pods in [node, controller] {
        assert_eq!(pods["metadata"]["annotations"], json!({"a": "b"}));
        let image = &pods["spec"]["containers"][0]["image"];
        assert_eq!(
            image,
            "registry.k8s.io/provider-aws/aws-ebs-csi-driver:v1.2.3"
        );
    }
    assert_eq!(node["spec"]["hostNetwork"], true);
    let has = |pods: &Value, argument: &str| pods.to_string().contains(&format!("\"{argument}\""));
    assert!(has(node, "--volume-attach-limit=9"));
    // Both are on the network of a control plane, where a port is one pod's.
    let ports = |pods: &Value| -> BTreeSet<i64> {
        let containers = pods["spec"]["containers"].as_array().unwrap().iter();
        let ports = containers.flat_map(|one| one["ports"].as_array().into_iter().flatten());
        ports
            .filter_map(|port| port["containerPort"].as_i64())
            .collect()
    };
    assert!(ports(node).is_disjoint(&ports(controller)));
    assert!(has(node, "--health-port=9810"));
    assert!(has(
        controller,
        "--extra-tags=KubernetesCluster=a.example.com,Team=data"
    ));
    assert!(has(controller, "--kube-api-qps=7") && has(controller, "--kube-api-burst=8"));
}

#[test]
fn the_store_holds_the_list_and_what_it_names() {
    let of = flannel_addons();
    let objects = addon_objects(&of).unwrap();
    let text = |key: &str| {
        let found: Vec<&S3Object> = objects.iter().filter(|object| object.key == key).collect();
        let [
            S3Object {
                content: ObjectContent::Text(text) | ObjectContent::Signed(text),
                ..
            },
        ] = found.as_slice()
        else {
            panic!("{key}: {found:?}");
        };
        text.to_string()
    };
    assert_eq!(objects.len(), of.len() + 1);
    let list = text(CHANNEL_KEY);
    assert_eq!(list, channel_yaml(&of).unwrap());
    let list = read_channel(&list).unwrap();
    assert_eq!(list.kind, "Addons");
    let listed: Vec<&str> = list
        .spec
        .addons
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(listed, addon_names(&of));
    for (listed, addon) in list.spec.addons.iter().zip(&of) {
        assert_eq!(listed.manifest_key(), manifest_key(addon));
        let manifest = text(&listed.manifest_key());
        assert_eq!(sha256_hex(&manifest), listed.manifest_hash);
        assert_eq!(
            read_manifest(&listed.manifest_key(), &manifest).unwrap(),
            addon.objects
        );
    }
    assert_eq!(
        manifest_key(&of[1]),
        "addons/kubelet-api.rbac.addons.k8s.io/k8s-1.9.yaml"
    );
}

#[test]
fn a_list_of_kops_is_read_and_one_with_an_addon_twice_is_not() {
    let addon = "  - {id: a, manifest: a/a.yaml, manifestHash: b, name: a, needsRollingUpdate: control-plane, selector: {k8s-addon: a}}\n";
    let list = |addons: &str| {
        format!("kind: Addons\nmetadata: {{name: bootstrap}}\nspec:\n  addons:\n{addons}")
    };
    assert_eq!(
        read_channel(&list(addon)).unwrap().spec.addons[0].manifest_key(),
        "addons/a/a.yaml"
    );
    let error = read_channel(&list(&addon.repeat(2)))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "addons/bootstrap-channel.yaml is not a manifest: the addon a is listed twice"
    );
}

#[test]
fn flannel_has_the_network_and_the_backend_of_the_spec() {
    let config = |networking: Value| {
        let of =
            addons_with(&json!({"networking": networking, "nonMasqueradeCIDR": "100.64.0.0/10"}));
        let text =
            find_object(&of, "ConfigMap", "kube-flannel-cfg")["data"]["net-conf.json"].clone();
        let pod = pod_template(&of, "DaemonSet", "kube-flannel-ds").clone();
        let config: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        (config, pod)
    };
    let (config_vxlan, vxlan) = config(json!({"flannel": {}}));
    assert_eq!(
        config_vxlan,
        json!({"Network": "100.64.0.0/10", "EnableNFTables": false, "Backend": {"Type": "vxlan"}})
    );
    let (config_udp, udp) =
        config(json!({"flannel": {"backend": "udp", "iptablesResyncSeconds": 9}}));
    assert_eq!(config_udp["Backend"]["Type"], "udp");
    let privileged =
        |pod: &Value| pod["spec"]["containers"][0]["securityContext"]["privileged"].clone();
    assert_eq!(
        (privileged(&vxlan), privileged(&udp)),
        (json!(false), json!(true))
    );
    let arguments = udp["spec"]["containers"][0]["args"].as_array().unwrap();
    assert!(arguments.contains(&json!("--iptables-resync=9")));
    let hash = |pod: &Value| pod["metadata"]["annotations"]["kctl.dev/config-sha256"].clone();
    assert_ne!(hash(&vxlan), hash(&udp), "pods must restart for it");
}

#[test]
fn core_dns_is_what_the_spec_says_of_it() {
    let of = addons_with(&json!({"kubeDNS": {
        "domain": "cluster.test",
        "serverIP": "100.64.0.99",
        "stubDomains": {"corp.example.com": ["10.1.0.2", "10.1.0.3:5353"], "empty.example.com": []},
        "upstreamNameservers": ["9.9.9.9"],
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "podAnnotations": {"a": "b"},
        "replicas": 3,
        "cpuRequest": "7m",
        "memoryRequest": "8Mi",
        "memoryLimit": "9Mi",
        "coreDNSImage": "mirror.example.com/coredns:v1",
    }}));
    assert_eq!(
        find_object(&of, "Service", "kube-dns")["spec"]["clusterIP"],
        "100.64.0.99"
    );
    let corefile = find_object(&of, "ConfigMap", "coredns")["data"]["Corefile"]
        .as_str()
        .unwrap();
    for part in [
        "kubernetes cluster.test. in-addr.arpa ip6.arpa {",
        "\n    forward . 9.9.9.9 {",
        "\ncorp.example.com:53 {",
        "\n    forward . 10.1.0.2 10.1.0.3:5353 {",
    ] {
        assert!(corefile.contains(part), "{part} in {corefile}");
    }
    assert!(
        !corefile.contains("empty"),
        "CoreDNS refuses a forward to nobody"
    );
    assert_eq!(
        find_object(&of, "Deployment", "coredns")["spec"]["replicas"],
        3
    );
    assert!(find_object(&of, "Deployment", "coredns-autoscaler").is_null());
    let pod = pod_template(&of, "Deployment", "coredns");
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(pod["spec"]["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["spec"]["affinity"], json!({"nodeAffinity": {}}));
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["image"], "mirror.example.com/coredns:v1");
    assert_eq!(
        container["resources"],
        json!({"limits": {"memory": "9Mi"}, "requests": {"cpu": "7m", "memory": "8Mi"}})
    );
}

#[test]
fn the_number_of_dns_pods_is_the_autoscalers_unless_the_spec_fixes_it() {
    let of = flannel_addons();
    assert!(
        find_object(&of, "Deployment", "coredns")["spec"]
            .get("replicas")
            .is_none()
    );
    assert!(find_object(&of, "Deployment", "coredns-autoscaler").is_object());
}

#[test]
fn a_whole_corefile_takes_the_place_of_ours() {
    let of = addons_with(&json!({"kubeDNS": {"externalCoreFile": ".:53 {\n  whoami\n}\n"}}));
    assert_eq!(
        find_object(&of, "ConfigMap", "coredns")["data"]["Corefile"],
        ".:53 {\n  whoami\n}\n"
    );
}

#[test]
fn the_cloud_controller_makes_routes_for_kubenet_and_runs_before_nodes_are_initialized() {
    let arguments = |networking: Value| {
        let of = addons_with(&json!({"networking": networking}));
        let pod = pod_template(&of, "DaemonSet", "aws-cloud-controller-manager").clone();
        assert_eq!(pod["spec"]["hostNetwork"], true);
        assert_eq!(pod["spec"]["tolerations"], json!([{"operator": "Exists"}]));
        serde_json::from_value::<Vec<String>>(pod["spec"]["containers"][0]["args"].clone()).unwrap()
    };
    let kubenet = arguments(json!({"kubenet": {}}));
    let expected = [
        "--allocate-node-cidrs=true",
        "--cloud-config=/etc/kubernetes/cloud-controller-manager/cloud.config",
        "--cloud-provider=aws",
        "--cluster-cidr=100.96.0.0/11",
        "--cluster-name=a.example.com",
        "--configure-cloud-routes=true",
        "--leader-elect=true",
        "--use-service-account-credentials=true",
        "--v=2",
    ];
    assert_eq!(kubenet, expected);
    let flannel = arguments(json!({"flannel": {}}));
    assert!(flannel.contains(&"--configure-cloud-routes=false".to_owned()));
}

#[test]
fn settings_of_the_cloud_controller_restart_it() {
    let config = |cloud: Value| {
        let of = addons_with(&json!({"cloudConfig": cloud}));
        let text =
            find_object(&of, "ConfigMap", "aws-cloud-controller-manager")["data"]["cloud.config"]
                .clone();
        let pod = pod_template(&of, "DaemonSet", "aws-cloud-controller-manager");
        (
            text,
            pod["metadata"]["annotations"]["kctl.dev/config-sha256"].clone(),
        )
    };
    let (plain, hash) = config(json!({}));
    assert_eq!(plain, "[global]\n");
    let (said, other) = config(json!({
        "disableSecurityGroupIngress": true,
        "elbSecurityGroup": "sg-1",
        "nlbSecurityGroupMode": "Managed",
        "nodeIPFamilies": ["ipv4"],
    }));
    assert_eq!(
        said,
        "[global]\nDisableSecurityGroupIngress = \"true\"\nElbSecurityGroup = \"sg-1\"\n\
         NLBSecurityGroupMode = \"Managed\"\nNodeIPFamilies = \"ipv4\"\n"
    );
    assert_ne!(hash, other);
}
