//! Addons in the state store: the list and the manifests that kctl writes and protokube reads.

mod channel;
mod manifest;
mod own;
mod user_channel;

pub use channel::{CHANNEL_KEY, Channel, ChannelAddon, ChannelMetadata, ChannelSpec, read_channel};
pub use manifest::read_manifest;
pub use own::{
    ObjectKey, OwnObject, Unreadable, api_group, hide_secrets, is_secret, read_own_objects,
    split_own_objects, without_secrets,
};
pub use user_channel::{UserAddon, read_user_channel};

/// Label with the name of the addon that an object belongs to. It is kOps' label, so that after a migration from kOps objects of
/// the same addon keep it.
pub const ADDON_LABEL: &str = "addon.kops.k8s.io/name";

/// Label with the owner of an addon's object. kOps writes `kops`, and kctl does not remove objects with that value.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// Value of [`MANAGED_BY_LABEL`] for kctl; also the name of the field manager in server-side apply.
pub const MANAGER: &str = "kctl";

/// Name of the addon with helm-controller. It stays while there are charts, because it uninstalls them.
pub const HELM_CONTROLLER: &str = "helm-controller.kctl.dev";

/// Group and API version of its kinds, HelmChart and HelmChartConfig.
pub const HELM_GROUP: &str = "helm.cattle.io";
pub const HELM_VERSION: &str = "helm.cattle.io/v1";

/// A text is not a valid list of Kubernetes objects, or not a valid list of addons.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not a manifest: {why}")]
pub struct NotAManifest {
    /// Name of the addon, or the key in the state store.
    pub what: String,
    /// Description of the problem with its position.
    pub why: String,
}
