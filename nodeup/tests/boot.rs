//! Instances become nodes, whatever is unavailable, killed or refused meanwhile.
#![cfg(test)]

mod support;

use node::config::{Arch, IMAGE_PULLS, ImageArchive, WarmPool};
use node::report::{BootReport, StageLine, Status, changed_line, report_key};
use node::secret::{Secret, stored_path, write_stored};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;
use support::autoscaling::{Requests, start_autoscaling};
use support::bootstrap::{FakeEndpoint, PASSWORDS, ScriptedAnswer, mint_authority};
use support::files::Behaviour;
use support::imds::{scaling_metadata_service, slow_metadata_service};
use support::test_instance::{RunResult, TestInstance, file_content, finished_stages, sha256};

const STAGES: [&str; 5] = ["identify", "fetch", "verify", "build", "apply"];

/// A worker and the bootstrap endpoint with its NodeConfig.
fn start_worker_fixture(script: Vec<ScriptedAnswer>) -> (TestInstance, FakeEndpoint) {
    worker_with(script, None)
}

fn worker_with(script: Vec<ScriptedAnswer>, name: Option<&str>) -> (TestInstance, FakeEndpoint) {
    let authority = mint_authority();
    let mut instance = TestInstance::new_worker(&authority, &[]);
    let endpoint = FakeEndpoint::start(authority, &instance.stored.text, script, name);
    // The name differs from the one in the certificate, as with a load balancer.
    let server = format!("https://localhost:{}", endpoint.address.port());
    instance.boot.bootstrap_servers = vec![server];
    instance.write_boot();
    (instance, endpoint)
}

#[test]
fn a_worker_joins_becomes_a_node_and_says_so() {
    let (instance, endpoint) = start_worker_fixture(Vec::new());
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    let outline = STAGES
        .iter()
        .chain(&["report"])
        .flat_map(|stage| [format!("{stage} started"), format!("{stage} finished")]);
    assert_eq!(ran.outline(), outline.collect::<Vec<_>>());

    let joins = endpoint.join_requests();
    assert_eq!(joins.len(), 1);
    assert_eq!(joins[0].node_config, instance.stored.sha256);
    let kept = fs::read_to_string(instance.host_path("opt/kctl/node-config.yaml")).unwrap();
    assert_eq!(kept, instance.stored.text);
    assert_eq!(
        fs::read(instance.host_path("usr/local/bin/kubelet")).unwrap(),
        b"kubelet"
    );
    assert_eq!(
        fs::read(instance.host_path("usr/bin/ctr")).unwrap(),
        b"bin/ctr"
    );
    let pem =
        fs::read_to_string(instance.host_path("var/lib/kubelet/pki/kubelet-client-current.pem"));
    assert!(pem.unwrap().contains("PRIVATE KEY"));
    let started = fs::read_to_string(instance.program_file("started")).unwrap();
    let place = |name: &str| started.lines().position(|unit| unit == name).unwrap();
    assert!(place("containerd.service") < place(IMAGE_PULLS));

    let reports = endpoint.boot_reports();
    assert_eq!(reports.len(), 1);
    assert_eq!(finished_stages(&reports[0].stages), STAGES);
    assert!(reports[0].changes > 10 && reports[0].error.is_none());
    assert_eq!(reports[0].fips, cfg!(feature = "fips"));
    // The report and a log line name the changes.
    let line = changed_line(reports[0].changes, &reports[0].changed);
    assert!(line.contains("certificate/"), "{line}");
    assert!(
        ran.lines
            .iter()
            .any(|entry| entry.stage == "apply" && entry.detail == line),
        "{ran:#?}"
    );
}

#[test]
fn a_node_that_starts_again_asks_nobody_and_changes_nothing() {
    let (mut instance, endpoint) = start_worker_fixture(Vec::new());
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    let before = instance.file_tree();
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    assert_eq!(endpoint.join_requests().len(), 1);
    assert_eq!(endpoint.boot_reports()[1].changes, 0);
    assert_eq!(instance.file_tree(), before);

    // The same without any control plane, mirror or package server.
    instance.boot.bootstrap_servers = vec!["https://127.0.0.1:1".into()];
    instance.write_boot();
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    // No file here contains the name of the control plane, so another name changes nothing.
    assert_eq!(instance.file_tree(), before);
    assert!(
        instance
            .downloads
            .iter()
            .all(|server| server.request_count() == 1)
    );
    let (last, detail) = ran.last_line();
    assert_eq!(last, "report failed");
    assert!(detail.contains("127.0.0.1:1"), "{detail}");
}

