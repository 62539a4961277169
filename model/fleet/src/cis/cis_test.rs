//! Laws of the judgement: what was not seen never passes, and what is as the benchmark asks does.

use super::*;
use serde_json::json;
use time::OffsetDateTime;
use time::macros::datetime;

const NOW: OffsetDateTime = datetime!(2030-01-01 00:10 UTC);

const API_SERVER: &[&str] = &[
    "--anonymous-auth=false",
    "--audit-log-maxage=30",
    "--audit-log-maxbackup=10",
    "--audit-log-maxsize=100",
    "--audit-log-path=/var/log/kube-audit/audit.log",
    "--audit-policy-file=/p",
    "--authorization-mode=Node,RBAC",
    "--client-ca-file=/p",
    "--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs,EventRateLimit",
    "--encryption-provider-config=/p",
    "--etcd-cafile=/p",
    "--etcd-certfile=/p",
    "--etcd-keyfile=/p",
    "--kubelet-certificate-authority=/p",
    "--kubelet-client-certificate=/p",
    "--kubelet-client-key=/p",
    "--profiling=false",
    "--service-account-extend-token-expiration=false",
    "--service-account-key-file=/p",
    "--tls-cert-file=/p",
    "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "--tls-private-key-file=/p",
];

const CONTROLLER_MANAGER: &[&str] = &[
    "--bind-address=127.0.0.1",
    "--profiling=false",
    "--root-ca-file=/p",
    "--service-account-private-key-file=/p",
    "--terminated-pod-gc-threshold=1000",
    "--use-service-account-credentials=true",
];

const ETCD: &[(&str, &str)] = &[
    ("ETCD_CERT_FILE", "/p"),
    ("ETCD_CLIENT_CERT_AUTH", "true"),
    ("ETCD_KEY_FILE", "/p"),
    ("ETCD_PEER_CERT_FILE", "/p"),
    ("ETCD_PEER_CLIENT_CERT_AUTH", "true"),
    ("ETCD_PEER_KEY_FILE", "/p"),
];

const FILES: &str = "\
time 2030-01-01T00:05:00Z
file manifest-kube-apiserver 400 root:root /etc/kubernetes/manifests/kube-apiserver.manifest
file manifest-kube-controller-manager 400 root:root /m
file manifest-kube-scheduler 400 root:root /s
file manifest-etcd 400 root:root /e
file cni 600 root:root /etc/cni/net.d/10-flannel.conflist
file etcd-data 700 etcd:etcd /mnt/master-vol-1/var/etcd/data
absent admin-kubeconfig /etc/kubernetes/admin.conf
file kubeconfig-kube-controller-manager 400 root:root /var/lib/kube-controller-manager/kubeconfig
file kubeconfig-kube-scheduler 400 root:root /var/lib/kube-scheduler/kubeconfig
absent kubeconfig-kube-proxy /var/lib/kube-proxy/kubeconfig
file kubeconfig-kubelet 400 root:root /var/lib/kubelet/kubeconfig
file kubelet-unit 600 root:root /etc/systemd/system/kubelet.service
file kubelet-config 600 root:root /var/lib/kubelet/kubelet.conf
file client-ca 644 root:root /srv/kubernetes/ca.crt
file pki 755 root:root /srv/kubernetes
file pki-certificate 644 root:root /srv/kubernetes/ca.crt
file pki-key 400 root:root /srv/kubernetes/a file.key
value scheduler-profiling false
value encryption-provider aescbc
value etcd-authority own
end
";

fn pod(component: &str, args: &[&str], env: &[(&str, &str)]) -> Value {
    let variable = |(name, value): &(&str, &str)| json!({"name": name, "value": value});
    json!({
        "metadata": {
            "name": format!("{component}-i-1"),
            "namespace": "kube-system",
            "labels": {"k8s-app": component},
            "annotations": {"kubernetes.io/config.mirror": "1"},
        },
        "spec": {
            "nodeName": "i-1",
            "containers": [{"args": args, "env": env.iter().map(variable).collect::<Vec<_>>()}],
        },
    })
}

fn pods_with(api_server: &[&str]) -> Vec<Value> {
    vec![
        pod("kube-apiserver", api_server, &[]),
        pod("kube-controller-manager", CONTROLLER_MANAGER, &[]),
        pod("kube-scheduler", &["--bind-address=127.0.0.1"], &[]),
        pod("etcd-main", &[], ETCD),
        pod("etcd-events", &[], ETCD),
    ]
}

