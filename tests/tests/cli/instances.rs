//! Instances that become nodes, or do not: what `validate` and `get instances` say of each.

use crate::api_server::{ApiServer, another_authority};
use crate::kctl::Kctl;
use crate::scenario::{NAME, REGION, kctl_with_cloud};
use crate::simulator::Simulator;
use node::pki::{Keyset, read_keyset};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// A cluster in AWS: one control plane, and workers in one zone. Its instances are pending.
pub struct Cluster {
    pub simulator: Simulator,
    pub kctl: Kctl,
    pub control_plane: String,
    pub workers: Vec<String>,
}

impl Cluster {
    pub fn new_cluster(workers: usize) -> Self {
        Self::create(workers, &[])
    }

    /// One that is created with more options.
    pub fn create(workers: usize, options: &[&str]) -> Self {
        let simulator = Simulator::with_machines();
        let kctl = kctl_with_cloud(&simulator);
        let workers_wanted = workers.to_string();
        let create = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
        let count = ["--node-count", &workers_wanted, "--yes"];
        kctl.run(&[&create[..], &count, options].concat())
            .expect_success();
        let found = simulator.run_python(
            REGION,
            "for r in boto('ec2').describe_instances()['Reservations']:\n for i in r['Instances']:\n  print({t['Key']: t['Value'] for t in i['Tags']}['kops.k8s.io/instancegroup'], i['InstanceId'])",
        );
        let (mut control_planes, mut workers) = (Vec::new(), Vec::new());
        for line in found.lines() {
            let (group, id) = line.split_once(' ').expect("a group and an instance");
            let control = group.starts_with("control-plane");
            let of = if control {
                &mut control_planes
            } else {
                &mut workers
            };
            of.push(id.to_owned());
        }
        workers.sort();
        Self {
            simulator,
            kctl,
            control_plane: control_planes.pop().expect("a control plane"),
            workers,
        }
    }

    /// Everything runs; each of these instances has written that.
    pub fn report_boots(&self, consoles: &[(&str, String)]) {
        let all = self.workers.iter().chain([&self.control_plane]);
        let running: Map<String, Value> = all.map(|id| (id.clone(), json!("running"))).collect();
        let base64 = |text: &String| {
            let code =
                format!("import base64\nprint(base64.b64encode({text:?}.encode()).decode())");
            self.simulator.run_python(REGION, &code)
        };
        let consoles: Map<String, Value> = consoles
            .iter()
            .map(|(id, text)| ((*id).to_owned(), json!(base64(text))))
            .collect();
        self.simulator
            .report_hosts(&json!({"instances": running, "consoles": consoles}));
    }

    /// The authority of the cluster, from its store.
    fn cluster_authority(&self) -> Keyset {
        let text = self.stored_text("pki/private/kubernetes-ca/keyset.yaml");
        read_keyset("kubernetes-ca", &text).expect("a keyset")
    }

    /// An object of the cluster's folder in its store.
    pub fn stored_text(&self, key: &str) -> String {
        let code = format!(
            "print(boto('s3').get_object(Bucket='state', Key='clusters/{NAME}/{key}')['Body'].read().decode())"
        );
        self.simulator.run_python(REGION, &code)
    }

    pub fn start_api(&self) -> ApiServer {
        ApiServer::start_server(&self.cluster_authority(), &format!("api.internal.{NAME}"))
    }

    /// What the API says of a cluster in which these instances have joined, and its control plane runs its parts.
    pub fn api_shows_joined(&self, api: &ApiServer, workers: &[&str]) {
        let control = node_object(&self.control_plane, "control-plane", true);
        let mut nodes = vec![control];
        nodes.extend(workers.iter().map(|id| node_object(id, "node", true)));
        api.set_objects(nodes, self.control_plane_pods());
    }

    pub fn control_plane_pods(&self) -> Vec<Value> {
        let part = |name: &str| {
            json!({
                "metadata": {"name": format!("{name}-{}", self.control_plane), "labels": {"k8s-app": name}},
                "spec": {"nodeName": self.control_plane, "priorityClassName": "system-cluster-critical", "containers": []},
                "status": {"phase": "Running", "containerStatuses": [
                    {"name": name, "ready": true, "image": "", "imageID": "", "restartCount": 0}
                ]},
            })
        };
        [
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
        ]
        .map(part)
        .to_vec()
    }

