//! A plan that is kept in a file: it makes exactly what it showed, or nothing.

use crate::kctl::{Kctl, KctlOutput};
use crate::scenario::{NAME, REGION, create_cluster, kctl_with_cloud};
use crate::simulator::Simulator;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// A cluster of one zone in the store, and nothing of it in AWS.
pub fn stored_cluster(simulator: &Simulator) -> Kctl {
    let kctl = kctl_with_cloud(simulator);
    let words = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
    kctl.run(&words).expect_success();
    kctl
}

/// The cluster of `stored_cluster`, created in AWS.
fn made_cluster(simulator: &Simulator) -> Kctl {
    let kctl = stored_cluster(simulator);
    kctl.run(&["update", "--yes"]).expect_success();
    kctl
}

fn set_max(kctl: &Kctl, size: u32) {
    let set = format!("spec.maxSize={size}");
    kctl.run(&["edit", "ig", "nodes-eu-west-1a", "--set", &set])
        .expect_success();
}

fn plan_out(kctl: &Kctl, file: &str) -> KctlOutput {
    kctl.run(&["update", "--plan-out", file])
}

fn apply_plan(kctl: &Kctl, file: &str) -> KctlOutput {
    kctl.run(&["update", "--plan", file, "--yes"])
}

fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn save_plan(kctl: &Kctl, file: &str) -> Value {
    parse_json(&std::fs::read_to_string(kctl.home_path(file)).expect("a plan"))
}

/// Ids of the plan's steps.
fn step_ids(plan: &Value) -> Vec<String> {
    plan["plan"]["steps"]
        .as_object()
        .expect("steps")
        .keys()
        .cloned()
        .collect()
}

fn newest_operation(kctl: &Kctl) -> Value {
    parse_json(
        &kctl
            .run(&["get", "operations", "--limit", "1", "-o", "json"])
            .expect_success(),
    )[0]
    .clone()
}

/// Sets the size of an Auto Scaling group as somebody else would.
fn somebody_sets_max(simulator: &Simulator, size: u32) {
    simulator.run_python(REGION, &format!("boto('autoscaling').update_auto_scaling_group(AutoScalingGroupName='nodes-eu-west-1a.{NAME}', MaxSize={size})"));
}

fn assert_refused(ran: &KctlOutput, words: &[&str]) {
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    for word in words {
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    }
}

#[test]
fn a_new_cluster_is_made_from_a_saved_plan_and_its_keys_with_it() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let before = simulator.list_resources(REGION);
    let shown = plan_out(&kctl, "new.plan").expect_success();
    let mode = std::fs::metadata(kctl.home_path("new.plan"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        simulator.list_resources(REGION),
        before,
        "a plan writes nothing"
    );
    assert_ne!(save_plan(&kctl, "new.plan")["stand_ins"], json!([]));

    let again = kctl.run(&["update", "--plan", "new.plan"]);
    assert_eq!(again.out, shown);
    assert!(
        again.err.contains("kctl update --plan new.plan --yes"),
        "{}",
        again.err
    );
    assert_eq!(
        simulator.list_resources(REGION),
        before,
        "nor does a look at one"
    );

    let ran = apply_plan(&kctl, "new.plan");
    assert!(ran.err.contains("made keyset kubernetes-ca"), "{}", ran.err);
    ran.expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
    let operation = newest_operation(&kctl);
    assert_eq!(operation["plan"], save_plan(&kctl, "new.plan")["sha256"]);
    let planned = step_ids(&save_plan(&kctl, "new.plan"));
    assert_eq!(
        operation["steps"].as_object().map(serde_json::Map::len),
        Some(planned.len())
    );

    assert_refused(
        &apply_plan(&kctl, "new.plan"),
        &[
            "nothing is left to do",
            "it was applied by tester@",
            ": done",
        ],
    );
    assert_refused(
        &kctl.run(&["update", "--plan", "new.plan"]),
        &["applied already"],
    );
}

