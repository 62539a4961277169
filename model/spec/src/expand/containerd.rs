//! The container runtime, and further runtimes of the instances of a group.

use super::assets::{registry_image, remapped_image};
use super::fill::{fill, overlay_fields};
use super::instances::{first_machine_type, has_nvidia_gpu};
use super::labels::node_taints;
use super::{Context, Findings};
use crate::api::cluster::ClusterSpec;
use crate::api::containerd::ContainerdConfig;
use crate::api::{InstanceGroup, InstanceGroupRole};
use crate::catalog::Component;
use cloud::facts::Facts;
use cloud::supported_image::known_system;
use full::NvidiaDevicePlugin;

/// The label of Nodes on which pods with the RuntimeClass `gvisor` run, as in kOps.
const GVISOR_LABEL: &str = "kops.k8s.io/gvisor";

/// The package with runsc and its shim.
const GVISOR_PACKAGE: &str = "runsc";

/// The label of Nodes with a GPU, and their taint, as in kOps.
const GPU_LABEL: &str = "kops.k8s.io/gpu";
const GPU_TAINT: &str = "nvidia.com/gpu";

/// What NVIDIA's runtime is in, and the driver that kOps installs.
const NVIDIA_PACKAGE: &str = "nvidia-container-toolkit";
const NVIDIA_DRIVER: &str = "nvidia-driver-535-server";

/// The device plugin that kOps installs.
const NVIDIA_DEVICE_PLUGIN: &str = "nvcr.io/nvidia/k8s-device-plugin:v0.17.3";

/// How gVisor intercepts system calls by default, as in kOps.
const GVISOR_PLATFORM: &str = "systrap";

/// Fills in the versions of containerd and runc, and the pause image.
pub(super) fn complete_containerd(spec: &mut ClusterSpec, context: &Context) {
    let assets = spec.assets.clone().unwrap_or_default();
    let containerd = spec.containerd.get_or_insert_default();
    fill(&mut containerd.log_level, "info");
    fill(
        &mut containerd.sandbox_image,
        remapped_image(&registry_image("pause", "3.10.1"), &assets),
    );
    if let Some(nvidia) = &mut containerd.nvidia_gpu
        && nvidia.enabled == Some(true)
    {
        fill(&mut nvidia.package, NVIDIA_DRIVER);
        fill(&mut nvidia.image, NVIDIA_DEVICE_PLUGIN);
    }
    if containerd.skip_install == Some(true) {
        return;
    }
    fill(
        &mut containerd.version,
        Component::Containerd.version_for(&context.version),
    );
    let runc = containerd.runc.get_or_insert_default();
    fill(
        &mut runc.version,
        Component::Runc.version_for(&context.version),
    );
}

/// The settings of a group's instances: its own win over the cluster's.
pub(super) fn merged_containerd(
    group: &InstanceGroup,
    spec: &ClusterSpec,
) -> Result<ContainerdConfig, serde_json::Error> {
    overlay_fields(
        &spec.containerd.clone().unwrap_or_default(),
        &group.spec.containerd.clone().unwrap_or_default(),
    )
}

/// gVisor's platform; `None`: it is not wanted.
pub(super) fn gvisor_platform(config: &ContainerdConfig) -> Option<String> {
    let gvisor = config.gvisor.as_ref()?;
    let platform = gvisor.platform.as_deref().unwrap_or(GVISOR_PLATFORM);
    (gvisor.enabled == Some(true)).then(|| platform.to_owned())
}

/// The package of NVIDIA's driver for a group with these settings; `None`: it is not wanted, or its instances have no such GPU.
pub(super) fn nvidia_driver(
    config: &ContainerdConfig,
    group: &InstanceGroup,
    facts: &Facts,
) -> Option<String> {
    let nvidia = config.nvidia_gpu.as_ref()?;
    let has_gpu = has_nvidia_gpu(first_machine_type(&group.spec)?, facts);
    let package = nvidia.package.as_deref().unwrap_or(NVIDIA_DRIVER);
    (nvidia.enabled == Some(true) && has_gpu).then(|| package.to_owned())
}

/// Packages that bring the further runtimes of a group.
pub(super) fn runtime_packages(config: &ContainerdConfig, driver: Option<&str>) -> Vec<String> {
    let gvisor = gvisor_platform(config).map(|_| GVISOR_PACKAGE);
    let nvidia = driver.map(|driver| [NVIDIA_PACKAGE, driver]);
    let all = gvisor.into_iter().chain(nvidia.into_iter().flatten());
    all.map(str::to_owned).collect()
}