/// A worker of a group with a warm pool, the state that Auto Scaling wants it in, and what it tells Auto Scaling.
fn start_warm_worker(
    early: usize,
    hook_seconds: Option<u64>,
    images: &[&str],
) -> (TestInstance, FakeEndpoint, Arc<Mutex<String>>, Requests) {
    let authority = mint_authority();
    let images = images.iter().map(|name| format!("r.example.com/{name}:1"));
    let pool = WarmPool {
        hook_seconds,
        images: images.collect(),
    };
    let mut instance = TestInstance::new_worker(&authority, &[])
        .with_config(|config| config.warm_pool = Some(pool));
    let endpoint = FakeEndpoint::start(authority, &instance.stored.text, Vec::new(), None);
    let server = format!("https://localhost:{}", endpoint.address.port());
    instance.boot.bootstrap_servers = vec![server];
    instance.write_boot();
    let state = Arc::new(Mutex::new("Warmed:Stopped".to_owned()));
    let (autoscaling, requests) = start_autoscaling(early);
    instance.environment = vec![
        (
            "AWS_EC2_METADATA_SERVICE_ENDPOINT",
            scaling_metadata_service(state.clone()),
        ),
        ("AWS_ENDPOINT_URL_AUTOSCALING", autoscaling),
    ];
    (instance, endpoint, state, requests)
}

fn kubelet_starts(instance: &TestInstance) -> usize {
    let started = fs::read_to_string(instance.program_file("started")).unwrap_or_default();
    let starts = started.lines().filter(|unit| *unit == "kubelet.service");
    starts.count()
}

fn is_begin(line: &StageLine, stage: &str) -> bool {
    line.stage == stage && line.status == Status::Started && line.detail.is_empty()
}

/// Where these stages begin, in their order.
fn stages_among(ran: &RunResult, stages: &[&str]) -> Vec<String> {
    let lines = ran.lines.iter();
    let begun = lines.filter(|line| stages.iter().any(|stage| is_begin(line, stage)));
    begun.map(|line| line.stage.clone()).collect()
}

/// Auto Scaling may come to the hook after nodeup has.
#[test]
fn an_instance_of_a_warm_pool_prepares_stops_and_joins_when_it_is_started_again() {
    let (instance, endpoint, state, requests) =
        start_warm_worker(1, Some(600), &["app", "missing"]);
    // The user's scripts run until some time after the images are there.
    fs::create_dir_all(instance.program_file("units")).unwrap();
    let scripts = instance.program_file("units/cloud-final.service.activating");
    fs::write(&scripts, "").unwrap();
    let (pulled, seen) = (instance.program_file("pulled"), requests.clone());
    let user = std::thread::spawn(move || {
        while !pulled.exists() {
            sleep(Duration::from_millis(50));
        }
        sleep(Duration::from_secs(5));
        assert_eq!(seen.lock().unwrap().len(), 0, "scripts would be cut off");
        fs::remove_file(scripts).unwrap();
    });
    let ran = instance.run_while(|line| !is_begin(line, "wait"));
    user.join().unwrap();
    assert_eq!(
        stages_among(&ran, &["warm", "report", "launch", "wait"]),
        ["warm", "report", "launch", "wait"]
    );
    let finished: Vec<String> = ran.outline();
    for stage in ["apply", "warm", "report", "launch"] {
        assert!(finished.contains(&format!("{stage} finished")), "{ran:#?}");
    }
    assert_eq!(kubelet_starts(&instance), 0);
    assert!(
        !instance
            .program_file("units/kubelet.service.enabled")
            .exists()
    );
    assert!(instance.host_path("usr/local/bin/kubelet").exists());
    assert!(!instance.host_path("opt/kctl/in-service").exists());
    let pulled = fs::read_to_string(instance.program_file("pulled")).unwrap();
    assert_eq!(pulled, "r.example.com/app:1\n");
    let [cause] = ran.failure_causes("warm")[..] else {
        panic!("{ran:#?}");
    };
    assert!(cause.starts_with("r.example.com/missing:1"), "{cause}");
    assert_eq!(requests.lock().unwrap().len(), 2);
    let told = requests.lock().unwrap()[1].clone();
    for part in [
        "CompleteLifecycleAction",
        "LifecycleHookName=kops-warmpool",
        "InstanceId=i-0abc",
        "LifecycleActionResult=CONTINUE",
    ] {
        assert!(told.contains(part), "{told}");
    }

    *state.lock().unwrap() = "InService".to_owned();
    instance.reboot("second");
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    // Auto Scaling gives up a node that waits for its report first.
    assert_eq!(
        stages_among(&ran, &["report", "launch"]),
        ["launch", "report"]
    );
    assert_eq!(kubelet_starts(&instance), 1);
    assert_eq!(requests.lock().unwrap().len(), 3);
    assert!(instance.host_path("opt/kctl/in-service").exists());
    // It has its certificates, and asks nobody.
    assert_eq!(endpoint.join_requests().len(), 1);
    let pulled = fs::read_to_string(instance.program_file("pulled")).unwrap();
    assert_eq!(pulled.lines().count(), 1);

    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    assert_eq!(requests.lock().unwrap().len(), 3, "once is enough");
    assert_eq!(kubelet_starts(&instance), 1);
}

