//! Addons in the state store: their list, and the manifest of each, as kctl writes and protokube reads them.

mod channel;
mod manifest;

pub use channel::{CHANNEL_KEY, Channel, ChannelAddon, ChannelMetadata, ChannelSpec, read_channel};
pub use manifest::read_manifest;

/// The label that names the addon an object belongs to. kOps': on a cluster that kOps made, objects of the addons that
/// both have go on with the label they carry.
pub const ADDON_LABEL: &str = "addon.kops.k8s.io/name";

/// The label that says who owns an object of an addon. kOps writes `kops`: what it took back is not ours to remove.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// Its value for ours, which is also the field manager's name.
pub const MANAGER: &str = "kctl";

/// A text that is no list of objects.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not a manifest: {why}")]
pub struct NotAManifest {
    /// The addon's name, or the key in the store.
    pub what: String,
    /// What is wrong, and where.
    pub why: String,
}
