//! What kubelet must have before it starts, of the merged settings of a group: cluster and group may each have a part.

use super::Findings;
use crate::api::InstanceGroup;
use crate::api::kubelet::KubeletConfigSpec;
use crate::quantity::count_up;

pub(super) fn check_reservations(
    group: &InstanceGroup,
    merged: &KubeletConfigSpec,
    findings: &mut Findings,
) {
    check_enforced(group, merged, findings);
    let reserves_cpu = [&merged.kube_reserved, &merged.system_reserved]
        .into_iter()
        .filter_map(|reserved| reserved.get("cpu"))
        .any(|cpu| count_up(cpu, 1) != Some(0));
    if merged.cpu_manager_policy.as_deref() == Some("static") && !reserves_cpu {
        findings.add_group_error(
            group,
            "spec.kubelet.cpuManagerPolicy",
            "kubelet does not start with the policy static unless CPU is reserved",
            "add kubeReserved: {cpu: 100m} or the like",
        );
    }
}

/// A limit for the system's own processes needs the control group that they are in.
fn check_enforced(group: &InstanceGroup, merged: &KubeletConfigSpec, findings: &mut Findings) {
    let enforced = merged.enforce_node_allocatable.as_deref();
    let enforced = enforced.unwrap_or_default().split(',').map(str::trim);
    for part in enforced {
        let (field, cgroup) = match part.trim_end_matches("-compressible") {
            "kube-reserved" => ("kubeReservedCgroup", &merged.kube_reserved_cgroup),
            "system-reserved" => ("systemReservedCgroup", &merged.system_reserved_cgroup),
            _ => continue,
        };
        if cgroup.as_deref().unwrap_or_default().is_empty() {
            findings.add_group_error(
                group,
                "spec.kubelet.enforceNodeAllocatable",
                format!("kubelet does not start with {part} unless it has {field}"),
                &format!("add {field}, or leave out {part}"),
            );
        }
    }
}