/// A hook that was added since: an instance that completes none would be ended as a node.
#[test]
fn an_instance_that_knows_no_hook_completes_one_that_waits() {
    let (instance, _endpoint, state, requests) = start_warm_worker(1, None, &[]);
    *state.lock().unwrap() = "InService".to_owned();
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    assert_eq!(
        stages_among(&ran, &["report", "launch"]),
        ["report", "launch"]
    );
    assert_eq!(requests.lock().unwrap().len(), 2);
    assert!(instance.host_path("opt/kctl/in-service").exists());
}

/// The metadata service may give the state of before for a while.
#[test]
fn an_instance_that_prepares_although_it_enters_service_joins_at_once() {
    let (instance, endpoint, state, requests) = start_warm_worker(0, Some(600), &["app"]);
    let ran = instance.run_while(|line| {
        if is_begin(line, "warm") {
            *state.lock().unwrap() = "InService".to_owned();
        }
        true
    });
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    assert_eq!(kubelet_starts(&instance), 1);
    assert_eq!(
        stages_among(&ran, &["apply", "warm", "launch", "wait"]),
        ["apply", "warm", "launch", "wait", "apply", "launch"]
    );
    // Only once it is a node.
    assert_eq!(requests.lock().unwrap().len(), 1);
    assert_eq!(endpoint.join_requests().len(), 1);
}

#[test]
fn neither_pulls_nor_scripts_keep_an_instance_from_its_pool_for_ever() {
    let (instance, _endpoint, _state, requests) =
        start_warm_worker(0, Some(24), &["app", "slow", "zebra"]);
    fs::create_dir_all(instance.program_file("units")).unwrap();
    let scripts = instance.program_file("units/cloud-final.service.activating");
    fs::write(scripts, "").unwrap();
    let ran = instance.run_while(|line| !is_begin(line, "wait"));
    let causes = ran.failure_causes("warm");
    for (cause, part) in causes.iter().zip(["slow:1", "zebra:1", "scripts"]) {
        assert!(cause.contains(part), "{causes:#?}");
    }
    assert_eq!(causes.len(), 3, "{causes:#?}");
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[test]
fn what_may_be_otherwise_later_is_asked_again_and_each_cause_is_told_once() {
    let busy = ScriptedAnswer::Refusal("503 Service Unavailable", "the API is not up yet", true);
    let ready = ScriptedAnswer::Refusal("409 Conflict", "the Node is Ready with another key", true);
    let script = vec![
        busy.clone(),
        busy,
        ScriptedAnswer::Proxy("502 Bad Gateway"),
        ready,
    ];
    let (instance, endpoint) = start_worker_fixture(script);
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    let causes = ran.failure_causes("fetch");
    assert_eq!(causes.len(), 3, "{causes:#?}");
    for (cause, text) in causes.iter().zip(["not up yet", "502", "another key"]) {
        assert!(cause.contains(text), "{cause}");
    }
    assert_eq!(endpoint.join_requests().len(), 5);
}

#[test]
fn a_refusal_for_good_is_told_on_the_console_and_in_the_report() {
    let refusal = ScriptedAnswer::Refusal("403 Forbidden", "i-0abc is of group other", false);
    let (instance, endpoint) = start_worker_fixture(vec![refusal]);
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(1));
    assert!(ran.failure_causes("fetch")[0].contains("i-0abc is of group other"));
    let report = &endpoint.boot_reports()[0];
    assert!(report.error.as_ref().unwrap().contains("of group other"));
    assert_eq!(finished_stages(&report.stages), ["identify"]);
}

#[test]
fn a_configuration_with_another_hash_is_refused_whoever_sends_it() {
    let authority = mint_authority();
    let mut instance = TestInstance::new_worker(&authority, &[]);
    let other = instance.stored.text.clone() + "\n";
    let endpoint = FakeEndpoint::start(authority, &other, Vec::new(), None);
    instance.boot.bootstrap_servers = vec![endpoint.url()];
    instance.write_boot();
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(1));
    assert!(
        ran.failure_causes("verify")[0].contains("user data names"),
        "{ran:#?}"
    );
    assert!(!instance.host_path("opt/kctl/node-config.yaml").exists());
    assert!(endpoint.boot_reports()[0].error.is_some());
}

