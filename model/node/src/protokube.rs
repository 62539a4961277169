//! Who protokube is for the cluster's API: the addon that grants it what its roles call and protokube itself agree on this.

/// Name of protokube's user.
pub const USER: &str = "protokube";

/// Group of protokube's user, to which the addon gives rights.
pub const GROUP: &str = "kctl:protokube";

/// Name of that addon.
pub const ACCESS_ADDON: &str = "protokube.rbac.kctl.dev";

/// Name of the Lease in `kube-system` by which control planes end one after the other.
pub const TERMINATION_LEASE: &str = "kctl-termination";

/// Name of the ConfigMap in `kube-system` with the addons that were applied.
pub const ADDON_RECORD: &str = "kctl-addons";
