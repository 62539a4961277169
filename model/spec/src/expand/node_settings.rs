//! Node settings of an instance group, merged from the cluster's spec and the group's.

use super::amazon_vpc::max_pods;
use super::components::value_or_error;
use super::containerd::{gvisor_platform, merged_containerd, nvidia_driver, runtime_packages};
use super::{Context, Findings, flags, profile, user_files};
use crate::api::cluster::ClusterSpec;
use crate::api::containerd::ContainerdConfig;
use crate::api::instance::VolumeMountSpec;
use crate::api::scalars::IntOrString;
use crate::api::{InstanceGroup, InstanceGroupRole};
use full::NodeSettings;
use node::config::{Containerd, Kubelet, Nri, UnitFile, VolumeMount};
use node::values::parse_folder;
use serde_json::Value;

/// The node settings of a completed group; `None` for bastions, and if a problem was reported.
pub(super) fn full_node_settings(
    group: &InstanceGroup,
    taints: &[String],
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) -> Option<NodeSettings> {
    let own = &group.spec;
    let role = own
        .role
        .filter(|role| *role != InstanceGroupRole::Bastion)?;
    let merged = match merged_containerd(group, spec) {
        Ok(merged) => merged,
        Err(error) => {
            findings.add_group_error(group, "spec.containerd", error.to_string(), "correct it");
            return None;
        }
    };
    let mut kubelet = own.kubelet.clone().unwrap_or_default();
    if kubelet.max_pods.is_none() {
        kubelet.max_pods = max_pods(group, spec, context, findings);
    }
    let ntp = spec.ntp.as_ref().and_then(|ntp| ntp.managed) != Some(false);
    let updates = own.update_policy.as_ref().or(spec.update_policy.as_ref());
    let updates = updates.is_none_or(|policy| policy != "external");
    let mut units = user_files::hook_units(&spec.hooks, group, role, findings);
    check_masks(&units, ntp, updates, group, findings);
    units.extend(profile::units(spec));
    let mut files = user_files::file_assets(&spec.file_assets, group, role, findings);
    profile::add_files(spec, role, &mut files);
    let driver = nvidia_driver(&merged, group, context.facts);
    let runtime_packages = runtime_packages(&merged, driver.as_deref());
    let mut kubelet_flags =
        value_or_error("spec.kubelet", flags::kubelet_flags(&kubelet), findings);
    if spec.is_ipv6() {
        // kubelet chooses an IPv6 address; the cloud controller manager names the others.
        kubelet_flags.set("node-ip", "::");
    }
    Some(NodeSettings {
        kubelet: Kubelet {
            flags: kubelet_flags,
            config: value_or_error(
                "spec.kubelet",
                flags::kubelet_config(&kubelet, taints),
                findings,
            ),
        },
        // As in kOps, not beside a containerd that the image brings.
        nerdctl: merged.install_nerd_ctl == Some(true) && merged.skip_install != Some(true),
        containerd: Containerd {
            nvidia: driver.is_some(),
            ..full_containerd(merged)
        },
        files,
        units,
        sysctls: [&spec.sysctl_parameters[..], &own.sysctl_parameters].concat(),
        packages: [&spec.packages[..], &own.packages, &runtime_packages].concat(),
        volume_mounts: own.volume_mounts.iter().map(full_mount).collect(),
        ntp,
        automatic_updates: updates,
    })
}

/// Refuses hooks that mask what the same spec asks for. Logs are rotated by whoever masks the timer.
fn check_masks(
    units: &[UnitFile],
    ntp: bool,
    updates: bool,
    group: &InstanceGroup,
    findings: &mut Findings,
) {
    for unit in units.iter().filter(|unit| !unit.enabled) {
        let (wanted, hint) = match unit.name.as_str() {
            "chrony.service" | "chronyd.service" => (ntp, "set ntp.managed to false too"),
            "dnf-automatic-install.timer" => (updates, "set updatePolicy to external too"),
            _ => (false, ""),
        };
        if wanted {
            let message = format!("{} is masked by a hook and wanted by kctl", unit.name);
            findings.add_group_error(group, "spec.hooks", message, hint);
        }
    }
}

/// containerd's settings of a section of the spec.
pub(crate) fn full_containerd(merged: ContainerdConfig) -> Containerd {
    let gvisor = gvisor_platform(&merged);
    let additions = merged.config_additions.into_iter();
    let additions = additions.map(|(path, value)| {
        let value = match value {
            IntOrString::Int(number) => Value::from(number),
            IntOrString::String(text) => Value::from(text),
        };
        (path, value)
    });
    Containerd {
        version: merged.version,
        skip_install: merged.skip_install == Some(true),
        config_override: merged.config_override,
        config_additions: additions.collect(),
        registry_mirrors: merged.registry_mirrors,
        use_ecr_credentials_for_mirrors: merged.use_ecr_credentials_for_mirrors == Some(true),
        sandbox_image: merged.sandbox_image,
        selinux_enabled: merged.selinux_enabled == Some(true),
        nri: merged.nri.map(|nri| Nri {
            enabled: nri.enabled != Some(false),
            registration_timeout: nri.plugin_registration_timeout,
            request_timeout: nri.plugin_request_timeout,
        }),
        gvisor,
        // That depends on the instance type.
        nvidia: false,
        address: merged.address,
        log_level: merged.log_level,
        root: merged.root,
        state: merged.state,
    }
}

fn full_mount(mount: &VolumeMountSpec) -> VolumeMount {
    VolumeMount {
        device: mount.device.clone(),
        filesystem: mount.filesystem.clone(),
        format_options: mount.format_options.clone(),
        mount_options: mount.mount_options.clone(),
        path: parse_folder(&mount.path).unwrap_or_else(|_| mount.path.clone()),
    }
}