/// Runs nodeup until it logs the given cause.
fn first_cause(instance: &TestInstance) -> String {
    let mut nodeup = instance.start_nodeup(&[]);
    let lines = BufReader::new(nodeup.stderr.take().unwrap()).lines();
    let cause = lines
        .map_while(Result::ok)
        .find(|line| line.contains("\"status\":\"failed\""));
    nodeup.kill().unwrap();
    nodeup.wait().unwrap();
    cause.unwrap()
}

#[test]
fn an_endpoint_that_is_not_the_clusters_is_told_nothing() {
    // First another name under the same authority, then the same name under another authority.
    let (instance, endpoint) = worker_with(Vec::new(), Some("kubernetes"));
    let cause = first_cause(&instance);
    assert!(cause.contains("certificate"), "{cause}");
    assert_eq!(endpoint.join_requests().len(), 0);

    let (mut instance, endpoint) = start_worker_fixture(Vec::new());
    instance.boot.ca_certificates = Some(node::pki::trust_bundle(&mint_authority()));
    instance.write_boot();
    let cause = first_cause(&instance);
    assert!(cause.contains("certificate"), "{cause}");
    assert_eq!(endpoint.join_requests().len(), 0);
}

#[test]
fn an_instance_that_dies_while_joining_asks_for_the_same_keys_again() {
    let busy = ScriptedAnswer::Refusal("503 Service Unavailable", "busy", true);
    let (instance, _endpoint) = start_worker_fixture(vec![busy]);
    first_cause(&instance);
    let keys = |instance: &TestInstance| {
        ["kubelet", "kube-proxy"]
            .map(|of| fs::read(instance.host_path(&format!("opt/kctl/keys/{of}.key"))).unwrap())
    };
    let before = keys(&instance);
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    assert_eq!(keys(&instance), before);
}

#[test]
fn killed_anywhere_it_ends_as_the_same_node() {
    let (instance, endpoint) = start_worker_fixture(Vec::new());
    for pause in [5, 30, 80, 150, 250, 400, 700, 1000] {
        let mut nodeup = instance.start_nodeup(&[]);
        sleep(Duration::from_millis(pause));
        nodeup.kill().unwrap();
        nodeup.wait().unwrap();
    }
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    let again = instance.run(&[]);
    assert_eq!(again.exit_code, Some(0), "{again:#?}");
    assert_eq!(endpoint.boot_reports().last().unwrap().changes, 0);
}

#[test]
fn a_control_plane_takes_everything_from_its_store() {
    let instance = TestInstance::control_plane();
    for changes in [true, false] {
        let ran = instance.run(&[]);
        assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
        let report = fs::read(instance.store_path(&report_key("i-0abc"))).unwrap();
        let report: BootReport = serde_json::from_slice(&report).unwrap();
        assert_eq!(finished_stages(&report.stages), STAGES);
        assert_eq!(report.changes > 0, changes, "{report:#?}");
    }
    assert_eq!(
        fs::read(instance.host_path("opt/kctl/protokube")).unwrap(),
        b"protokube"
    );
    let server = instance.host_path("srv/kubernetes/kube-apiserver/server.crt");
    assert!(
        fs::read_to_string(server)
            .unwrap()
            .contains("BEGIN CERTIFICATE")
    );
}

/// Paths where kubelet and other programs look for passwords of image registries.
const DOCKER_CONFIGS: [&str; 2] = ["var/lib/kubelet/config.json", "root/.docker/config.json"];

fn file_mode(instance: &TestInstance, path: &str) -> u32 {
    fs::metadata(instance.host_path(path))
        .unwrap()
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn a_control_plane_takes_the_users_secrets_from_its_store_and_shows_them_nowhere() {
    const ENCRYPTION: &str = "srv/kubernetes/kube-apiserver/encryptionconfig.yaml";
    let instance = TestInstance::control_plane().with_config(|config| {
        config.docker_config = true;
        let control_plane = config.control_plane.as_mut().unwrap();
        let api_server = control_plane.static_pods.get_mut("kube-apiserver").unwrap();
        let flag = format!("--encryption-provider-config=/{ENCRYPTION}");
        api_server.spec.containers[0].args.push(flag);
    });
    let put = |name: &str, text: &str| {
        let object = write_stored(&Secret::new(text));
        instance.put_object(&stored_path(name), object.reveal().as_bytes());
    };
    put("dockerconfig", PASSWORDS);
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(1));
    let cause = ran.failure_causes("build")[0];
    assert!(
        cause.contains("kctl create secret encryptionconfig"),
        "{cause}"
    );

    put("encryptionconfig", "keys: c3dvcmRmaXNo");
    let dry = instance.run(&["--dry-run"]);
    assert!(dry.stdout.contains(ENCRYPTION), "{}", dry.stdout);
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    let kept = |path: &str| fs::read_to_string(instance.host_path(path)).unwrap();
    assert_eq!(
        (kept(ENCRYPTION).as_str(), file_mode(&instance, ENCRYPTION)),
        ("keys: c3dvcmRmaXNo", 0o400)
    );
    for path in DOCKER_CONFIGS {
        assert_eq!(
            (kept(path).as_str(), file_mode(&instance, path)),
            (PASSWORDS, 0o400)
        );
    }
    let report = fs::read_to_string(instance.store_path(&report_key("i-0abc"))).unwrap();
    assert!(
        ![report, dry.stdout, format!("{ran:?}")]
            .concat()
            .contains("c3dvcmRmaXNo")
    );
    // A replaced secret arrives with the next run.
    put("encryptionconfig", "keys: others");
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    assert_eq!(kept(ENCRYPTION), "keys: others");
}

