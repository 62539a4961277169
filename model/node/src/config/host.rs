//! What nodeup finds out about the machine it is on.

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// `i-...`; also the Node's name.
    pub instance_id: String,
    /// Availability zone.
    pub zone: String,
    /// Private addresses of the control plane, for workers of clusters without DNS.
    pub control_plane_addresses: Vec<String>,
    /// Distribution.
    pub distribution: Distribution,
    /// The kernel has version 1 of control groups.
    pub cgroup_v1: bool,
    /// Names are resolved by systemd-resolved.
    pub systemd_resolved: bool,
    /// Processes may not lower their OOM score: CAP_SYS_RESOURCE is missing.
    pub restrict_oom_score_adj: bool,
    /// The kernel does not let the size of the table of connections be set here: only the initial network namespace may.
    pub conntrack_max_fixed: bool,
}

/// A family of distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Debian and Ubuntu: apt.
    Debian,
    /// Amazon Linux: dnf.
    AmazonLinux,
}

impl Host {
    /// A machine that stands for all of a group: what differs between them is in angle brackets. For `kctl render`.
    pub fn placeholder() -> Self {
        Self {
            instance_id: "<instance-id>".to_owned(),
            zone: "<zone>".to_owned(),
            control_plane_addresses: Vec::new(),
            distribution: Distribution::Debian,
            cgroup_v1: false,
            systemd_resolved: true,
            restrict_oom_score_adj: false,
            conntrack_max_fixed: false,
        }
    }

    /// As the cloud controller manager names machines.
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.instance_id)
    }
}
