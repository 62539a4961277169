//! What the user of a new or small account reads: load balancers that are not enabled, vCPUs that are used up.

use crate::scenario::{NAME, create_cluster, kctl_with_cloud};
use crate::simulator::Simulator;
use serde_json::json;

#[test]
fn an_account_without_load_balancers_is_sent_to_support_and_the_next_run_goes_on() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    simulator.set_faults(&json!([{
        "service": "elbv2", "operation": "CreateLoadBalancer", "code": "OperationNotPermitted", "status": 400, "times": 9,
        "message": "This AWS account currently does not support creating load balancers. For more information, please contact AWS Support.",
    }]));
    let ran = kctl.run(&["update", "--yes"]);
    assert_ne!(ran.code, 0);
    for said in [
        "does not support creating load balancers",
        "open a case with AWS Support",
        "it goes on where it ended",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    assert!(!ran.err.contains("in the spec"), "{}", ran.err);
    simulator.set_faults(&json!([]));
    kctl.run(&["update", "--yes"]).expect_success();
}

#[test]
fn instances_that_do_not_fit_into_the_quota_are_told() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    simulator.set_vcpus(4);
    kctl.run(&["update", "--yes"]).expect_success();
    let ran = kctl.run(&["get", "instances", NAME]);
    let all = format!("{}{}", ran.out, ran.err);
    assert!(
        all.contains("VcpuLimitExceeded") || all.contains("vCPU"),
        "{all}"
    );
    let ran = kctl.run(&["validate", NAME]);
    let all = format!("{}{}", ran.out, ran.err);
    assert!(
        all.contains("more vCPU capacity than your current vCPU limit of 4 allows"),
        "{all}"
    );
}
