//! Paths on an instance, the same as in kOps.

/// Folder with certificates and keys of the components.
pub const KUBERNETES: &str = "/srv/kubernetes";

/// Folder with manifests of static pods.
pub const MANIFESTS: &str = "/etc/kubernetes/manifests";

/// Address of containerd's socket.
pub const CONTAINERD_SOCKET: &str = "unix:///run/containerd/containerd.sock";

/// Tools of this release, for operators, static pods and protokube. A link to a folder that is never changed.
pub const TOOLS: &str = "/opt/kctl/tools/current";

/// Folder with flexvolume plugins.
pub const VOLUME_PLUGINS: &str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/";

/// Path of a component's kubeconfig.
pub fn component_kubeconfig(component: &str) -> String {
    format!("/var/lib/{component}/kubeconfig")
}

/// Path of a component's certificate or key.
pub fn component_pki(component: &str, file: &str) -> String {
    format!("{KUBERNETES}/{component}/{file}")
}
