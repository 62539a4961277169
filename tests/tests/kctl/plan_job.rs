//! The review in CI of docs/operations/plans.md: its commands work with exactly the policy that the page has for the plan job, and whoever
//! has that policy reads no secret and commands nothing.

use crate::kctl::{CLUSTER, Operator, REGION};
use serde_json::Value;
use std::path::Path;

/// The policy in the page, for the bucket and the cluster of these tests.
fn documented_policy() -> Value {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations/plans.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once("```json\n").expect("a policy");
    let (policy, _) = rest.split_once("```").expect("its end");
    let policy = policy.replace("my-state", "state");
    serde_json::from_str(&policy.replace("demo.example.com", CLUSTER)).expect("JSON")
}

fn sealed_word(key: &str) -> bool {
    ["backups/", "secrets/", "pki/private/"]
        .iter()
        .any(|folder| key.contains(folder))
}

#[test]
fn the_plan_job_works_with_the_documented_policy_and_can_neither_read_secrets_nor_command_protokube()
 {
    let operator = Operator::new_strict();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator.run_ok(&["update", "--yes"]);
    let simulator = &operator.simulator;
    for key in [
        "backups/etcd/main/1/etcd.backup.gz",
        "secrets/encryptionconfig",
    ] {
        let put =
            format!("boto('s3').put_object(Bucket='state', Key='{CLUSTER}/{key}', Body=b'x')");
        simulator.run_python(REGION, &put);
    }
    let (plan, cluster) = (
        operator.home_path("change.plan"),
        operator.home_path("spec.yaml"),
    );
    let (plan, cluster) = (
        plan.to_str().expect("a path"),
        cluster.to_str().expect("a path"),
    );
    let spec = operator.run_ok(&["get", "all", "-o", "yaml"]).stdout;
    let job = operator.user_with_policy("plan-job", &documented_policy());

    std::fs::write(cluster, &spec).expect("a file");
    job.run_ok(&["replace", "-f", cluster]);
    let same = job.run(&["update", "--plan-out", plan, "--exit-code", "-o", "wide"]);
    assert_eq!(same.code, Some(0), "{}\n{}", same.stdout, same.stderr);
    assert!(same.stdout.contains("No changes"), "{}", same.stdout);

    // Of addons and backups too.
    let changed = spec.replacen("role: Node\n", "role: Node\n  rootVolumeSize: 77\n", 1);
    assert_ne!(changed, spec);
    let changed = changed.replacen("\nspec:\n", "\nspec:\n  kubeDNS: {provider: None}\n", 1);
    std::fs::write(cluster, &changed).expect("a file");
    job.run_ok(&["replace", "-f", cluster]);
    let pending = job.run(&["update", "--plan-out", plan, "--exit-code", "-o", "wide"]);
    assert_eq!(
        pending.code,
        Some(10),
        "{}\n{}",
        pending.stdout,
        pending.stderr
    );
    assert!(
        pending.stdout.contains("bootstrap-channel"),
        "{}",
        pending.stdout
    );

    let keys = simulator.run_python(
        REGION,
        "print(*[o['Key'] for o in boto('s3').list_objects_v2(Bucket='state')['Contents']])",
    );
    for key in keys.split(' ') {
        let may_read = job.may_call("s3", &format!("get_object(Bucket='state', Key='{key}')"));
        assert!(!(may_read && sealed_word(key)), "{key} can be read");
        let put = format!("put_object(Bucket='state', Key='{key}', Body=b'')");
        let spec = key.ends_with("/config") || key.contains("/instancegroup/");
        if !spec {
            assert!(!job.may_call("s3", &put), "{key} can be written");
            let delete = format!("delete_object(Bucket='state', Key='{key}')");
            assert!(!job.may_call("s3", &delete), "{key} can be deleted");
        }
    }
    assert!(
        keys.split(' ').filter(|key| sealed_word(key)).count() > 5,
        "{keys}"
    );
    let update = job.run(&["update", "--yes"]);
    assert_eq!(update.code, Some(1), "{}\n{}", update.stdout, update.stderr);

    operator.run_ok(&["update", "--plan", plan, "--yes", "-o", "events"]);
    operator.run_ok(&["update", "--exit-code"]);
}