/// A cluster of one node that is as the benchmark asks.
fn good_cluster() -> CisObserved {
    let kubelet = json!({
        "authentication": {"anonymous": {"enabled": false}, "x509": {"clientCAFile": "/p"}},
        "authorization": {"mode": "Webhook"},
        "eventRecordQPS": 50,
        "makeIPTablesUtilChains": true,
        "podPidsLimit": 4096,
        "rotateCertificates": true,
        "seccompDefault": true,
        "serverTLSBootstrap": true,
        "streamingConnectionIdleTimeout": "4h0m0s",
        "tlsCipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
    });
    let metadata = |name: &str| json!({"metadata": {"namespace": "shop", "name": name}});
    let mut account = metadata("default");
    account["automountServiceAccountToken"] = json!(false);
    let lists = [
        ("pods", pods_with(API_SERVER)),
        ("namespaces", vec![json!({"metadata": {"name": "shop"}})]),
        ("serviceaccounts", vec![account]),
        ("networkpolicies", vec![metadata("deny")]),
        ("roles", Vec::new()),
        ("clusterroles", Vec::new()),
        ("rolebindings", Vec::new()),
        ("clusterrolebindings", Vec::new()),
    ];
    CisObserved {
        nodes: vec![CisNode {
            name: "i-1".to_owned(),
            control_plane: true,
            kubelet: Ok(kubelet),
            files: NodeFiles::read(FILES, NOW),
        }],
        lists: lists.map(|(name, list)| (name, Ok(list))).into(),
        admission: [("shop".to_owned(), PodAdmission::Restricted)].into(),
    }
}

fn row_of(observed: &CisObserved, number: &str) -> CisRow {
    let mut rows = judge_cis(observed).into_iter();
    rows.find(|row| row.number == number).unwrap()
}

fn numbers(observed: &CisObserved, result: CisResult) -> Vec<&'static str> {
    let rows = judge_cis(observed).into_iter();
    rows.filter(|row| row.result == result)
        .map(|row| row.number)
        .collect()
}

#[test]
fn the_benchmark_has_these_controls_each_once_and_in_its_order() {
    let parts = |row: &CisRow| -> Vec<u32> {
        row.number
            .split('.')
            .map(|part| part.parse().unwrap())
            .collect()
    };
    let rows = judge_cis(&CisObserved::default());
    let numbers: Vec<Vec<u32>> = rows.iter().map(parts).collect();
    let mut sorted = numbers.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(numbers, sorted);
    // Each section is whole: its last number is the count of its controls.
    let in_section = |section: &[u32]| {
        let own = numbers
            .iter()
            .filter(|parts| parts.split_last().unwrap().1 == section);
        own.map(|parts| *parts.last().unwrap()).collect::<Vec<_>>()
    };
    for (section, last) in [
        (&[1, 1][..], 21),
        (&[1, 2], 30),
        (&[1, 3], 7),
        (&[1, 4], 2),
        (&[2], 7),
        (&[3, 1], 3),
        (&[3, 2], 2),
        (&[4, 1], 10),
        (&[4, 2], 14),
        (&[4, 3], 1),
        (&[5, 1], 13),
        (&[5, 2], 12),
        (&[5, 3], 2),
        (&[5, 4], 2),
        (&[5, 5], 1),
        (&[5, 6], 4),
    ] {
        assert_eq!(in_section(section), (1..=last).collect::<Vec<_>>());
    }
    assert_eq!(numbers.len(), 131);
}

#[test]
fn what_was_not_observed_is_not_known() {
    let nothing = CisObserved::default();
    assert_eq!(numbers(&nothing, CisResult::NotKnown).len(), 131);

    let mut silent = good_cluster();
    silent.nodes[0].kubelet = Err("no answer".to_owned());
    silent.nodes[0].files = Err("no answer".to_owned());
    for list in silent.lists.values_mut() {
        *list = Err("no answer".to_owned());
    }
    silent.admission = [("shop".to_owned(), PodAdmission::read(Some("quota".into())))].into();
    assert_eq!(numbers(&silent, CisResult::NotKnown).len(), 131);

    // Each source alone, too: no control has two.
    let good = numbers(&good_cluster(), CisResult::Pass);
    let mut lost = 0;
    for source in 0..4 {
        let mut observed = good_cluster();
        match source {
            0 => observed.nodes[0].kubelet = silent.nodes[0].kubelet.clone(),
            1 => observed.nodes[0].files = silent.nodes[0].files.clone(),
            2 => observed.lists = silent.lists.clone(),
            _ => observed.admission = silent.admission.clone(),
        }
        assert_eq!(numbers(&observed, CisResult::Fail), [""; 0]);
        lost += good.len() - numbers(&observed, CisResult::Pass).len();
    }
    assert_eq!(lost, good.len());
}

