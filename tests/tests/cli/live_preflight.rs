//! `kctl preflight --live` against an API that runs its pods as a test says: what was found is in rows, and nothing is left behind. The lab
//! shows it in a real cluster.

mod objects;

use crate::api_server::ApiServer;
use crate::instances::{Cluster, node_object};
use crate::kctl::KctlOutput;
use crate::scenario::NAME;
use node::probe::{Outcome, Trial};
use objects::{Objects, Runs, ended, name_of, node_of, run_trials};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A cluster of one control plane and two workers, and its API.
struct LiveCluster {
    cluster: Cluster,
    api: ApiServer,
    objects: Arc<Mutex<Objects>>,
}

impl LiveCluster {
    /// One whose nodes run pods like that.
    fn start(runs: impl FnOnce(&Cluster) -> Runs) -> Self {
        let cluster = Cluster::new_cluster(2);
        cluster.report_boots(&[]);
        let api = cluster.start_api();
        let control_plane = (&cluster.control_plane, "control-plane");
        let workers = cluster.workers.iter().map(|id| (id, "node"));
        let nodes = [control_plane].into_iter().chain(workers).zip(4..);
        let nodes = nodes.map(|((id, role), number)| {
            let mut node = node_object(id, role, true);
            let group = match role {
                "node" => "nodes-eu-west-1a",
                _ => "control-plane-eu-west-1a",
            };
            node["metadata"]["labels"]["kops.k8s.io/instancegroup"] = json!(group);
            let address = format!("172.20.0.{number}");
            node["status"]["addresses"] = json!([{"type": "InternalIP", "address": address}]);
            node
        });
        api.set_objects(nodes.collect(), Vec::new());
        let objects: Arc<Mutex<Objects>> = Arc::default();
        let (runs, shared) = (runs(&cluster), Arc::clone(&objects));
        api.set_handler(move |method, path, query, body| {
            let mut objects = shared.lock().expect("the objects");
            objects.answer((method, path, query), body, &runs)
        });
        Self {
            cluster,
            api,
            objects,
        }
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().expect("the objects")
    }

    fn arguments(&self) -> [&str; 7] {
        let to = ["--api-server", self.api.url.as_str(), "-o", "json"];
        let [one, two, three, four] = to;
        ["preflight", NAME, "--live", one, two, three, four]
    }

    /// Its rows about connections, of a run that ends with that code: check, subject, state and message.
    fn live_rows(&self, code: i32) -> Vec<[String; 4]> {
        let ran = self.cluster.kctl.run(&self.arguments());
        assert_eq!(ran.code, code, "{}", ran.all_output());
        read_rows(&ran)
    }
}

fn read_rows(ran: &KctlOutput) -> Vec<[String; 4]> {
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let rows = document["checks"].as_array().expect("rows").iter();
    let rows = rows.map(|row| {
        ["check", "subject", "state", "message"].map(|field| {
            let text = row[field].as_str();
            text.expect("text").to_owned()
        })
    });
    let is_live =
        |row: &[String; 4]| ["connections", "packets", "cluster DNS"].contains(&row[0].as_str());
    rows.filter(is_live).collect()
}

#[test]
fn connections_that_pass_are_ok() {
    let live = LiveCluster::start(|_| run_trials(|_, _| Outcome::Passed));
    let rows = live.live_rows(0);
    let checks: Vec<[&str; 3]> = rows
        .iter()
        .map(|[check, subject, state, _]| [check, subject, state].map(String::as_str))
        .collect();
    assert_eq!(
        checks,
        [
            ["connections", "3 nodes", "ok"],
            ["packets", "3 nodes", "ok"],
            ["cluster DNS", "3 nodes", "ok"]
        ]
    );
    let messages: Vec<&str> = rows.iter().map(|row| row[3].as_str()).collect();
    assert_eq!(
        messages[1..],
        [
            "trials between pods pass: 12 of 12, with packets of 8951 bytes",
            "questions of pods are answered: 3 of 3",
        ]
    );

    let objects = live.objects();
    assert!(objects.namespaces.is_empty());
    assert_eq!(objects.pods.len(), 9);
    for (name, pod) in &objects.pods {
        let spec = &pod["spec"];
        let is_of_host = name.starts_with("connections-");
        assert_eq!(spec["hostNetwork"], is_of_host, "{name}");
        assert_eq!(spec["automountServiceAccountToken"], false, "{name}");
        assert!(spec["activeDeadlineSeconds"].is_number(), "{name}");
        assert_eq!(spec["volumes"].as_array().map(Vec::len), Some(1), "{name}");
        let path = &spec["volumes"][0]["hostPath"]["path"];
        assert_eq!(path, "/opt/kctl/nodeup", "{name}");
        let container = &spec["containers"][0];
        let image = container["image"].as_str().expect("an image");
        assert!(image.starts_with("registry.k8s.io/pause:"), "{image}");
        for resource in ["cpu", "memory"] {
            let limit = &container["resources"]["limits"][resource];
            assert!(limit.is_string(), "{name}: {resource}");
        }
        let rights = &container["securityContext"]["capabilities"]["drop"];
        assert_eq!(rights, &json!(["ALL"]), "{name}");
    }
}