/// The device plugin of a completed spec; `None`: neither the cluster nor a group wants GPUs.
pub(super) fn full_nvidia(
    spec: &ClusterSpec,
    groups: &[InstanceGroup],
) -> Option<NvidiaDevicePlugin> {
    let own = groups.iter().map(|group| group.spec.containerd.as_ref());
    let all = own.chain([spec.containerd.as_ref()]).flatten();
    let mut sections = all.filter_map(|containerd| containerd.nvidia_gpu.as_ref());
    if !sections.any(|nvidia| nvidia.enabled == Some(true)) {
        return None;
    }
    let containerd = spec.containerd.clone().unwrap_or_default();
    let nvidia = containerd.nvidia_gpu.unwrap_or_default();
    let image = nvidia.image;
    let exporter = nvidia.dcgm_exporter.and_then(|exporter| exporter.enabled);
    Some(NvidiaDevicePlugin {
        image: image.unwrap_or_else(|| NVIDIA_DEVICE_PLUGIN.to_owned()),
        exporter: exporter == Some(true),
        selinux: containerd.selinux_enabled == Some(true),
    })
}

/// Labels the Nodes of a group with its further runtimes, and refuses images for which these do not exist.
pub(super) fn complete_runtimes(
    group: &mut InstanceGroup,
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) {
    // What does not merge is reported with the instances' settings.
    let Ok(merged) = merged_containerd(group, spec) else {
        return;
    };
    if group.spec.role == Some(InstanceGroupRole::Bastion) {
        return;
    }
    if gvisor_platform(&merged).is_some() {
        let labels = &mut group.spec.node_labels;
        labels.insert(GVISOR_LABEL.to_owned(), "1".to_owned());
        let message = "gVisor is a package for Debian and Ubuntu";
        refuse_system(
            group,
            "gvisor",
            message,
            &["Debian", "Ubuntu"],
            context,
            findings,
        );
    }
    let driver = nvidia_driver(&merged, group, context.facts);
    if driver.is_some() {
        let labels = &mut group.spec.node_labels;
        labels.insert(GPU_LABEL.to_owned(), "1".to_owned());
        let is_there = |taint: &String| taint.starts_with(GPU_TAINT);
        if !node_taints(group).iter().any(is_there) {
            group.spec.taints.push(format!("{GPU_TAINT}:NoSchedule"));
        }
        let message = "NVIDIA's drivers are packages of Ubuntu";
        refuse_system(group, "nvidiaGPU", message, &["Ubuntu"], context, findings);
    }
    check_own_config(group, &merged, driver.as_deref(), findings);
}

/// Refuses an image that is known to hold another system. Of others nodeup says at boot which package there is not.
fn refuse_system(
    group: &InstanceGroup,
    field: &str,
    message: &str,
    systems: &[&str],
    context: &Context,
    findings: &mut Findings,
) {
    let image = group.spec.image.as_deref().unwrap_or_default();
    let asked = context.facts.images.get(image);
    let system = match asked.and_then(|image| image.system.as_deref()) {
        Some(system) => Some(system),
        None => known_system(image.split_once('/').map_or("", |(owner, _)| owner), image),
    };
    let Some(system) = system.filter(|system| !systems.contains(system)) else {
        return;
    };
    findings.add_group_error(
        group,
        format!("spec.containerd.{field}"),
        format!("{message}, and {image} is {system}"),
        &format!(
            "choose an image of {}, or remove the runtime",
            systems.join(" or ")
        ),
    );
}

/// Warns where kctl writes no `config.toml` into which it could put the runtime.
fn check_own_config(
    group: &InstanceGroup,
    merged: &ContainerdConfig,
    driver: Option<&str>,
    findings: &mut Findings,
) {
    let runtimes = [
        gvisor_platform(merged).map(|_| "runsc"),
        driver.map(|_| "nvidia"),
    ];
    let own = if merged.skip_install == Some(true) {
        "the image's config.toml"
    } else if merged.config_override.is_some() {
        "configOverride"
    } else {
        return;
    };
    for runtime in runtimes.into_iter().flatten() {
        let message = format!("kctl does not add the runtime {runtime} to {own}");
        findings.add_group_warning(group, "spec.containerd", message, "add it there");
    }
}
