//! Rules of kube-router.

use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

/// As in kOps: two programs must not answer for the same Services.
pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let networking = spec.networking.as_ref();
    let chosen = networking.is_some_and(|networking| networking.kuberouter.is_some());
    let proxy = spec.kube_proxy.as_ref().and_then(|proxy| proxy.enabled);
    if chosen && proxy != Some(false) {
        let problem = Problem::error(
            "spec.networking.kuberouter",
            "kube-router replaces kube-proxy, which is enabled",
        );
        problems.push(problem.hint("set spec.kubeProxy.enabled: false"));
    }
}
