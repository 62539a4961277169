//! An EC2 instance of a cluster, as EC2 and Auto Scaling describe it.

/// Before the lifecycle states of instances in a warm pool.
const WARMED: &str = "Warmed:";

/// A version of a launch template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateVersion {
    /// `lt-...`.
    pub id: String,
    /// The version's number as text; `$Latest` and `$Default` are already resolved.
    pub version: String,
}

/// An instance that belongs to an instance group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// `i-...`.
    pub id: String,
    /// Name of its Auto Scaling group; `None` once it is detached.
    pub scaling_group: Option<String>,
    /// Name of its instance group: from the instance's tag, else from its Auto Scaling group.
    pub instance_group: Option<String>,
    /// Availability zone, `eu-west-1a`.
    pub zone: String,
    /// Instance type, `t3.medium`.
    pub machine_type: String,
    /// AMI, `ami-...`.
    pub image: Option<String>,
    /// EC2's state: `pending`, `running`, `shutting-down`, `stopping`, `stopped`; empty while EC2 does not list the
    /// instance yet.
    pub state: String,
    /// EC2's reason for the last change of the state, for example `Client.VolumeLimitExceeded`.
    pub state_reason: Option<String>,
    /// Auto Scaling's state: `Pending`, `InService`, `Terminating:Wait`, `Warmed:Stopped`, ...
    pub lifecycle: Option<String>,
    /// When it was launched, in seconds since 1970.
    pub launched: Option<i64>,
    pub private_ip: Option<String>,
    /// Public address, if it has one.
    pub public_ip: Option<String>,
    /// Primary IPv6 address, if it has one.
    pub ipv6_address: Option<String>,
    /// `ip-10-0-0-1.ec2.internal`.
    pub private_dns_name: Option<String>,
    /// The launch template version that it was launched from.
    pub template: Option<TemplateVersion>,
    /// True if a rolling update detached it from its Auto Scaling group, to terminate it once its replacement is Ready.
    pub detached: bool,
}

impl Instance {
    /// True if EC2 says that it runs.
    pub fn is_running(&self) -> bool {
        self.state == "running"
    }

    /// True if Auto Scaling or EC2 is terminating it.
    pub fn is_leaving(&self) -> bool {
        let lifecycle = self.lifecycle.as_deref().unwrap_or_default();
        let in_group = lifecycle.strip_prefix(WARMED).unwrap_or(lifecycle);
        in_group.starts_with("Terminat") || self.state == "shutting-down"
    }

    /// True if it is a member of a warm pool.
    pub fn is_in_warm_pool(&self) -> bool {
        let lifecycle = self.lifecycle.as_deref().unwrap_or_default();
        lifecycle.starts_with(WARMED)
    }
}