#[test]
fn a_worker_gets_passwords_of_registries_with_its_certificates_and_asks_again_only_if_they_are_gone()
 {
    let authority = mint_authority();
    let mut instance =
        TestInstance::new_worker(&authority, &[]).with_config(|config| config.docker_config = true);
    let endpoint = FakeEndpoint::start(authority, &instance.stored.text, Vec::new(), None);
    instance.boot.bootstrap_servers = vec![endpoint.url()];
    instance.write_boot();
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    assert!(!format!("{ran:?}{:?}", endpoint.boot_reports()).contains("c3dvcmRmaXNo"));
    for path in DOCKER_CONFIGS {
        let kept = fs::read_to_string(instance.host_path(path)).unwrap();
        assert_eq!(
            (kept.as_str(), file_mode(&instance, path)),
            (PASSWORDS, 0o400)
        );
    }
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    assert_eq!(
        (
            endpoint.join_requests().len(),
            endpoint.boot_reports()[1].changes
        ),
        (1, 0)
    );
    fs::remove_file(instance.host_path(DOCKER_CONFIGS[0])).unwrap();
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    assert_eq!(endpoint.join_requests().len(), 2);
    let kept = fs::read_to_string(instance.host_path(DOCKER_CONFIGS[0])).unwrap();
    assert_eq!(kept, PASSWORDS);
}

#[test]
fn a_binary_with_another_hash_in_the_store_does_not_run() {
    let instance = TestInstance::control_plane();
    let key = node::config::agent_key("protokube", &instance.config.agents.protokube[0]);
    instance.put_object(&key, b"malice");
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(1));
    assert!(ran.failure_causes("apply")[0].contains(&key), "{ran:#?}");
    assert!(!instance.host_path("opt/kctl/protokube").exists());
    let report = fs::read_to_string(instance.store_path(&report_key("i-0abc"))).unwrap();
    assert!(report.contains(&key));
    // Objects that do not depend on it were applied anyway and are listed.
    assert!(report.contains("certificate//"), "{report}");
}

#[test]
fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let instance = TestInstance::control_plane();
    let before = instance.file_tree();
    let ran = instance.run(&["--dry-run"]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        plan["steps"]["unit/kubelet.service"]["action"] == "create",
        "{plan:#}"
    );
    assert!(!ran.stdout.contains("PRIVATE KEY"));
    assert_eq!(instance.file_tree(), before);
    assert!(!instance.store_path(&report_key("i-0abc")).exists());

    // A worker gets its NodeConfig by joining, which is a change.
    let (instance, endpoint) = start_worker_fixture(Vec::new());
    let before = instance.file_tree();
    let ran = instance.run(&["--dry-run"]);
    assert_eq!(ran.exit_code, Some(1));
    assert!(ran.last_line().1.contains("has not joined"), "{ran:#?}");
    assert_eq!(
        (instance.file_tree(), endpoint.join_requests().len()),
        (before, 0)
    );
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    let ran = instance.run(&["--dry-run"]);
    let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(plan["steps"].as_object().unwrap().is_empty(), "{plan:#}");
}

#[test]
fn what_user_data_names_and_the_store_does_not_have_is_named() {
    let mut instance = TestInstance::control_plane();
    instance.boot.node_config = "0".repeat(64);
    instance.write_boot();
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(1));
    assert!(
        ran.failure_causes("fetch")[0].contains("nodeupconfig-000"),
        "{ran:#?}"
    );
}

#[test]
fn a_configuration_of_another_group_is_refused() {
    let mut instance = TestInstance::control_plane();
    instance.boot.cluster = "b.example.com".into();
    instance.write_boot();
    let ran = instance.run(&["--dry-run"]);
    let (last, detail) = ran.last_line();
    assert_eq!(last, "verify failed");
    assert!(detail.contains("of a.example.com, not to"), "{detail}");
}