#[test]
fn a_cluster_that_is_as_the_benchmark_asks_fails_nothing_and_leaves_to_people_what_is_theirs() {
    let good = good_cluster();
    assert_eq!(numbers(&good, CisResult::Fail), [""; 0]);
    assert_eq!(
        numbers(&good, CisResult::NotKnown),
        [
            "1.2.11", "3.1.1", "3.1.2", "3.2.2", "4.2.7", "5.1.6", "5.1.7", "5.3.1", "5.4.1",
            "5.4.2", "5.5.1", "5.6.1", "5.6.2", "5.6.3", "5.6.4"
        ]
    );
}

#[test]
fn a_wrong_flag_fails_where_the_benchmark_decides_and_is_shown_where_it_does_not() {
    for (flag, wrong, number) in [
        (
            "--authorization-mode",
            "--authorization-mode=AlwaysAllow",
            "1.2.6",
        ),
        ("--authorization-mode", "--authorization-mode=RBAC", "1.2.7"),
        ("--audit-log-maxage", "--audit-log-maxage=7", "1.2.17"),
        ("--profiling", "--v=2", "1.2.15"),
        ("--kubelet-client-key", "--v=2", "1.2.4"),
        ("--v", "--token-auth-file=/p", "1.2.2"),
        (
            "--v",
            "--disable-admission-plugins=ServiceAccount",
            "1.2.12",
        ),
    ] {
        let kept = API_SERVER.iter().filter(|one| !one.starts_with(flag));
        let flags: Vec<&str> = kept.copied().chain([wrong]).collect();
        let mut observed = good_cluster();
        observed.lists.insert("pods", Ok(pods_with(&flags)));
        let row = row_of(&observed, number);
        assert_eq!(row.result, CisResult::Fail, "{row:?}");
        assert!(row.why.ends_with("(i-1)"), "{row:?}");
    }
    let mut observed = good_cluster();
    let open: Vec<&str> = API_SERVER.iter().skip(1).copied().collect();
    observed.lists.insert("pods", Ok(pods_with(&open)));
    let row = row_of(&observed, "1.2.1");
    assert_eq!(row.result, CisResult::NotKnown);
    assert_eq!(row.why, "--anonymous-auth is not set (i-1)");
}

#[test]
fn one_control_plane_that_is_otherwise_fails_and_one_that_is_silent_is_not_known() {
    let mut observed = good_cluster();
    observed.nodes.push(CisNode {
        name: "i-2".to_owned(),
        ..observed.nodes[0].clone()
    });
    let row = row_of(&observed, "1.2.15");
    assert_eq!(row.result, CisResult::NotKnown);
    assert_eq!(row.why, "kube-apiserver is not among its static pods (i-2)");
    let Some(Ok(pods)) = observed.lists.get_mut("pods") else {
        panic!()
    };
    let mut other = pod("kube-apiserver", &["--profiling=true"], &[]);
    other["spec"]["nodeName"] = json!("i-2");
    pods.push(other);
    let row = row_of(&observed, "1.2.15");
    assert_eq!(
        (row.result, row.why.as_str()),
        (CisResult::Fail, "--profiling=true (i-2)")
    );
    // Anybody may give a pod this label.
    let Some(Ok(pods)) = observed.lists.get_mut("pods") else {
        panic!()
    };
    pods.last_mut().unwrap()["metadata"]["annotations"] = json!({});
    assert_eq!(row_of(&observed, "1.2.15").result, CisResult::NotKnown);
}

#[test]
fn files_have_no_bits_but_those_of_the_benchmark_and_a_list_counts_for_an_hour() {
    let with = |from: &str, to: &str| {
        let mut observed = good_cluster();
        observed.nodes[0].files = NodeFiles::read(&FILES.replace(from, to), NOW);
        observed
    };
    for (from, to, number) in [
        (
            "etcd-data 700 etcd:etcd",
            "etcd-data 700 root:root",
            "1.1.12",
        ),
        ("manifest-etcd 400", "manifest-etcd 440", "1.1.7"),
        ("kubelet-unit 600", "kubelet-unit 644", "4.1.1"),
        ("pki 755 root:root", "pki 755 10000:10000", "1.1.19"),
        ("scheduler-profiling false", "scheduler-profiling ", "1.4.1"),
    ] {
        let row = row_of(&with(from, to), number);
        assert_eq!(row.result, CisResult::Fail, "{row:?}");
    }
    let absent = row_of(
        &with(
            "file manifest-etcd 400 root:root /e",
            "absent manifest-etcd /e",
        ),
        "1.1.7",
    );
    assert_eq!(
        (absent.result, absent.why.as_str()),
        (CisResult::NotKnown, "/e is absent (i-1)")
    );
    for (from, to) in [
        ("00:05:00Z", "01:10:01Z"),
        ("2030-01-01T00:05:00Z", "2029-12-31T23:09:59Z"),
        ("\nend\n", "\n"),
        ("time ", ""),
        ("file cni 600", "file cni rw"),
    ] {
        let observed = with(from, to);
        assert!(observed.nodes[0].files.is_err(), "{to}");
        assert_eq!(row_of(&observed, "4.1.1").result, CisResult::NotKnown);
    }
}