    fn count_calls(&self, name: &str) -> u64 {
        self.simulator.calls_by_operation()["calls"][name]
            .as_u64()
            .unwrap_or(0)
    }
}

pub fn node_object(id: &str, role: &str, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({
        "metadata": {"name": id, "labels": {format!("node-role.kubernetes.io/{role}"): ""}},
        "spec": {"providerID": format!("aws:///eu-west-1a/{id}")},
        "status": {
            "conditions": [{"type": "Ready", "status": status, "reason": "KubeletNotReady", "message": "no CNI configuration"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "architecture": "", "bootID": "", "containerRuntimeVersion": "",
                "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""},
        },
    })
}

/// A line of a stage on a console.
fn stage_line(source: &str, stage: &str, status: &str, detail: &str) -> String {
    let line = json!({"time": "2026-11-21T10:00:00Z", "source": source, "stage": stage, "status": status, "detail": detail});
    format!("[   21.0] cloud-init[812]: {line}\r\n")
}

/// The row of an instance.
fn instance_row<'a>(table: &'a str, id: &str) -> &'a str {
    let mut lines = table.lines();
    lines
        .find(|line| line.starts_with(id))
        .unwrap_or_else(|| panic!("{id} in {table}"))
}

/// Output without what is another in every run: the ids of instances, and the order that follows from them.
fn without_ids(text: &str) -> String {
    let id = |word: &str| word.starts_with("i-") && word.len() == 19;
    let plain = |line: &str| match line.split_once(' ') {
        Some((first, rest)) if id(first) => format!("i-{} {rest}", "0".repeat(17)),
        _ => line.to_owned(),
    };
    let mut lines: Vec<String> = text.lines().map(plain).collect();
    let same = |a: &String, b: &String| a.starts_with("i-0") == b.starts_with("i-0");
    for rows in lines.chunk_by_mut(same) {
        if rows[0].starts_with("i-0") {
            rows.sort();
        }
    }
    lines.join("\n")
}

/// An instance's fault: where it is known from, what is said of it, and what to do.
struct Fault<'a> {
    id: &'a str,
    source: &'static str,
    line: &'static str,
    next: &'static str,
}

impl Cluster {
    /// Its first workers come up with the faults of the promise: port 3988 closed, nodeup not to be fetched, an image that
    /// does not boot, a wrong hash; and one whose nodeup reported an error.
    fn faulty_workers(&self) -> [Fault<'_>; 5] {
        let [closed, fetchless, broken, wrong, reported, ..] = &self.workers[..] else {
            panic!("{:?}", self.workers);
        };
        let unreachable =
            "could not reach the control plane at https://lb.example.com:3988: connection refused";
        let user_data = |detail| stage_line("user-data", "fetch", "failed", detail);
        self.report_boots(&[
            (
                closed,
                stage_line("user-data", "fetch", "finished", "")
                    + &stage_line("user-data", "start", "finished", "")
                    + &stage_line("nodeup", "fetch", "started", "")
                    + &stage_line("nodeup", "fetch", "failed", unreachable),
            ),
            (fetchless, user_data("s3://state/clusters: timed out")),
            (
                broken,
                "[ 1.1] Kernel panic - not syncing: VFS: Unable to mount root fs\n".to_owned(),
            ),
            (wrong, user_data("s3://state/clusters: wrong sha256 00ff")),
        ]);
        self.store_report(reported, "containerd.service did not start: exit code 1");
        let fault = |id, source, line, next| Fault {
            id,
            source,
            line,
            next,
        };
        [
            fault(
                closed,
                "console",
                "nodeup/fetch: could not reach the control plane",
                "3988",
            ),
            fault(
                fetchless,
                "console",
                "user-data/fetch: s3://state/clusters: timed out",
                "route to S3",
            ),
            fault(broken, "console", "boot: [ 1.1] Kernel panic", "image"),
            fault(
                wrong,
                "console",
                "user-data/fetch: s3://state/clusters: wrong sha256",
                "kctl update --yes uploads it",
            ),
            fault(
                reported,
                "boot report",
                "nodeup/apply: containerd.service did not start",
                "journalctl -u nodeup",
            ),
        ]
    }

