//! The static pod of kube-proxy, which runs on every node.

use super::mounts::HostPaths;
use super::{Container, Pod, SecurityContext, critical_pod, log_file, logged_command};
use crate::components::Component;
use crate::config::InstanceFacts;

const NAME: &str = "kube-proxy";

/// Default of `conntrack-max-per-core` in the full spec, which may differ from the user's wish.
const CONNTRACK_PER_CORE: &str = "131072";

/// Builds the pod for one instance. Flags from the spec win, but for the name of the Node.
pub fn build_proxy_pod(proxy: &Component, api_server: &str, host: &InstanceFacts) -> Pod {
    const CONNTRACK: &str = "conntrack-max-per-core";
    let mut flags = proxy.flags.clone();
    // As kubelet's.
    flags.set("hostname-override", &host.instance_id);
    flags.set_if_missing("master", api_server);
    let said = flags.get(CONNTRACK);
    if host.conntrack_max_fixed && said.is_none_or(|said| said == CONNTRACK_PER_CORE) {
        // kube-proxy exits if it cannot set the table's size; 0 leaves the size unchanged.
        flags.set(CONNTRACK, "0");
    }
    let mounts = HostPaths::default()
        .with_read_only("config", "/var/lib/kube-proxy")
        .with_read_only("modules", "/lib/modules")
        .with_writable("iptables-lock", "/run/xtables.lock", "FileOrCreate")
        .with_writable("log", &log_file(NAME), "FileOrCreate")
        .with_tools();
    let container = Container {
        args: flags.arguments(),
        command: logged_command(NAME),
        image: proxy.image.clone(),
        name: NAME.to_owned(),
        resources: proxy.resources.clone(),
        security_context: Some(SecurityContext { privileged: true }),
        volume_mounts: mounts.mounts,
        ..Container::default()
    };
    critical_pod(NAME, "system-node-critical", container, mounts.volumes)
}