#[test]
fn a_namespace_is_as_strict_as_what_the_api_server_refuses() {
    let admission = |message: &str| PodAdmission::read(Some(message.to_owned()));
    let says = |level: &str| {
        admission(&format!(
            "pods \"x\" is forbidden: violates PodSecurity \"{level}\": privileged"
        ))
    };
    assert_eq!(says("restricted:latest"), PodAdmission::Restricted);
    assert_eq!(says("baseline:v1.36"), PodAdmission::Baseline);
    let mut observed = good_cluster();
    for (admission, baseline, restricted) in [
        (PodAdmission::Restricted, CisResult::Pass, CisResult::Pass),
        (PodAdmission::Baseline, CisResult::Pass, CisResult::NotKnown),
        (
            PodAdmission::Everything,
            CisResult::NotKnown,
            CisResult::NotKnown,
        ),
        (admission("quota"), CisResult::NotKnown, CisResult::NotKnown),
    ] {
        observed.admission.insert("shop".to_owned(), admission);
        assert_eq!(row_of(&observed, "5.2.2").result, baseline);
        assert_eq!(row_of(&observed, "5.2.7").result, restricted);
    }
    observed.admission = [("kube-system".to_owned(), PodAdmission::Everything)].into();
    assert_eq!(
        row_of(&observed, "5.2.2").why,
        "nothing was found that it is about"
    );
}

#[test]
fn whom_roles_let_do_something_is_named_but_for_what_kubernetes_sets_up() {
    let role = |kind: &str, name: &str, rule: Value| json!({"kind": kind, "metadata": {"name": name}, "rules": [rule]});
    let binding = |name: &str, role: &str, labels: Value| {
        json!({
            "metadata": {"name": name, "labels": labels},
            "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": "shop", "name": name}],
        })
    };
    let own = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    let mut observed = good_cluster();
    let roles = vec![
        role(
            "ClusterRole",
            "reader",
            json!({"verbs": ["get"], "resources": ["secrets"]}),
        ),
        role(
            "ClusterRole",
            "all",
            json!({"verbs": ["*"], "resources": ["*"]}),
        ),
        role(
            "ClusterRole",
            "pods",
            json!({"verbs": ["get"], "resources": ["pods"]}),
        ),
    ];
    let bindings = vec![
        binding("a", "reader", json!({})),
        binding("b", "all", json!({})),
        binding("c", "pods", json!({})),
        binding("d", "all", own),
        binding("e", "cluster-admin", json!({})),
    ];
    observed.lists.insert("clusterroles", Ok(roles));
    observed.lists.insert("clusterrolebindings", Ok(bindings));
    assert_eq!(
        row_of(&observed, "5.1.2").why,
        "ServiceAccount shop/a (binding a), ServiceAccount shop/b (binding b)"
    );
    assert_eq!(
        row_of(&observed, "5.1.13").why,
        "ServiceAccount shop/b (binding b)"
    );
    assert_eq!(
        row_of(&observed, "5.1.1").why,
        "ServiceAccount shop/e (binding e)"
    );
    assert_eq!(row_of(&observed, "5.1.3").why, "has * (all)");
    assert_eq!(
        row_of(&observed, "5.1.10").why,
        "ServiceAccount shop/b (binding b)"
    );
}

#[test]
fn what_a_node_says_is_bounded_and_steers_no_terminal() {
    let mut observed = good_cluster();
    let flag = format!("--profiling=\u{1b}[2J{}", "x".repeat(10_000));
    observed
        .lists
        .insert("pods", Ok(pods_with(&[flag.as_str()])));
    let why = row_of(&observed, "1.2.15").why;
    assert!(
        !why.contains('\u{1b}') && why.chars().count() < 400,
        "{why}"
    );
}