#[test]
fn what_fails_is_named_with_its_nodes_and_a_node_with_another_nodeup_is_not_known() {
    let live = LiveCluster::start(|cluster| {
        let kubelet: SocketAddr = "172.20.0.5:10250".parse().expect("an address");
        let control_plane = cluster.control_plane.clone();
        let other = cluster.workers[1].clone();
        let pod: SocketAddr = "10.9.0.2:3999".parse().expect("an address");
        let from = control_plane.clone();
        let tries = run_trials(move |node, trial| match trial {
            Trial::Connect { to } if node == from && *to == kubelet => Outcome::Silent,
            Trial::Connect { to } if to.port() == 3988 => Outcome::Refused,
            Trial::Datagrams { to } if node == control_plane && *to == pod => Outcome::LargeLost,
            _ => Outcome::Passed,
        });
        Box::new(move |made: &Value| {
            if node_of(made) == other {
                return ended(2, "nodeup: unknown argument probe");
            }
            tries(made)
        })
    });
    let (control_plane, workers) = (&live.cluster.control_plane, &live.cluster.workers);
    let from = format!("from control-plane-eu-west-1a ({control_plane})");
    let to = format!("to nodes-eu-west-1a ({})", workers[0]);
    let other = format!("nodes-eu-west-1a ({})", workers[1]);
    let old = "its nodeup is of another kctl, and a rolling update replaces it after `kctl update --yes` (nodeup: unknown argument probe)";
    let row = |check: &str, subject: &str, state: &str, message: &str| {
        [check, subject, state, message].map(str::to_owned)
    };
    let silent = format!("kubelets, for logs, exec and metrics: no answer {from} {to}");
    let lost = format!(
        "packets of pods on different nodes: small packets pass, full ones (8951 bytes) are lost {from} {to}"
    );
    let mut rows = live.live_rows(4);
    let dns = rows.pop().expect("a row");
    assert_eq!(dns[1..3], ["2 nodes", "ok"]);
    assert_eq!(
        rows,
        [
            row("packets", &other, "not_known", old),
            row("connections", &other, "not_known", old),
            row(
                "connections",
                "control planes to nodes, tcp 10250",
                "problem",
                &silent
            ),
            row("packets", "pods to pods, udp", "problem", &lost),
        ]
    );
    assert!(live.objects().namespaces.is_empty());
}

/// An administrator deletes them: what others have named or labelled must not be among them, nor what is in use.
#[test]
fn only_namespaces_of_runs_that_ended_are_deleted_whatever_the_clock_here() {
    const HOUR: i64 = 60 * 60;
    let live = LiveCluster::start(|_| run_trials(|_, _| Outcome::Passed));
    for ahead in [-HOUR, 0, HOUR] {
        let stays = [
            ("kctl-preflight-00c0ffee", "true", 60),
            ("kctl-preflight-0badcaf", "true", HOUR),
            ("kctl-preflight-0badcafe0", "true", HOUR),
            ("kctl-preflight-database", "true", HOUR),
            ("kctl-preflight-fade0000", "true", HOUR),
            ("kctl-preflight-ffffffff", "yes", HOUR),
            ("payments", "true", HOUR),
        ];
        {
            let mut objects = live.objects();
            (objects.ahead, objects.remade) = (ahead, "kctl-preflight-fade0000");
            for (name, label, age) in stays {
                objects.put_namespace(name, label, age);
            }
            objects.put_namespace("kctl-preflight-0badcafe", "true", HOUR);
        }
        live.live_rows(0);
        let objects = live.objects();
        let left = objects.namespaces.keys().map(String::as_str);
        let stays: Vec<&str> = stays.iter().map(|(name, _, _)| *name).collect();
        assert_eq!(left.collect::<Vec<&str>>(), stays, "{ahead}");
    }
}

