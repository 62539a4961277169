//! The job end to end against the AWS simulator: made, found unchanged, changed, interrupted, deleted.

use crate::kctl::Kctl;
use crate::simulator::Simulator;
use node::yaml::to_yaml;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

pub const NAME: &str = "demo.example.com";
pub const REGION: &str = "eu-west-1";

/// kctl against a simulator with a bucket, and with binaries for instances.
pub fn kctl_with_cloud(simulator: &Simulator) -> Kctl {
    simulator.run_python(REGION, "boto('s3').create_bucket(Bucket='state', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'})");
    let mut kctl = Kctl::new();
    let assets = kctl.home_path("assets/linux/amd64");
    std::fs::create_dir_all(&assets).expect("a folder");
    for name in ["nodeup", "protokube"] {
        std::fs::write(assets.join(name), name).expect("a file");
    }
    let assets = kctl.home_path("assets").display().to_string();
    let kubeconfig = kctl.home_path("kubeconfig").display().to_string();
    for (name, value) in [
        ("AWS_ENDPOINT_URL", simulator.endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("KCTL_STATE_STORE", "s3://state/clusters"),
        ("KCTL_ASSETS", &assets),
        ("KUBECONFIG", &kubeconfig),
    ] {
        kctl.set_variable(name, value);
    }
    kctl
}

pub fn create_cluster(kctl: &Kctl, more: &[&str]) -> crate::kctl::KctlOutput {
    let words = [
        "create",
        "cluster",
        NAME,
        "--zones",
        "eu-west-1a,eu-west-1b,eu-west-1c",
    ];
    kctl.run(&[&words[..], more].concat())
}

/// Ids of AWS, hashes and sizes are not the point; nor is whether YAML takes a hash for a number, and has it in quotes. Sizes
/// depend on chance too: signatures of ECDSA, in the certificates that instances get, differ in length.
pub fn normalize_output(text: &str) -> String {
    let words = text.split_inclusive(|c: char| c.is_whitespace() || c == '/' || c == '-');
    let words: Vec<&str> = words.collect();
    let plain = |(word, next): (&str, Option<&&str>)| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let hex = bare.len() >= 12 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size =
            bare.parse::<usize>().is_ok() && next.is_some_and(|next| next.starts_with("bytes"));
        if hex {
            let word = word.replace(&format!("\"{bare}\""), bare);
            word.replace(bare, "HASH")
        } else if size {
            word.replace(bare, "SIZE")
        } else {
            word.to_owned()
        }
    };
    let following = (1..=words.len()).map(|next| words.get(next));
    words.iter().copied().zip(following).map(plain).collect()
}

#[test]
fn a_hash_is_masked_however_yaml_writes_it() {
    let rests = ["0123456789abcdef", "1", "e", "7e1", "e7"].map(|part| part.repeat(64));
    let mut quoted = 0;
    for (first, rest) in (0..=u8::MAX).flat_map(|first| rests.iter().map(move |rest| (first, rest)))
    {
        for length in [12, 64] {
            let hash = &format!("{first:02x}{rest}")[..length];
            let text = to_yaml(&json!({ "nodeConfig": hash })).expect("YAML");
            quoted += usize::from(text.contains('"'));
            assert_eq!(
                normalize_output(&format!("+ {text}")),
                "+ nodeConfig: HASH\n",
                "{text}"
            );
        }
    }
    assert!(quoted > 100, "{quoted}");
}

#[test]
fn a_cluster_is_made_found_unchanged_changed_and_deleted() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let empty = simulator.list_resources(REGION);

    let preview = create_cluster(&kctl, &["--cloud-labels", "Owner=me"]).expect_success();
    insta::assert_snapshot!("preview", normalize_output(&preview));
    let made = kctl.run(&["update", "--yes", "--create-kube-config"]);
    assert!(
        made.err.contains("made keyset kubernetes-ca"),
        "{}",
        made.err
    );
    made.expect_success();
    let kubeconfig = std::fs::read_to_string(kctl.home_path("kubeconfig")).expect("a kubeconfig");
    assert!(
        kubeconfig.contains("server: https://api-demo-example-com-"),
        "{kubeconfig}"
    );

    let unchanged = kctl.run(&["update", NAME, "--exit-code"]);
    insta::assert_snapshot!("unchanged", unchanged.all_output());

    kctl.run(&[
        "edit",
        "cluster",
        "--set",
        "spec.cloudLabels.Team=x",
        "--set",
        "spec.kubelet.maxPods=50",
    ])
    .expect_success();
    kctl.run(&["edit", "ig", "nodes-eu-west-1a", "--set", "spec.maxSize=3"])
        .expect_success();
    let changes = kctl.run(&["update", "--exit-code"]);
    assert_eq!(changes.code, 10, "{}", changes.err);
    insta::assert_snapshot!("changes", normalize_output(&changes.out));
    let document: Value =
        serde_json::from_str(&kctl.run(&["update", "-o", "json"]).expect_success()).expect("JSON");
    assert_eq!(
        (&document["format"], &document["cluster"]),
        (&json!(1), &json!(NAME))
    );
    let mut updates = document["changes"].as_array().expect("changes").iter();
    let group =
        updates.find(|change| change["id"] == format!("autoscaling_group/nodes-eu-west-1a.{NAME}"));
    assert_eq!(group.expect("the group")["action"], "update");
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);

    let shown = kctl.run(&["delete", "cluster", NAME]).expect_success();
    assert!(
        shown.contains("to delete.")
            && kctl
                .run(&["get", "-o", "name"])
                .expect_success()
                .contains(NAME)
    );
    kctl.run(&["delete", "cluster", NAME, "--yes"])
        .expect_success();
    assert_eq!(simulator.list_resources(REGION), empty);
    assert_eq!(
        kctl.run(&["get", "-o", "json"]).expect_success().trim(),
        "[]"
    );
    let kubeconfig = std::fs::read_to_string(kctl.home_path("kubeconfig")).expect("a kubeconfig");
    assert!(!kubeconfig.contains(NAME), "{kubeconfig}");
}

