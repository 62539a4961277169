//! kube-proxy's static pod, on every node.

use super::mounts::Mounts;
use super::{Container, Pod, SecurityContext, critical, log_file, logged};
use crate::components::Component;
use crate::config::Host;

const NAME: &str = "kube-proxy";

/// What the spec is completed with: not necessarily the user's wish.
const CONNTRACK_PER_CORE: &str = "131072";

/// The pod on one machine. The user's own flags win.
pub fn proxy(proxy: &Component, api_server: &str, host: &Host) -> Pod {
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
