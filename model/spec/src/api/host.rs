//! What else runs on instances: hooks, files, proxy, time, rolling updates.

use std::collections::BTreeMap;

use super::enums::InstanceGroupRole;
use super::fields::spec;
use super::scalars::IntOrString;

spec! {
    /// A systemd unit that runs on instances.
    pub struct HookSpec {
        /// Name of the unit; without a suffix it is a service. Default `kops-hook-INDEX`.
        pub name: Option<String>,
        /// Masks the unit of that name, so that it does not run. Default false.
        pub disabled: Option<bool>,
        /// Roles of the instances that have the unit. Default all.
        pub roles: Vec<InstanceGroupRole>,
        /// Units that have to run with it.
        pub requires: Vec<String>,
        /// Units before which it starts.
        pub before: Vec<String>,
        /// A container that the unit runs once in every boot. In the place of `manifest`.
        pub exec_container: Option<ExecContainerAction>,
        /// The lines of the unit's section [Service], or with `useRawManifest` the whole unit.
        pub manifest: Option<String>,
        /// True: `manifest` is the whole unit, and `requires` and `before` are in it. Default false.
        pub use_raw_manifest: Option<bool>,
    }

    /// A container that a hook runs. It has the instance's root folder at `/rootfs`.
    pub struct ExecContainerAction {
        /// Image of the container.
        pub image: Option<String>,
        /// Command and arguments of the container. Default those of the image.
        pub command: Vec<String>,
        /// Environment variables of the container.
        pub environment: BTreeMap<String, String>,
    }

    /// A file that is written on instances.
    pub struct FileAssetSpec {
        /// Name of the file, for messages, and for its path if there is none.
        pub name: String,
        /// Absolute path of the file. Default `/srv/kubernetes/assets/NAME`.
        pub path: Option<String>,
        /// Roles of the instances that have the file. Default all.
        pub roles: Vec<InstanceGroupRole>,
        /// Content of the file.
        pub content: String,
        /// True: `content` is base64. Default false.
        pub is_base64: Option<bool>,
        /// Mode of the file in octal. Default `0440`.
        pub mode: Option<String>,
    }

    /// The HTTP proxy through which instances reach the internet.
    pub struct EgressProxySpec {
        /// Address of the proxy.
        pub http_proxy: Option<HTTPProxy>,
        /// Names, addresses and ranges that are reached without the proxy, separated by commas. What the cluster itself needs
        /// is added.
        pub excludes: Option<String>,
    }

    /// Address of a proxy.
    pub struct HTTPProxy {
        /// Name or address of the proxy, without a password.
        pub host: String,
        /// TCP port of the proxy. Default that of http, 80.
        pub port: Option<i32>,
    }

    /// Who sets the clocks of instances.
    pub struct NTPConfig {
        /// Whether kctl installs chrony. False: the image takes care of the clock. Default true.
        pub managed: Option<bool>,
    }

    /// How fast a rolling update replaces the instances of a group.
    pub struct RollingUpdate {
        /// False: a rolling update leaves the group out. Default true.
        pub drain_and_terminate: Option<bool>,
        /// Instances of the group that may be missing at a time: a number or a percentage, which rounds down. Default 0, or 1
        /// if none is added first.
        pub max_unavailable: Option<IntOrString>,
        /// Instances that are added before others go: a number or a percentage, which rounds up. Default 1, for control planes
        /// always 0.
        pub max_surge: Option<IntOrString>,
    }
}