    /// An instance's report is in the store.
    pub fn store_report(&self, id: &str, error: &str) {
        let report = json!({
            "format": 1, "instance": id, "cluster": NAME, "group": "nodes-eu-west-1a", "release": "0.1.0", "nodeConfig": "",
            "started": "2026-11-21T10:00:00Z", "stages": [{"name": "apply", "status": "failed", "seconds": 2.0}],
            "changes": 3, "changed": ["unit/containerd.service"], "error": error,
        });
        self.store_object(&format!("nodes/{id}.json"), &report.to_string());
    }

    /// That is in the cluster's folder of the store.
    pub fn store_object(&self, key: &str, body: &str) {
        let key = format!("clusters/{NAME}/{key}");
        let code = format!("boto('s3').put_object(Bucket='state', Key={key:?}, Body={body:?})");
        self.simulator.run_python(REGION, &code);
    }
}

#[test]
fn a_machine_that_has_not_joined_shows_how_far_it_came_and_what_stopped_it() {
    let cluster = Cluster::new_cluster(6);
    let faults = cluster.faulty_workers();
    let well = cluster.workers.last().expect("a sixth");
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[well]);

    cluster.simulator.forget_calls();
    let get = ["get", "instances", "--api-server", &api.url];
    let ran = cluster.kctl.run(&get);
    let hints = ran.err.clone();
    let table = ran.expect_success();
    for fault in &faults {
        let row = instance_row(&table, fault.id);
        for words in ["not joined", fault.source, fault.line] {
            assert!(row.contains(words), "{words}: {row}");
        }
        assert!(hints.contains(fault.next), "{}: {hints}", fault.next);
    }
    for id in [well, &cluster.control_plane] {
        let row = instance_row(&table, id);
        assert!(row.contains(" Ready ") && row.contains(" yes "), "{row}");
    }
    // One sweep; then a console for each of those that have not joined and left no report.
    assert_eq!(
        cluster.count_calls("autoscaling.DescribeAutoScalingGroups"),
        1
    );
    assert_eq!(cluster.count_calls("ec2.DescribeInstances"), 1);
    assert_eq!(cluster.count_calls("ec2.GetConsoleOutput"), 4);
    assert_eq!(cluster.simulator.calls_by_operation()["aws"], json!(6));

    let ran = cluster.kctl.run(&["validate", "--api-server", &api.url]);
    assert_eq!(ran.code, 3, "{}", ran.all_output());
    assert!(
        ran.err.contains("is not healthy: 5 problems"),
        "{}",
        ran.err
    );
    for fault in &faults {
        let row = instance_row(&ran.out, fault.id);
        assert!(
            row.contains(fault.source) && row.contains(fault.line),
            "{row}"
        );
        let heading = format!("Machine/{}", fault.id);
        assert!(
            ran.out.contains(&heading) && ran.out.contains(fault.next),
            "{}",
            ran.out
        );
    }
    assert_eq!(cluster.count_calls("ec2.GetConsoleOutput"), 8);

    let json = cluster.kctl.run(&[&get[..], &["-o", "json"]].concat());
    let machines: Value = serde_json::from_str(&json.expect_success()).expect("JSON");
    let mut all = machines.as_array().expect("a list").iter();
    let reported = all.find(|machine| machine["start"]["knownFrom"] == "report");
    let start = &reported.expect("one that reported")["start"];
    assert_eq!(start["changes"], json!(3));
    assert_eq!(start["changed"], json!(["unit/containerd.service"]));
}