#[test]
fn what_a_saved_plan_shows_is_what_runs() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    set_max(&kctl, 3);
    plan_out(&kctl, "max.plan").expect_success();
    let planned = step_ids(&save_plan(&kctl, "max.plan"));
    assert_eq!(
        planned,
        [format!("autoscaling_group/nodes-eu-west-1a.{NAME}")]
    );

    let told = parse_json(
        &kctl
            .run(&["update", "--plan", "max.plan", "--yes", "-o", "json"])
            .expect_success(),
    );
    assert_eq!(
        (&told["applied"], &told["saved_plan"]["applies"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        told["saved_plan"]["sha256"],
        save_plan(&kctl, "max.plan")["sha256"]
    );
    let done: Vec<String> = newest_operation(&kctl)["steps"]
        .as_object()
        .expect("steps")
        .keys()
        .cloned()
        .collect();
    assert_eq!(done, planned);
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn a_plan_is_refused_once_the_spec_or_aws_moved_and_holds_again_when_they_are_back() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    set_max(&kctl, 3);
    plan_out(&kctl, "max.plan").expect_success();
    let group = format!("autoscaling_group/nodes-eu-west-1a.{NAME}");

    set_max(&kctl, 4);
    let spec = format!("the spec: {NAME}/instancegroup/nodes-eu-west-1a was changed");
    assert_refused(
        &apply_plan(&kctl, "max.plan"),
        &[
            "nothing of it was done now",
            &spec,
            &group,
            "after.max_size  3 -> 4",
        ],
    );
    let told = kctl.run(&["update", "--plan", "max.plan", "-o", "json"]);
    assert_eq!(told.code, 4);
    let moved = &parse_json(&told.out)["saved_plan"]["moved"];
    assert_eq!(moved["steps"][0]["moved"], "differs");
    assert_eq!(moved["spec"].as_array().map(Vec::len), Some(1));
    set_max(&kctl, 3);

    somebody_sets_max(&simulator, 2);
    assert_refused(
        &apply_plan(&kctl, "max.plan"),
        &[&group, "before.max_size  1 -> 2"],
    );
    somebody_sets_max(&simulator, 1);
    simulator.run_python(
        REGION,
        "boto('sqs').delete_queue(QueueUrl=boto('sqs').list_queues()['QueueUrls'][0])",
    );
    assert_refused(
        &apply_plan(&kctl, "max.plan"),
        &["would be created now, and was not to be", "sqs_queue/"],
    );
    kctl.run(&["edit", "ig", "nodes-eu-west-1a", "--set", "spec.maxSize=1"])
        .expect_success();
    kctl.run(&["update", "--yes"]).expect_success();
    set_max(&kctl, 3);
    apply_plan(&kctl, "max.plan").expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn a_plan_is_for_its_cluster_and_its_store() {
    let simulator = Simulator::start_simulator();
    let mut kctl = stored_cluster(&simulator);
    plan_out(&kctl, "demo.plan").expect_success();
    let calls = |simulator: &Simulator| simulator.calls_by_operation()["aws"].clone();
    simulator.forget_calls();
    for named in [&["other.example.com"][..], &["--name", "other.example.com"]] {
        let words = [&["update", "--plan", "demo.plan", "--yes"], named].concat();
        assert_refused(
            &kctl.run(&words),
            &["cluster differs: was demo.example.com, is other.example.com"],
        );
    }
    let words = [
        "update",
        "--plan",
        "demo.plan",
        "--yes",
        "--state",
        "s3://state/elsewhere",
    ];
    assert_refused(
        &kctl.run(&words),
        &["state store differs", "s3://state/elsewhere"],
    );
    kctl.set_variable("KCTL_CLUSTER_NAME", "other.example.com");
    assert_refused(&apply_plan(&kctl, "demo.plan"), &["cluster differs"]);
    assert_eq!(calls(&simulator), json!(0), "AWS was not even asked");
}

/// The file with something changed in it.
fn change_file(kctl: &Kctl, file: &str, change: impl Fn(&mut Value)) -> String {
    let mut plan = save_plan(kctl, file);
    change(&mut plan);
    kctl.write_file("doctored.plan", &plan.to_string())
}

#[test]
fn a_file_that_is_no_plan_is_told_with_the_place_and_a_next_step() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    plan_out(&kctl, "good.plan").expect_success();
    let text = std::fs::read_to_string(kctl.home_path("good.plan")).expect("a plan");
    let lines = text.lines().count();
    let half: String = text
        .lines()
        .take(lines / 2)
        .map(|line| format!("{line}\n"))
        .collect();
    let wrong = |file: &str, code: i32, words: &[&str]| {
        for yes in [&["--yes"][..], &[]] {
            let ran = kctl.run(&[&["update", "--plan", file][..], yes].concat());
            assert_eq!(ran.code, code, "{}", ran.err);
            for word in words.iter().chain(&["hint: "]) {
                assert!(ran.err.contains(word), "{word}: {}", ran.err);
            }
        }
    };
    let truncated = kctl.write_file("half.plan", &half);
    wrong(
        &truncated,
        2,
        &[
            &format!("half.plan:{}:0: this is not a whole plan", lines / 2 + 1),
            "EOF",
        ],
    );
    wrong(
        &kctl.write_file("other.json", "{\"kind\": \"List\"}"),
        2,
        &["not a plan of kctl"],
    );
    wrong("missing.plan", 2, &["could not read the plan missing.plan"]);
    let newer = change_file(&kctl, "good.plan", |plan| plan["format"] = json!(2));
    wrong(&newer, 4, &["format 2", "reads format 1", "kctl 0.1.0"]);
    let edited = change_file(&kctl, "good.plan", |plan| {
        plan["made"] = json!("2020-01-01T00:00:00Z");
    });
    wrong(&edited, 2, &["was changed after kctl wrote it"]);
    let lighter = change_file(&kctl, "good.plan", |plan| {
        plan["plan"]["steps"]
            .as_object_mut()
            .expect("steps")
            .remove(&format!("vpc/{NAME}"));
    });
    wrong(&lighter, 2, &["was changed after kctl wrote it"]);
    // Another layout of the same values is the same plan.
    let compact = change_file(&kctl, "good.plan", |_| {});
    kctl.run(&["update", "--plan", &compact]).expect_success();
}

#[test]
fn exit_codes_say_whether_there_is_something_to_do() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let code = |words: &[&str]| kctl.run(&[&["update"], words].concat()).code;
    assert_eq!(code(&["--exit-code"]), 10);
    assert_eq!(code(&["--exit-code", "-o", "json"]), 10);
    assert_eq!(code(&["--exit-code", "-o", "events"]), 10);
    assert_eq!(code(&["--exit-code", "--plan-out", "new.plan"]), 10);
    assert_eq!(code(&["--plan-out", "new.plan"]), 0);
    assert_eq!(code(&["--plan", "new.plan", "--exit-code"]), 10);
    assert_eq!(code(&["--plan", "new.plan"]), 0);
    assert_eq!(code(&["--plan", "new.plan", "--yes", "--exit-code"]), 0);
    assert_eq!(code(&["--plan", "new.plan", "--exit-code"]), 4);
    assert_eq!(code(&["--exit-code", "--plan-out", "nothing.plan"]), 0);
    assert_eq!(code(&["--plan", "nothing.plan", "--exit-code"]), 0);
    assert_eq!(code(&["--plan", "nothing.plan", "--yes", "--exit-code"]), 0);
    set_max(&kctl, 2);
    assert_eq!(code(&["--yes", "--exit-code"]), 0);
    for words in [
        ["--yes", "--plan-out", "x.plan", "-q"],
        ["--plan", "new.plan", "--plan-out", "x.plan"],
        ["--plan", "new.plan", "--refresh", "-q"],
        ["--plan-out", "no/such/folder/x.plan", "-q", "-q"],
    ] {
        assert_eq!(code(&words), 2, "{words:?}");
        assert!(!kctl.home_path("x.plan").exists());
    }
}

