//! Fields of kOps that have nothing to act on in kctl and ask for nothing that it lacks. They are warnings, so that a spec that works in
//! kOps is not stopped by them.

use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

const NO_PODS: &str =
    "protokube drains Nodes itself: there are no pods of the node termination handler";
const NO_TIMEOUT: &str =
    "bastions are behind a network load balancer, whose connections have no such timeout";
const CLASSIC: &str = "it is for classic load balancers, which kctl does not make";
const NO_INTERVAL: &str = "network load balancers write a file every five minutes";
const NO_BUG: &str =
    "it is for kernels before 5.7: every system that nodeup supports has a newer one";
const NO_TERRAFORM: &str =
    "kctl has no Terraform output; without that output the field does nothing in kOps either";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let handler = spec.node_termination_handler.clone().unwrap_or_default();
    let topology = spec.topology.clone().unwrap_or_default();
    let bastion = topology.bastion.unwrap_or_default();
    let networking = spec.networking.clone().unwrap_or_default();
    let flannel = networking.flannel.unwrap_or_default();
    let terraform = spec.target.as_ref().and_then(|one| one.terraform.as_ref());
    let api = spec.api.clone().unwrap_or_default();
    let balancer = api.load_balancer.unwrap_or_default();
    let log = balancer.access_log.unwrap_or_default();
    for (field, is_set, why) in [
        (
            "api.loadBalancer.accessLog.interval",
            log.interval.is_some(),
            NO_INTERVAL,
        ),
        (
            "api.loadBalancer.idleTimeoutSeconds",
            balancer.idle_timeout_seconds.is_some(),
            CLASSIC,
        ),
        ("target.terraform", terraform.is_some(), NO_TERRAFORM),
        (
            "nodeTerminationHandler.cpuRequest",
            handler.cpu_request.is_some(),
            NO_PODS,
        ),
        (
            "nodeTerminationHandler.memoryLimit",
            handler.memory_limit.is_some(),
            NO_PODS,
        ),
        (
            "nodeTerminationHandler.memoryRequest",
            handler.memory_request.is_some(),
            NO_PODS,
        ),
        (
            "nodeTerminationHandler.version",
            handler.version.is_some(),
            NO_PODS,
        ),
        (
            "topology.bastion.idleTimeoutSeconds",
            bastion.idle_timeout_seconds.is_some(),
            NO_TIMEOUT,
        ),
        (
            "networking.flannel.disableTxChecksumOffloading",
            flannel.disable_tx_checksum_offloading == Some(true),
            NO_BUG,
        ),
    ] {
        if is_set {
            let problem = Problem::warning(format!("spec.{field}"), why);
            problems.push(problem.hint("remove it: it does nothing"));
        }
    }
}
