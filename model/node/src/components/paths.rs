//! Where things lie on a machine, as kOps has them.

/// Certificates and keys of the components.
pub const KUBERNETES: &str = "/srv/kubernetes";

/// Static pods.
pub const MANIFESTS: &str = "/etc/kubernetes/manifests";

/// containerd's socket.
pub const CONTAINERD_SOCKET: &str = "unix:///run/containerd/containerd.sock";

/// Flexvolume plugins.
pub const VOLUME_PLUGINS: &str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/";

/// The kubeconfig of a component.
pub fn component_kubeconfig(component: &str) -> String {
    format!("/var/lib/{component}/kubeconfig")
}

/// A certificate or key of a component.
pub fn component_pki(component: &str, file: &str) -> String {
    format!("{KUBERNETES}/{component}/{file}")
}
