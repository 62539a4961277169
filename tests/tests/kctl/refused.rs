//! What an operator reads when AWS says no, or kctl before it asks AWS.

use crate::kctl::{CLUSTER, Operator, REGION};
use node::secret::{ENCRYPTION_CONFIG, Secret, write_stored};
use serde_json::json;

/// The lines of the step that failed, without what differs from run to run and without those that wait for it.
fn refusal_lines(stderr: &str) -> String {
    let lines = stderr.lines().skip_while(|line| !line.starts_with("! "));
    let lines = lines.take_while(|line| !line.contains("  not tried: "));
    let lines = lines.filter(|line| !line.trim_start().starts_with("request id"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_denied_update_names_who_lacks_what_in_which_policy() {
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator.simulator.set_faults(&json!([{
        "service": "ec2", "operation": "CreateVpc", "code": "UnauthorizedOperation", "status": 403,
        "message": "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/deploy/jo \
                    is not authorized to perform: ec2:CreateVpc on resource: arn:aws:ec2:us-east-1:123456789012:vpc/* because \
                    no identity-based policy allows the ec2:CreateVpc action. Encoded authorization failure message: AQ0xyz",
    }]));
    let ended = operator.run(&["update", "--yes"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(!ended.stderr.contains("AQ0xyz"), "{}", ended.stderr);
    insta::assert_snapshot!(refusal_lines(&ended.stderr), @r"
    ! vpc/prod.example.com could not be created
        ec2:CreateVpc failed with UnauthorizedOperation: You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/deploy/jo is not authorized to perform: ec2:CreateVpc on resource: arn:aws:ec2:us-east-1:123456789012:vpc/* because no identity-based policy allows the ec2:CreateVpc action.
        hint: no identity-based policy of arn:aws:sts::123456789012:assumed-role/deploy/jo allows ec2:CreateVpc on arn:aws:ec2:us-east-1:123456789012:vpc/*: add it to one, or attach one that has it
    ");
    let waiting = "subnet/us-east-1a.prod.example.com  not tried: vpc/prod.example.com failed";
    assert!(ended.stderr.contains(waiting), "{}", ended.stderr);
}

/// kOps and earlier releases stored any key. Nobody who only plans may read it (plan_job.rs).
#[test]
fn a_stored_key_that_no_api_server_takes_ends_an_update_before_it_begins() {
    const SHORT: &str = "c3dvcmRmaXNoLWlzLXRoZS1wYXNzd29yZC1oZXJl";
    const WHOLE: &str = "c3dvcmRmaXNoLWlzLXRoZS1wYXNzd29yZC1oZXJlLi4=";
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator.run_ok(&["edit", "cluster", "--set", "spec.encryptionConfig=true"]);
    let store = |kind: &str, key: &str| {
        let config = format!(
            "{kind}\nresources:\n- resources: [secrets]\n  providers:\n  - secretbox: {{keys: [{{name: a, secret: {key}}}]}}\n"
        );
        let object = write_stored(&Secret::new(config));
        let put = format!(
            "boto('s3').put_object(Bucket='state', Key='{CLUSTER}/secrets/{ENCRYPTION_CONFIG}', Body={:?})",
            object.reveal()
        );
        operator.simulator.run_python(REGION, &put);
    };
    store(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration",
        SHORT,
    );
    operator.run_ok(&["update"]);
    let before = operator.list_resources();
    let ended = operator.run(&["update", "--yes"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for said in [
        "resources[0].providers[0].secretbox.keys[0].secret has 30 bytes",
        "--force",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
    // Its other keys may be good.
    for unsaid in [SHORT, "--drop-keys"] {
        assert!(!ended.stderr.contains(unsaid), "{}", ended.stderr);
    }
    assert_eq!(operator.list_resources(), before);

    // The kind of old, which API servers read all the same.
    store("apiVersion: v1\nkind: EncryptionConfig", WHOLE);
    operator.run_ok(&["update", "--yes"]);
}
