//! kube-proxy's static pod, on every node.

use super::mounts::Mounts;
use super::{Container, Pod, SecurityContext, critical, log_file, logged, resources};
use crate::api::kube_proxy::KubeProxyConfig;
use crate::components::Flags;
use crate::node::Host;
use serde::{Deserialize, Serialize};

const NAME: &str = "kube-proxy";

/// What kube-proxy's pod is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Proxy {
    /// Image.
    pub image: String,
    /// Flags, without those of the machine.
    pub flags: Flags,
    /// Requests and limits.
    pub resources: super::Resources,
}

impl Proxy {
    /// From the completed configuration and its flags.
    pub fn new(config: &KubeProxyConfig, flags: Flags) -> Self {
        Self {
            image: config.image.clone().unwrap_or_default(),
            flags,
            resources: resources(
                "100m",
                (config.cpu_request.as_ref(), config.memory_request.as_ref()),
                (config.cpu_limit.as_ref(), config.memory_limit.as_ref()),
            ),
        }
    }
}

/// What the spec is completed with: not necessarily the user's wish.
const CONNTRACK_PER_CORE: &str = "131072";

/// The pod on one machine. The user's own flags win.
pub fn proxy(proxy: &Proxy, api_server: &str, host: &Host) -> Pod {
    const CONNTRACK: &str = "conntrack-max-per-core";
    let mut flags = proxy.flags.clone();
    flags.fill("hostname-override", &host.instance_id);
    flags.fill("master", api_server);
    let said = flags.get(CONNTRACK);
    if host.conntrack_max_fixed && said.is_none_or(|said| said == CONNTRACK_PER_CORE) {
        // kube-proxy ends where it cannot set the table's size: 0 leaves it as it is.
        flags.set(CONNTRACK, "0");
    }
    let mounts = Mounts::default()
        .reads("config", "/var/lib/kube-proxy")
        .reads("modules", "/lib/modules")
        .writes("iptables-lock", "/run/xtables.lock", "FileOrCreate")
        .writes("log", &log_file(NAME), "FileOrCreate");
    let container = Container {
        args: flags.arguments(),
        command: logged(NAME),
        image: proxy.image.clone(),
        name: NAME.to_owned(),
        resources: proxy.resources.clone(),
        security_context: Some(SecurityContext { privileged: true }),
        volume_mounts: mounts.mounts,
        ..Container::default()
    };
    critical(NAME, "system-node-critical", container, mounts.volumes)
}