/// A cluster in which listeners run, and trials do not begin.
fn start_without_trials() -> LiveCluster {
    LiveCluster::start(|_| {
        let tries = run_trials(|_, _| Outcome::Passed);
        Box::new(
            move |pod: &Value| match name_of(pod).starts_with("listener-") {
                true => tries(pod),
                false => json!({"phase": "Pending"}),
            },
        )
    })
}

impl LiveCluster {
    /// Starts kctl with an option of `env` about signals, and waits until all pods are made and its namespace takes no more of them.
    fn start_until_restricted(&self, signals: &str) -> Child {
        self.objects().pods.clear();
        let kctl = &self.cluster.kctl;
        let child = kctl.start_with_signals(signals, &self.arguments());
        let begun = Instant::now();
        while !self.is_restricted() {
            let is_soon = begun.elapsed() < Duration::from_mins(1);
            assert!(is_soon, "{:?}", self.objects().namespaces);
            std::thread::sleep(Duration::from_millis(50));
        }
        child
    }

    /// True if all pods are made, and their namespace takes no more.
    fn is_restricted(&self) -> bool {
        let objects = self.objects();
        let mut names = objects.namespaces.keys();
        names.any(|name| objects.is_enforced(name, "restricted")) && objects.pods.len() == 9
    }
}

fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("a signal");
}

#[test]
fn an_interrupt_deletes_the_namespace_first() {
    let live = start_without_trials();
    // A terminal that closes sends more than one.
    let hangups = [Signal::HUP, Signal::HUP];
    for signals in [&[Signal::INT][..], &[Signal::TERM], &hangups] {
        let child = live.start_until_restricted("--default-signal=HUP");
        for signal in signals {
            send_signal(&child, *signal);
            std::thread::sleep(Duration::from_millis(100));
        }
        let ran = live.cluster.kctl.wait_for_end(child);
        assert_eq!(ran.code, 130, "{signals:?}: {}", ran.all_output());
        assert!(ran.err.contains("is deleted first"), "{}", ran.err);
        assert!(live.objects().namespaces.is_empty(), "{signals:?}");
    }
}

/// `nohup` keeps kctl from SIGHUP. Whoever may make pods in what a kill leaves gets no more from it than from any other namespace.
#[test]
fn a_terminal_is_outlived_under_nohup_and_what_a_kill_leaves_is_restricted_and_deleted_later() {
    let live = start_without_trials();
    let mut child = live.start_until_restricted("--ignore-signal=HUP");
    send_signal(&child, Signal::HUP);
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().expect("its state").is_none());
    child.kill().expect("killed");
    let ran = live.cluster.kctl.wait_for_end(child);
    assert!(!ran.err.contains("stopping"), "{}", ran.err);
    let names = || -> Vec<String> { live.objects().namespaces.keys().cloned().collect() };
    let left = names();
    assert_eq!(left.len(), 1);
    assert!(live.objects().is_enforced(&left[0], "restricted"));

    live.objects().ahead = 60 * 60;
    let mut next = live.start_until_restricted("--default-signal=HUP");
    let now = names();
    next.kill().expect("killed");
    next.wait().expect("its end");
    assert!(now.len() == 1 && now != left, "{left:?}, then {now:?}");
}

#[test]
fn what_cannot_be_tried_is_not_known() {
    let live = LiveCluster::start(|_| run_trials(|_, _| Outcome::Passed));
    live.objects().is_closed = true;
    let rows = live.live_rows(0);
    let [closed] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!(closed[..3], ["connections", "running nodes", "not_known"]);
    assert!(
        closed[3].ends_with("was not made: no new namespaces"),
        "{closed:?}"
    );
    assert!(live.objects().pods.is_empty());

    live.api.set_failure(500);
    let rows = live.live_rows(0);
    let [failing] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!(failing[..3], ["connections", "running nodes", "not_known"]);
    assert!(failing[3].contains(" answers 500"), "{failing:?}");

    let kctl = &live.cluster.kctl;
    let wrong = kctl.run(&["preflight", NAME, "--api-server", &live.api.url]);
    assert_eq!(wrong.code, 2, "{}", wrong.all_output());
    assert!(wrong.err.contains("add --live"), "{}", wrong.err);
}