/// All Nodes are Ready, and one control plane runs no etcd; what workers, instances that are gone and thieves wrote beside it says nothing.
/// A problem that an operator ignores is shown, and the cluster counts as healthy.
fn expect_ignored_on_request(cluster: &Cluster, validate: &[&str]) {
    let ignore = ["--ignore", "pod", "--ignore", "Machine/i-*"];
    let ran = cluster.kctl.run(&[validate, &ignore].concat());
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    assert!(
        ran.out.contains("Ignored:") && !ran.out.contains("Problems:"),
        "{}",
        ran.out
    );
    let ran = cluster.kctl.run(&["validate", "--ignore", "api"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err
            .contains("an API that does not answer cannot be ignored"),
        "{}",
        ran.err
    );
}

#[test]
fn what_protokube_of_a_control_plane_refuses_is_shown_after_it_joined() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    let control = cluster.control_plane.as_str();
    let says = |id: &str, of: &str, waits: Value| {
        let said = json!({"format": 1, "instance": of, "release": "0.1.0", "written": "", "waits": waits, "new": 1});
        cluster.store_object(&format!("nodes/{id}.protokube.json"), &said.to_string());
    };
    let wait = |role: &str, about: &str, message: &str| json!({"role": role, "about": about, "failed": true, "message": message, "since": "2026-11-21T10:00:00Z"});
    let gone = "the log of member a of etcd main is gone\u{1b}[2J";
    let refused = json!([
        wait("dns", "", "no API"),
        wait("etcd-main", "member a", gone)
    ]);
    says(control, control, refused.clone());
    let others = [cluster.workers[0].as_str(), "i-0gone"];
    others.iter().for_each(|id| says(id, id, refused.clone()));
    let line = "protokube/etcd-main: member a: the log of member a of etcd main is gone [2J (for ";

    let validate = ["validate", "--api-server", &api.url];
    let ran = cluster.kctl.run(&validate);
    assert_eq!(ran.code, 3, "{}", ran.all_output());
    assert!(ran.err.contains("is not healthy: 1 problem"), "{}", ran.err);
    assert!(ran.err.contains("journalctl -u protokube"), "{}", ran.err);
    let problem = ran.out.lines().find(|line| line.contains("Machine/"));
    let problem = problem.unwrap_or_else(|| panic!("{}", ran.out));
    assert!(
        problem.contains(control) && problem.contains(line),
        "{problem}"
    );
    let ran = cluster.kctl.run(&[&validate[..], &["-o", "json"]].concat());
    let said: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!((ran.code, &said["healthy"]), (3, &json!(false)));
    assert_eq!(said["findings"].as_array().map(Vec::len), Some(1));
    let message = said["findings"][0]["message"].as_str().expect("text");
    assert!(message.contains(line), "{message}");

    expect_ignored_on_request(&cluster, &validate);

    let get = ["get", "instances", "--api-server", &api.url];
    let table = cluster.kctl.run(&get).expect_success();
    let own = instance_row(&table, control);
    assert!(own.contains(" Ready ") && own.contains(line), "{own}");
    assert!(!instance_row(&table, others[0]).contains("etcd"), "{table}");
    let json = cluster.kctl.run(&[&get[..], &["-o", "json"]].concat());
    let machines: Value = serde_json::from_str(&json.expect_success()).expect("JSON");
    let mut all = machines.as_array().expect("a list").iter();
    let own = all.find(|machine| machine["id"] == control).expect("it");
    let roles: Vec<&Value> = own["waits"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["role"])
        .collect();
    assert_eq!(roles, [&json!("etcd-main"), &json!("dns")]);

    let healthy = |told: &str| {
        let ran = cluster.kctl.run(&validate);
        assert_eq!(ran.code, 0, "{}", ran.all_output());
        assert!(ran.err.contains(told), "{}", ran.err);
    };
    says(control, control, json!([]));
    healthy("is healthy");
    says(control, "i-0other", refused);
    healthy("is not what protokube waits for: the report belongs to another instance");
    let key = format!("clusters/{NAME}/nodes/{control}.protokube.json");
    let long = format!("boto('s3').put_object(Bucket='state', Key={key:?}, Body=300000 * 'x')");
    cluster.simulator.run_python(REGION, &long);
    healthy("is not what protokube waits for: the report has more than");
}

