//! What the spec says of containerd, for one group.

use crate::api::cluster::ClusterSpec;
use crate::api::containerd::ContainerdConfig;
use crate::api::instance_group::InstanceGroupSpec;

/// The group's settings of containerd over the cluster's.
pub(super) fn settings(cluster: &ClusterSpec, said: &InstanceGroupSpec) -> ContainerdConfig {
    let mut merged = cluster.containerd.clone().unwrap_or_default();
    let Some(own) = said.containerd.clone() else {
        return merged;
    };
    merged.config_additions.extend(own.config_additions);
    merged.registry_mirrors.extend(own.registry_mirrors);
    let over = |own: Option<String>, merged: &mut Option<String>| *merged = own.or(merged.take());
    over(own.address, &mut merged.address);
    over(own.config_override, &mut merged.config_override);
    over(own.log_level, &mut merged.log_level);
    over(own.root, &mut merged.root);
    over(own.state, &mut merged.state);
    over(own.version, &mut merged.version);
    over(own.sandbox_image, &mut merged.sandbox_image);
    merged.packages = own.packages.or(merged.packages);
    merged.runc = own.runc.or(merged.runc);
    merged.skip_install = own.skip_install.or(merged.skip_install);
    merged.selinux_enabled = own.selinux_enabled.or(merged.selinux_enabled);
    merged.use_ecr_credentials_for_mirrors = own
        .use_ecr_credentials_for_mirrors
        .or(merged.use_ecr_credentials_for_mirrors);
    merged.install_cri_ctl = own.install_cri_ctl.or(merged.install_cri_ctl);
    merged.install_nerd_ctl = own.install_nerd_ctl.or(merged.install_nerd_ctl);
    merged
}
