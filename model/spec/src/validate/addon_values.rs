//! Changes of addons' pods (`spec.addonValues`), as far as they can be read without the addons. `expand` looks for the workloads.

use crate::api::addon_values::{AddonValues, Toleration};
use crate::api::cluster::ClusterSpec;
use crate::read::{Problem, path};

pub const VALUES: &str = "spec.addonValues";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    for (index, values) in spec.addon_values.iter().enumerate() {
        let at = path::element_path(VALUES, index);
        if values.addon.is_empty() {
            problems.push(
                Problem::error(path::field_path(&at, "addon"), "it names no addon")
                    .hint("write a name that `kctl get addons` shows"),
            );
        }
        if changes_nothing(values) {
            problems.push(
                Problem::error(&at, "it changes nothing")
                    .hint("add replicas, resources, nodeSelector, tolerations, affinity, priorityClassName or args"),
            );
        }
        if values.replicas.is_some_and(|replicas| replicas < 1) {
            problems.push(
                Problem::error(
                    path::field_path(&at, "replicas"),
                    "an addon without pods does nothing",
                )
                .hint("write 1 or more, or turn the addon off"),
            );
        }
        check_tolerations(
            &path::field_path(&at, "tolerations"),
            &values.tolerations,
            problems,
        );
    }
    let dns = spec.kube_dns.iter().flat_map(|dns| &dns.tolerations);
    let dns: Vec<Toleration> = dns.cloned().collect();
    check_tolerations("spec.kubeDNS.tolerations", &dns, problems);
}

/// The rules of the API server (Kubernetes: `ValidateTolerations`).
fn check_tolerations(at: &str, tolerations: &[Toleration], problems: &mut Vec<Problem>) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let at = path::element_path(at, index);
        let exists = toleration.operator.as_deref() == Some("Exists");
        let effect = toleration.effect.as_deref();
        let wrong = if exists && toleration.value.is_some() {
            Some("Exists takes every value: leave value out")
        } else if !exists && toleration.key.is_none() {
            Some("without a key it needs operator: Exists")
        } else if toleration.toleration_seconds.is_some() && effect != Some("NoExecute") {
            Some("tolerationSeconds needs effect: NoExecute")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            problems.push(Problem::error(at, "the API server refuses this toleration").hint(wrong));
        }
    }
}

fn changes_nothing(values: &AddonValues) -> bool {
    let named = AddonValues {
        addon: values.addon.clone(),
        workload: values.workload.clone(),
        container: values.container.clone(),
        ..AddonValues::default()
    };
    *values == named
}