#[test]
fn a_cluster_where_all_have_joined_is_healthy_and_costs_two_calls() {
    let cluster = Cluster::new_cluster(2);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    let workers: Vec<&str> = cluster.workers.iter().map(String::as_str).collect();
    cluster.api_shows_joined(&api, &workers);
    cluster.simulator.forget_calls();
    let ran = cluster.kctl.run(&[
        "validate",
        "cluster",
        NAME,
        "--api-server",
        &api.url,
        "--count",
        "2",
        "--interval",
        "50ms",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    assert!(ran.err.contains("is healthy"), "{}", ran.err);
    assert_eq!(
        cluster.simulator.calls_by_operation()["aws"],
        json!(4),
        "two looks"
    );
    let shown = without_ids(&ran.out);
    insta::assert_snapshot!("healthy", shown);

    let json = cluster
        .kctl
        .run(&["validate", "-o", "json", "--api-server", &api.url])
        .expect_success();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["format"], &json["healthy"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(3));
    let yaml = cluster
        .kctl
        .run(&["validate", "-o", "yaml", "--api-server", &api.url])
        .expect_success();
    assert!(yaml.contains("healthy: true"), "{yaml}");
    let names = cluster
        .kctl
        .run(&["get", "instances", "-o", "name", "--api-server", &api.url])
        .expect_success();
    assert_eq!(names.lines().count(), 3);
}

#[test]
fn a_machine_from_an_older_launch_template_is_not_up_to_date() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    let edit = [
        "edit",
        "ig",
        "nodes-eu-west-1a",
        "--set",
        "spec.machineType=t3.large",
    ];
    cluster.kctl.run(&edit).expect_success();
    cluster.kctl.run(&["update", "--yes"]).expect_success();
    let json = cluster
        .kctl
        .run(&["get", "instances", "-o", "json", "--api-server", &api.url])
        .expect_success();
    let machines: Value = serde_json::from_str(&json).expect("JSON");
    let of = |id: &str| {
        let mut all = machines.as_array().expect("a list").iter();
        all.find(|machine| machine["id"] == id).expect("it").clone()
    };
    assert_eq!(of(&cluster.workers[0])["upToDate"], json!(false));
    assert_eq!(of(&cluster.control_plane)["upToDate"], json!(true));
    assert_eq!(of(&cluster.workers[0])["membership"], json!("ready"));
}

#[test]
fn without_an_api_both_commands_say_why_and_show_what_aws_knows() {
    let cluster = Cluster::new_cluster(1);
    let worker = &cluster.workers[0];
    // An address that was closed a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = format!("https://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let stranger = ApiServer::start_server(&another_authority(), &format!("api.internal.{NAME}"));
    let misnamed = ApiServer::start_server(&cluster.cluster_authority(), "api.other.example.com");
    let failing = cluster.start_api();
    failing.set_failure(500);
    for (url, words) in [
        (closed.as_str(), "onnection refused"),
        (&stranger.url, "a certificate that is not this cluster's"),
        (&misnamed.url, "a certificate that is not this cluster's"),
        (&failing.url, "answers 500: etcdserver: request timed out"),
        (
            "https://203.0.113.123",
            "the address that stands for \"not yet\"",
        ),
        ("https://nowhere.invalid", "has no address"),
    ] {
        let ran = cluster.kctl.run(&["get", "instances", "--api-server", url]);
        assert_eq!(ran.code, 0, "{}", ran.all_output());
        assert!(
            ran.err.contains(words) && ran.err.contains("hint: "),
            "{words}: {}",
            ran.err
        );
        let row = instance_row(&ran.out, worker);
        assert!(
            row.contains("unknown") && row.contains("pending") && row.contains("EC2 starts it"),
            "{row}"
        );
        let ran = cluster.kctl.run(&["validate", "--api-server", url]);
        assert_eq!(ran.code, 3, "{}", ran.all_output());
        assert!(
            ran.out.contains(words) && ran.out.contains("next: "),
            "{words}: {}",
            ran.out
        );
        assert!(!ran.out.contains("nothing is known"), "{}", ran.out);
    }
    cluster.report_boots(&[]);
    let ran = cluster
        .kctl
        .run(&["get", "instances", "--api-server", &closed]);
    let out = ran.expect_success();
    assert!(
        instance_row(&out, worker).contains("nothing is known yet; launched"),
        "{out}"
    );
}

#[test]
fn waiting_survives_an_api_that_comes_and_goes_and_ends_when_all_is_well() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    api.set_failure(503);
    let wait = [
        "validate",
        "--wait",
        "2m",
        "--interval",
        "100ms",
        "--count",
        "2",
        "--api-server",
        &api.url,
    ];
    let mut waits = cluster.kctl.start_command(&wait, Stdio::null());
    let mut told = BufReader::new(waits.stderr.take().expect("its words")).lines();
    let mut hears = |words: &str| {
        let said = told.find(|line| line.as_ref().is_ok_and(|line| line.contains(words)));
        assert!(said.is_some(), "it never says {words}");
    };
    hears("answers 503");
    cluster.api_shows_joined(&api, &[]);
    hears("has not joined");
    cluster.simulator.set_faults(&json!([{"service": "ec2", "operation": "DescribeInstances", "times": 1, "code": "InternalFailure", "status": 400}]));
    hears("could not be looked at");
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    hears("is healthy, 1 of 2 times");
    hears("demo.example.com is healthy");
    let ran = cluster.kctl.wait_for_end(waits);
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    // The last state, once.
    assert_eq!(ran.out.matches("DESIRED").count(), 1, "{}", ran.out);

    api.set_failure(500);
    let ran = cluster.kctl.run(&[
        "validate",
        "--wait",
        "300ms",
        "--interval",
        "100ms",
        "--api-server",
        &api.url,
    ]);
    assert_eq!(ran.code, 3, "{}", ran.all_output());
    assert!(ran.out.contains("answers 500"), "{}", ran.out);
}

