//! The pods that need etcd, which a recovery takes away.

use super::static_pod::signal_containers;
use host::Host;
use node::config::NodeConfig;
use node::manifests::manifest_path;

/// Name of the API server's pod.
pub const API_SERVER: &str = "kube-apiserver";

/// Pods that start after the API server, before all others.
pub const CONTROLLERS: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

/// Removes the manifests of the pods that need etcd, so that kubelet stops them: the controllers, which would end again and again
/// without an API, and the API server, which would serve what it remembers. protokube's role manifests brings them back, in order, once
/// etcd is formed and healthy. True if one was there.
pub fn remove_manifests(host: &Host) -> anyhow::Result<bool> {
    let mut removed = false;
    for name in CONTROLLERS.into_iter().chain([API_SERVER]) {
        let path = manifest_path(name);
        removed |= host.read_text(&path)?.is_some();
        host.remove_file(&path)?;
    }
    Ok(removed)
}

/// Ends the API server at once, after [`remove_manifests`]. Without etcd it has nothing to end in order. In the half minute of its grace it would
/// leave the requests of kubelet without an answer, which deletes mirror pods in its main loop and stops nothing else meanwhile
/// (kubelet: `HandlePodCleanups`).
pub(crate) fn kill_api_server(host: &Host) -> anyhow::Result<()> {
    signal_containers(host, API_SERVER, "SIGKILL")
}

/// Path of the API server's EncryptionConfiguration on this instance, from its flags.
pub fn find_encryption_config(config: &NodeConfig) -> Option<String> {
    let own = config.control_plane.iter();
    let pods = own.flat_map(|own| own.static_pods.values());
    let containers = pods.flat_map(|pod| &pod.spec.containers);
    let mut flags = containers.flat_map(|container| &container.args);
    let path = |flag: &String| {
        Some(
            flag.strip_prefix("--encryption-provider-config=")?
                .to_owned(),
        )
    };
    flags.find_map(path)
}
