//! Facts that nodeup collects about its instance.

/// Facts about an instance on which its configuration depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceFacts {
    /// Instance id, `i-...`; also the name of the Node.
    pub instance_id: String,
    pub zone: String,
    /// Private IPv4 address of the primary network interface.
    pub address: Option<String>,
    /// Name of the primary network interface; `None` if it was not found.
    pub primary_interface: Option<String>,
    /// Private addresses of the control planes, for workers of clusters without DNS.
    pub control_plane_addresses: Vec<String>,
    /// Family of the distribution.
    pub distribution: Distribution,
    /// True if the kernel uses cgroup v1.
    pub cgroup_v1: bool,
    /// True if systemd-resolved resolves names.
    pub systemd_resolved: bool,
    /// True if processes may not lower their OOM score, because CAP_SYS_RESOURCE is missing.
    pub restrict_oom_score_adj: bool,
    /// Network interfaces with a device for which the kernel takes routes from router advertisements, sorted.
    pub advertised_interfaces: Vec<String>,
    /// True if the size of the conntrack table cannot be set here, because only the initial network namespace may.
    pub conntrack_max_fixed: bool,
}

/// A family of distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Debian and Ubuntu, with apt.
    Debian,
    /// Amazon Linux, with dnf.
    AmazonLinux,
}

impl InstanceFacts {
    /// A placeholder for all instances of a group, with values that differ in angle brackets. For `kctl render`.
    pub fn placeholder() -> Self {
        Self {
            instance_id: "<instance-id>".to_owned(),
            zone: "<zone>".to_owned(),
            address: Some("<address>".to_owned()),
            primary_interface: Some("<primary-interface>".to_owned()),
            control_plane_addresses: Vec::new(),
            distribution: Distribution::Debian,
            cgroup_v1: false,
            systemd_resolved: true,
            restrict_oom_score_adj: false,
            advertised_interfaces: Vec::new(),
            conntrack_max_fixed: false,
        }
    }

    /// The id by which the cloud controller manager knows the instance.
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.instance_id)
    }
}
