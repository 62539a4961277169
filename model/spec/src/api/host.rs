//! What else runs on instances: hooks, files, proxy, time, rolling updates.

use std::collections::BTreeMap;

use super::enums::InstanceGroupRole;
use super::fields::spec;
use super::scalars::IntOrString;

spec! {
    /// A systemd unit run on instances.
    pub struct HookSpec {
        /// Name of the unit; default `kops-hook-INDEX`.
        pub name: Option<String>,
        /// True: the unit is masked.
        pub disabled: Option<bool>,
        /// Only on instances of these roles.
        pub roles: Vec<InstanceGroupRole>,
        /// Units that its unit requires.
        pub requires: Vec<String>,
        /// Units it comes before.
        pub before: Vec<String>,
        /// A container it runs.
        pub exec_container: Option<ExecContainerAction>,
        /// Body of its [Service] section, or the whole unit with `useRawManifest`.
        pub manifest: Option<String>,
        /// True: `manifest` is the whole unit.
        pub use_raw_manifest: Option<bool>,
    }

    /// A container run once.
    pub struct ExecContainerAction {
        pub image: Option<String>,
        /// Its command.
        pub command: Vec<String>,
        pub environment: BTreeMap<String, String>,
    }

    /// A file written on instances.
    pub struct FileAssetSpec {
        pub name: String,
        /// Where it goes; default `/srv/kubernetes/assets/NAME`.
        pub path: Option<String>,
        /// Only on instances of these roles.
        pub roles: Vec<InstanceGroupRole>,
        pub content: String,
        /// True: `content` is base64.
        pub is_base64: Option<bool>,
        /// Its mode in octal; default 0440.
        pub mode: Option<String>,
    }

    /// HTTP proxy through which instances reach the internet.
    pub struct EgressProxySpec {
        pub http_proxy: Option<HTTPProxy>,
        /// Names and ranges reached directly, separated by commas.
        pub excludes: Option<String>,
    }

    /// Address of a proxy.
    pub struct HTTPProxy {
        pub host: String,
        pub port: Option<i32>,
    }

    pub struct NTPConfig {
        /// False: the image takes care of it.
        pub managed: Option<bool>,
    }

    /// How fast instances are replaced.
    pub struct RollingUpdate {
        /// False: instances are only reported, not replaced.
        pub drain_and_terminate: Option<bool>,
        /// Instances replaced at once: a number or a percentage.
        pub max_unavailable: Option<IntOrString>,
        /// Instances added beforehand: a number or a percentage.
        pub max_surge: Option<IntOrString>,
    }
}
