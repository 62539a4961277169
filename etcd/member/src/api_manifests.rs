//! The manifests of the pods that need etcd, which a recovery takes away.

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