#[test]
fn user_data_of_a_newer_release_is_refused_by_number() {
    let mut instance = TestInstance::control_plane();
    instance.boot.format = 7;
    instance.write_boot();
    let ran = instance.run(&[]);
    assert_eq!(ran.outline(), ["identify started"]);
    assert!(ran.last_line().1.contains("format 7"), "{ran:#?}");
}

#[test]
fn a_bucket_that_does_not_let_us_yet_is_waited_for() {
    let mut instance = TestInstance::control_plane();
    let bucket = support::s3::start_s3(&instance.store_path(""), 2);
    instance.boot.config_base = Some("s3://store".into());
    instance.write_boot();
    instance.environment.push(("AWS_ENDPOINT_URL_S3", bucket));
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    let causes = ran.failure_causes("fetch");
    assert_eq!(causes.len(), 1, "{causes:#?}");
    assert!(causes[0].contains("denied") && causes[0].contains("s3:GetObject"));
    assert_eq!(
        fs::read(instance.host_path("opt/kctl/protokube")).unwrap(),
        b"protokube"
    );
    assert!(instance.store_path(&report_key("i-0abc")).exists());
}

/// A worker whose files and images are in the bucket `store`, whose first requests are denied.
fn start_bundled_worker(images: &[&str], denied: usize) -> (TestInstance, FakeEndpoint) {
    let authority = mint_authority();
    let instance = TestInstance::new_worker(&authority, &[]);
    let put = |instance: &TestInstance, name: &str, content: &[u8]| {
        let key = format!("assets/{}/amd64/{name}", sha256(content));
        instance.put_object(&key, content);
        vec![format!("s3://store/{key}")]
    };
    let mut config = instance.config.clone();
    for asset in &mut config.assets {
        asset.urls = put(&instance, &asset.name, &file_content(&asset.name, 0));
    }
    for name in images {
        let digest = format!("sha256:{}", sha256(name.as_bytes()));
        let archive = format!("{name} {digest}\n");
        config.images.push(ImageArchive {
            image: (*name).to_owned(),
            arch: Arch::Amd64,
            digest,
            sha256: sha256(archive.as_bytes()),
            urls: put(&instance, "image.tar", archive.as_bytes()),
        });
    }
    let mut instance = instance.with_config(|own| *own = config);
    let endpoint = FakeEndpoint::start(authority, &instance.stored.text, Vec::new(), None);
    let server = format!("https://localhost:{}", endpoint.address.port());
    instance.boot.bootstrap_servers = vec![server];
    instance.write_boot();
    let bucket = support::s3::start_s3(&instance.store_path(""), denied);
    instance.environment.push(("AWS_ENDPOINT_URL_S3", bucket));
    (instance, endpoint)
}

#[test]
fn an_instance_with_a_bundle_takes_everything_from_the_state_store_once() {
    let images = ["registry.k8s.io/pause:3.10.1", "quay.io/a/b:1"];
    let (mut instance, endpoint) = start_bundled_worker(&images, 3);
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    assert!(
        instance
            .downloads
            .iter()
            .all(|server| server.request_count() == 0)
    );
    let kubelet = fs::read(instance.host_path("usr/local/bin/kubelet")).unwrap();
    assert_eq!(kubelet, b"kubelet");
    let started = fs::read_to_string(instance.program_file("started")).unwrap();
    let place = |what: &str| {
        let found = started.lines().position(|line| line == what);
        found.unwrap_or_else(|| panic!("{what}: {started}"))
    };
    for image in images {
        let imported = place(&format!("import {image}"));
        assert!(place("containerd.service") < imported, "{started}");
        assert!(imported < place("kubelet.service"), "{started}");
    }
    // They have been of use.
    for archive in &instance.config.images {
        let cached = format!("opt/kctl/cache/{}", archive.sha256);
        assert!(!instance.host_path(&cached).exists());
    }

    // Nothing is asked again, although containerd does not answer yet.
    instance
        .environment
        .push(("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1".into()));
    let tree = instance.file_tree();
    // An apply that failed has left one of them.
    let left = format!("opt/kctl/cache/{}", instance.config.images[0].sha256);
    fs::write(instance.host_path(&left), b"an archive").unwrap();
    let containerd = instance.program_file("units/containerd.service.active");
    for answers in [true, false] {
        if !answers {
            fs::remove_file(&containerd).unwrap();
        }
        let ran = instance.run(&[]);
        assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
        let again = fs::read_to_string(instance.program_file("started")).unwrap();
        let imports = again.lines().filter(|line| line.starts_with("import"));
        assert_eq!(imports.count(), images.len());
    }
    assert_eq!(instance.file_tree(), tree);
    assert_eq!(endpoint.boot_reports().len(), 3);
}