#[test]
fn a_plan_without_changes_stays_in_its_budget() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let more = [
        "--control-plane-zones",
        "eu-west-1a,eu-west-1b,eu-west-1c",
        "--topology",
        "private",
        "--yes",
    ];
    create_cluster(&kctl, &more).expect_success();
    simulator.forget_calls();
    assert!(
        kctl.run(&["update", NAME])
            .expect_success()
            .contains("No changes.")
    );
    let calls = simulator.calls_by_operation();
    let count = |name: &str| calls[name].as_u64().expect("a number");
    assert!(count("aws") <= 40, "{calls}");
    assert!(count("s3") <= 13, "{calls}");
}

#[test]
fn what_fails_is_told_with_its_cause_and_the_next_run_finishes() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    simulator.set_faults(&json!([
        {"service": "ec2", "operation": "CreateSubnet", "times": 1, "code": "SubnetLimitExceeded", "message": "too many subnets", "status": 400},
        {"service": "iam", "operation": "*", "times": 5, "code": "Throttling", "message": "Rate exceeded", "status": 400},
    ]));
    let ran = kctl.run(&["update", "--yes"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    for words in [
        "ec2:CreateSubnet failed with SubnetLimitExceeded: too many subnets",
        "hint: ",
        "not tried: subnet/",
        "changes failed: subnet/",
        "goes on where this ended",
    ] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    simulator.set_faults(&json!([]));
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn an_interrupt_ends_in_order_and_the_next_run_goes_on() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    simulator.set_latency(150);
    let child = kctl.start_command(&["update", "--yes"], Stdio::null());
    let process = child.id().to_string();
    while simulator.calls_by_operation()["calls"]
        .get("ec2.CreateVpc")
        .is_none()
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    Command::new("kill")
        .args(["-INT", &process])
        .status()
        .expect("kill");
    let ran = kctl.wait_for_end(child);
    assert_eq!(ran.code, 130, "{}", ran.err);
    assert!(ran.err.contains("changes left"), "{}", ran.err);
    simulator.set_latency(0);
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn a_second_interrupt_leaves_at_once_and_the_next_run_goes_on() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    simulator.set_latency(300);
    let mut child = kctl.start_command(&["update", "--yes"], Stdio::null());
    let interrupt = |process: u32| {
        let mut kill = Command::new("kill");
        let sent = kill.args(["-INT", &process.to_string()]).status();
        assert!(sent.expect("kill").success());
    };
    while simulator.calls_by_operation()["calls"]
        .get("ec2.CreateVpc")
        .is_none()
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    // What is begun from here on takes longer than anything that this test waits for, however busy the machine.
    simulator.set_latency(600_000);
    interrupt(child.id());
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("standard error"));
    while !said.contains("Ctrl-C again leaves at once") {
        assert_ne!(lines.read_line(&mut said).expect("a line"), 0, "{said}");
    }
    interrupt(child.id());
    lines.read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("its end").code(), Some(130), "{said}");
    assert!(
        !said.contains("changes left"),
        "it waited for an orderly end: {said}"
    );
    assert!(said.contains("goes on from there"), "{said}");
    simulator.set_latency(0);
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn a_kill_leaves_nothing_that_the_next_run_does_not_find() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let empty = simulator.list_resources(REGION);
    create_cluster(&kctl, &[]).expect_success();
    simulator.set_latency(50);
    let mut child = kctl.start_command(&["update", "--yes"], Stdio::null());
    while simulator.calls_by_operation()["calls"]
        .get("ec2.CreateSubnet")
        .is_none()
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    simulator.set_latency(0);
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
    kctl.run(&["delete", "cluster", NAME, "--yes"])
        .expect_success();
    assert_eq!(simulator.list_resources(REGION), empty);
}

#[test]
fn without_binaries_a_plan_is_shown_and_nothing_is_made() {
    let simulator = Simulator::start_simulator();
    let mut kctl = kctl_with_cloud(&simulator);
    kctl.set_variable("KCTL_ASSETS", "/nowhere");
    let preview = create_cluster(&kctl, &[]);
    assert!(
        preview.err.contains("nodeup for linux/amd64 was not found"),
        "{}",
        preview.err
    );
    let refused = kctl.run(&["update", "--yes"]);
    assert_eq!(refused.code, 4);
    assert!(refused.err.contains("KCTL_ASSETS"), "{}", refused.err);
    assert!(
        simulator.calls_by_operation()["calls"]
            .get("ec2.CreateVpc")
            .is_none()
    );
}