#[test]
fn a_plan_that_stopped_half_way_is_refused_and_a_new_one_finishes() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    plan_out(&kctl, "new.plan").expect_success();
    simulator.set_faults(&json!([{"service": "ec2", "operation": "CreateSubnet", "times": 1, "code": "SubnetLimitExceeded", "message": "too many subnets", "status": 400}]));
    assert_eq!(apply_plan(&kctl, "new.plan").code, 1);
    simulator.set_faults(&json!([]));
    assert_refused(
        &apply_plan(&kctl, "new.plan"),
        &["was to be created, and would not be now", "more steps"],
    );
    plan_out(&kctl, "rest.plan").expect_success();
    apply_plan(&kctl, "rest.plan").expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn a_plan_without_the_machines_binaries_is_not_kept() {
    let simulator = Simulator::start_simulator();
    let mut kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    kctl.set_variable("KCTL_ASSETS", "/nowhere");
    let ran = plan_out(&kctl, "new.plan");
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(
        ran.err.contains("KCTL_ASSETS") && !kctl.home_path("new.plan").exists(),
        "{}",
        ran.err
    );
}

/// The commands in the page's examples, in order.
fn example_commands(page: &str) -> Vec<Vec<String>> {
    let (mut inside, mut found) = (false, Vec::new());
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if let Some(command) = line.strip_prefix("kctl ").filter(|_| inside) {
            let command = command.split(['#', '>']).next().unwrap_or_default();
            found.push(command.split_whitespace().map(str::to_owned).collect());
        }
    }
    found
}

#[test]
fn the_examples_of_the_pages_work() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    let all: Vec<_> = ["plans.md", "log.md"]
        .into_iter()
        .flat_map(|page| {
            let page = crate::kctl::repository_folder()
                .join("docs/operations")
                .join(page);
            example_commands(&std::fs::read_to_string(page).expect("the page"))
        })
        .collect();
    assert_eq!(all.len(), 9, "{all:?}");
    for mut words in all {
        let expected = if words.iter().any(|word| word == "--exit-code") {
            10
        } else {
            0
        };
        match (words[0].as_str(), words[1].as_str()) {
            ("replace", _) => {
                let spec = kctl
                    .run(&["get", "ig", "nodes-eu-west-1a", "-o", "yaml"])
                    .expect_success();
                kctl.write_file("cluster.yaml", &spec.replace("maxSize: 3", "maxSize: 5"));
            }
            ("update", "--plan-out") if expected == 0 => set_max(&kctl, 3),
            ("get", "operation") => {
                let id = newest_operation(&kctl)["id"]
                    .as_str()
                    .expect("an id")
                    .to_owned();
                words[2] = id[..id.len() - 2].to_owned();
            }
            _ => {}
        }
        let ran = kctl.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.code, expected, "{words:?}: {}{}", ran.out, ran.err);
    }
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}