#[test]
fn an_object_of_a_bundle_with_another_hash_is_not_used() {
    let (instance, endpoint) = start_bundled_worker(&["quay.io/a/b:1"], 0);
    let url = &instance.config.images[0].urls[0];
    let key = url.strip_prefix("s3://store/").unwrap();
    instance.put_object(key, b"quay.io/a/b:1 sha256:0\n");
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(1), "{ran:#?}");
    let error = endpoint.boot_reports().remove(0).error.unwrap();
    assert!(
        error.contains("quay.io/a/b:1") && error.contains("wrong sha256"),
        "{error}"
    );
    let started = fs::read_to_string(instance.program_file("started")).unwrap();
    assert!(
        !started.contains("import") && !started.contains("kubelet"),
        "{started}"
    );
    fs::remove_file(instance.store_path(key)).unwrap();
    assert_eq!(instance.run(&[]).exit_code, Some(1));
    let error = endpoint.boot_reports().remove(1).error.unwrap();
    assert!(error.contains("does not exist"), "{error}");
}

#[test]
fn one_download_that_is_nowhere_keeps_nothing_else_back() {
    let (instance, endpoint) = start_worker_fixture(Vec::new());
    let crictl = instance
        .config
        .assets
        .iter()
        .position(|asset| asset.name == "crictl");
    instance.downloads[crictl.unwrap()].set_next_behaviour(Behaviour::Status("404 Not Found"), 1);
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(1));
    let report = endpoint.boot_reports().remove(0);
    let error = report.error.unwrap();
    assert!(error.contains("crictl") && error.contains("404"), "{error}");
    let started = fs::read_to_string(instance.folder.path().join("programs/started")).unwrap();
    assert!(started.contains("kubelet.service"), "{started}");
    assert_eq!(instance.run(&[]).exit_code, Some(0));
}

#[test]
fn what_ends_soon_is_renewed_with_the_same_key_and_is_no_reason_to_wait() {
    let (mut instance, endpoint) = start_worker_fixture(Vec::new());
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    let client = |instance: &TestInstance, unit: &str| {
        fs::read_to_string(instance.host_path(&format!("var/lib/kube-proxy/client.{unit}")))
            .unwrap()
    };
    let (key, good) = (client(&instance, "key"), client(&instance, "crt"));
    let soon = endpoint.certificate_of_hours("system:kube-proxy", &key, 10);
    instance.write_file("var/lib/kube-proxy/client.crt", &soon);

    // Nothing can renew the certificate: nodeup does not wait, restarts nothing and logs the cause.
    let servers = std::mem::take(&mut instance.boot.bootstrap_servers);
    instance.boot.bootstrap_servers = vec!["https://127.0.0.1:1".into()];
    instance.write_boot();
    let started = instance.folder.path().join("programs/started");
    let before = fs::read(&started).unwrap();
    let ran = instance.run(&[]);
    assert_eq!(ran.exit_code, Some(1));
    assert!(
        ran.failure_causes("fetch")
            .last()
            .unwrap()
            .contains("not renewed now"),
        "{ran:#?}"
    );
    assert!(
        ran.failure_causes("apply")[0].contains("kube-proxy"),
        "{ran:#?}"
    );
    assert_eq!(client(&instance, "crt"), soon);
    assert_eq!(fs::read(&started).unwrap(), before);

    // On a running instance only the certificate is renewed; other differences stay.
    instance.boot.bootstrap_servers = servers;
    instance.write_boot();
    instance.write_file("etc/containerd/config.toml", "another's");
    assert_eq!(instance.run(&["--certificates"]).exit_code, Some(0));
    assert_eq!(client(&instance, "key"), key);
    assert!(![good, soon].contains(&client(&instance, "crt")));
    assert_eq!(endpoint.boot_reports().last().unwrap().changes, 1);
    let other = fs::read_to_string(instance.host_path("etc/containerd/config.toml")).unwrap();
    assert_eq!(other, "another's");
    assert_eq!(fs::read(&started).unwrap(), before);
}