#[test]
fn a_cluster_that_was_never_made_says_so() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    kctl.run(&["create", "cluster", NAME, "--zones", "eu-west-1a"])
        .expect_success();
    let ran = kctl.run(&["validate"]);
    assert_eq!(ran.code, 3, "{}", ran.all_output());
    for words in [
        "the cluster has no keys yet",
        "kctl update demo.example.com --yes",
        "it is not in AWS yet",
    ] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    let ran = kctl.run(&["get", "instances"]);
    assert!(ran.err.contains("has no instances"), "{}", ran.err);
    assert_eq!(ran.code, 0);
}

#[test]
fn a_kubeconfig_for_a_balancers_name_says_whose_certificate_to_expect() {
    let cluster = Cluster::new_cluster(1);
    cluster
        .kctl
        .run(&["export", "kubeconfig", "--admin"])
        .expect_success();
    let path = cluster.kctl.home_path("kubeconfig");
    let text = std::fs::read_to_string(path).expect("a kubeconfig");
    let config: Value = serde_saphyr::from_str(&text).expect("YAML");
    let cluster_of = &config["clusters"][0]["cluster"];
    let server = cluster_of["server"].as_str().expect("a server");
    assert!(server.contains(".elb.eu-west-1.amazonaws.com"), "{server}");
    assert_eq!(
        cluster_of["tls-server-name"],
        json!(format!("api.internal.{NAME}"))
    );
}

#[test]
fn a_kubeconfig_follows_the_balancer_after_it_was_exchanged_and_leaves_an_address_of_the_users() {
    let cluster = Cluster::new_cluster(1);
    let kctl = &cluster.kctl;
    let path = kctl.home_path("kubeconfig");
    let read = || std::fs::read_to_string(&path).expect("a kubeconfig");
    let _ = std::fs::remove_file(&path);
    kctl.run(&["update", "--yes"]).expect_success();
    assert!(!path.exists(), "there was none to follow with");
    kctl.run(&["export", "kubeconfig", "--admin"])
        .expect_success();
    let current = read();
    let config: Value = serde_saphyr::from_str(&current).expect("YAML");
    let server = config["clusters"][0]["cluster"]["server"]
        .as_str()
        .expect("a server");
    let old = "https://api-old-0123456789abcdef.elb.eu-west-1.amazonaws.com";
    std::fs::write(&path, current.replace(server, old)).expect("a file");

    // A preview changes nothing, and neither does an update that may not.
    kctl.run(&["update"]).expect_success();
    kctl.run(&["update", "--yes", "--create-kube-config=false"])
        .expect_success();
    assert!(read().contains(old));
    let ran = kctl.run(&["update", "--yes"]);
    assert!(
        ran.err.contains(&format!("instead of {old}")),
        "{}",
        ran.all_output()
    );
    let followed: Value = serde_saphyr::from_str(&read()).expect("YAML");
    assert_eq!(followed, config, "the address is new, the user stays");
    let ran = kctl.run(&["update", "--yes"]);
    assert!(!ran.err.contains("instead of"), "{}", ran.all_output());

    kctl.run(&[
        "export",
        "kubeconfig",
        "--admin",
        "--api-server",
        "https://127.0.0.1:6443",
    ])
    .expect_success();
    let tunnel = read();
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(read(), tunnel);

    // Something else in its place stops no update.
    std::fs::write(&path, "- a list\n").expect("a file");
    let ran = kctl.run(&["update", "--yes"]);
    assert!(
        ran.err.contains("is not a kubeconfig"),
        "{}",
        ran.all_output()
    );
    ran.expect_success();
    assert_eq!(read(), "- a list\n");
}
