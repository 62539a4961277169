//! The container runtime, and further runtimes of the instances of a group.

use super::assets::{registry_image, remapped_image};
use super::fill::{fill, overlay_fields};
use super::{Context, Findings};
use crate::api::cluster::ClusterSpec;
use crate::api::containerd::ContainerdConfig;
use crate::api::{InstanceGroup, InstanceGroupRole};
use crate::catalog::Component;
use cloud::supported_image::known_system;

/// The label of Nodes on which pods with the RuntimeClass `gvisor` run, as in kOps.
const GVISOR_LABEL: &str = "kops.k8s.io/gvisor";

/// The package with runsc and its shim.
const GVISOR_PACKAGE: &str = "runsc";

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

/// Packages that bring the further runtimes of a group.
pub(super) fn runtime_packages(config: &ContainerdConfig) -> Vec<String> {
    let gvisor = gvisor_platform(config).map(|_| GVISOR_PACKAGE.to_owned());
    gvisor.into_iter().collect()
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
    check_own_config(group, &merged, findings);
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
fn check_own_config(group: &InstanceGroup, merged: &ContainerdConfig, findings: &mut Findings) {
    let runtime = gvisor_platform(merged).map(|_| "runsc");
    let own = if merged.skip_install == Some(true) {
        "the image's config.toml"
    } else if merged.config_override.is_some() {
        "configOverride"
    } else {
        return;
    };
    if let Some(runtime) = runtime {
        let message = format!("kctl does not add the runtime {runtime} to {own}");
        findings.add_group_warning(group, "spec.containerd", message, "add it there");
    }
}