#[test]
fn by_force_a_worker_asks_for_another_key_of_kube_proxy_and_kubelets_stays() {
    let (mut instance, endpoint) = start_worker_fixture(Vec::new());
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    let read = |instance: &TestInstance, paths: [&str; 3]| {
        paths.map(|path| fs::read_to_string(instance.host_path(path)).unwrap())
    };
    let proxy = [
        "var/lib/kube-proxy/client.key",
        "var/lib/kube-proxy/client.crt",
        "opt/kctl/keys/kube-proxy.key",
    ];
    let kubelet = [
        "var/lib/kubelet/pki/kubelet-client-current.pem",
        "opt/kctl/keys/kubelet.key",
        "opt/kctl/node-config.yaml",
    ];
    let before = (read(&instance, proxy), read(&instance, kubelet));
    let tree = instance.file_tree();
    let started = fs::read(instance.program_file("started")).unwrap();

    let shown = instance.run(&["--certificates", "--force", "--dry-run"]);
    assert_eq!(shown.exit_code, Some(0), "{shown:#?}");
    assert!(shown.stdout.contains("forced"), "{shown:#?}");
    assert_eq!(instance.file_tree(), tree);

    let ran = instance.run(&["--certificates", "--force"]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
    let after = read(&instance, proxy);
    assert!(after.iter().zip(&before.0).all(|(new, old)| new != old));
    assert_eq!(after[0], after[2]);
    assert_eq!(read(&instance, kubelet), before.1);
    assert_eq!(endpoint.join_requests().len(), 2);
    assert_eq!(endpoint.boot_reports().last().unwrap().changes, 1);

    // Nothing is left to do, and nothing was restarted.
    assert_eq!(instance.run(&[]).exit_code, Some(0));
    assert_eq!(endpoint.boot_reports().last().unwrap().changes, 0);
    let again = fs::read(instance.program_file("started")).unwrap();
    assert_eq!(again, started);

    // A control plane that does not answer is no reason to wait, and is told.
    instance.boot.bootstrap_servers = vec!["https://127.0.0.1:1".into()];
    instance.write_boot();
    let ran = instance.run(&["--certificates", "--force"]);
    assert_eq!(ran.exit_code, Some(1), "{ran:#?}");
    assert!(ran.failure_causes("apply")[0].contains("kube-proxy"));
    assert_eq!(read(&instance, proxy)[..2], after[..2]);
}

/// A control plane behind a proxy that does not work, with this metadata service.
fn with_metadata_at(address: String) -> TestInstance {
    let mut instance = TestInstance::control_plane();
    instance.environment = vec![
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", address),
        ("http_proxy", "http://127.0.0.1:9".into()),
        ("HTTP_PROXY", "http://127.0.0.1:9".into()),
        ("no_proxy", "127.0.0.1".into()),
        ("NO_PROXY", "127.0.0.1".into()),
    ];
    instance
}

#[test]
fn a_metadata_service_that_is_slow_or_breaks_off_at_first_is_waited_for() {
    for (delay, broken) in [(Duration::from_secs(2), 0), (Duration::ZERO, 2)] {
        let instance = with_metadata_at(slow_metadata_service(delay, broken));
        let ran = instance.run(&[]);
        assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
        let causes = ran.failure_causes("identify");
        assert_eq!(causes.is_empty(), broken == 0, "{causes:#?}");
    }
}

/// The store is a folder and downloads come from 127.0.0.1, so only the metadata service could be behind the proxy.
#[test]
fn the_metadata_service_is_never_asked_through_a_proxy() {
    let mut instance = with_metadata_at(slow_metadata_service(Duration::ZERO, 0));
    instance
        .environment
        .retain(|(name, _)| !name.eq_ignore_ascii_case("no_proxy"));
    let ran = instance.run(&["--dry-run"]);
    assert_eq!(ran.exit_code, Some(0), "{ran:#?}");
}

#[test]
fn a_metadata_service_that_refuses_is_named_with_every_cause() {
    let ran = with_metadata_at("http://127.0.0.1:9".into()).run(&[]);
    assert_eq!(ran.exit_code, Some(1), "{ran:#?}");
    let (last, cause) = ran.last_line();
    assert_eq!(last, "identify failed");
    for words in [
        "instance-id",
        "token",
        "onnection refused",
        "firewall or proxy",
    ] {
        assert!(cause.contains(words), "{words}: {cause}");
    }
}

#[test]
fn surroundings_of_all_kinds_lead_to_no_panic() {
    for variable in [
        ("SSL_CERT_FILE", "/nonexistent"),
        ("SSL_CERT_FILE", "/etc/passwd"),
        ("SSL_CERT_DIR", "/nonexistent"),
        ("LD_LIBRARY_PATH", "/nonexistent"),
        ("LANG", "broken"),
        ("TMPDIR", "/nonexistent"),
    ] {
        let mut instance = TestInstance::control_plane();
        instance.environment.push((variable.0, variable.1.into()));
        let ran = instance.run(&[]);
        assert_eq!(ran.exit_code, Some(0), "{variable:?}: {ran:#?}");
    }
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"--\xff");
    let nodeup = std::process::Command::new(env!("CARGO_BIN_EXE_nodeup"))
        .arg(odd)
        .output();
    assert_eq!(nodeup.unwrap().status.code(), Some(2));
}
