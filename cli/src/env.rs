//! Every environment variable that kctl reads, in one place. `AWS_*` is read by the AWS SDK, `HTTPS_PROXY`
//! and `NO_PROXY` by the HTTP client, `RUST_LOG` by the log filter.

use std::path::PathBuf;

/// Where clusters are kept: `s3://BUCKET[/PREFIX]` or `file://DIR`.
pub const STATE_STORE: &str = "KCTL_STATE_STORE";
/// As kOps calls it; read after ours.
pub const KOPS_STATE_STORE: &str = "KOPS_STATE_STORE";
/// The cluster that commands are about.
pub const CLUSTER_NAME: &str = "KCTL_CLUSTER_NAME";
/// As kOps calls it; read after ours.
pub const KOPS_CLUSTER_NAME: &str = "KOPS_CLUSTER_NAME";
/// Folder with the binaries that machines download: `nodeup-linux-amd64`, `protokube-linux-arm64`, ...
pub const ASSETS: &str = "KCTL_ASSETS";
/// Kubeconfig files, as kubectl reads them; the first is written.
pub const KUBECONFIG: &str = "KUBECONFIG";
/// Editor of `kctl edit`; first choice.
pub const VISUAL: &str = "VISUAL";
/// Editor of `kctl edit`; second choice, before `vi`.
pub const EDITOR: &str = "EDITOR";
/// Set and not empty: no colour (no-color.org).
pub const NO_COLOR: &str = "NO_COLOR";
/// Set and not `0`: colour even where nobody seems to look.
pub const CLICOLOR_FORCE: &str = "CLICOLOR_FORCE";
/// `dumb`: no colour, no live progress.
pub const TERM: &str = "TERM";
/// Where data of the user goes; default `~/.local/share`.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
/// The user's home.
pub const HOME: &str = "HOME";
/// Who runs this, for the operation log.
pub const USER: &str = "USER";

/// The value of a variable, unless it is unset or empty.
pub fn value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The first of several variables that has a value.
pub fn first(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| value(name))
}

/// The user's home directory.
pub fn home() -> Option<PathBuf> {
    value(HOME).map(PathBuf::from)
}

/// Where clusters are kept if nobody says where: a folder among the user's data.
pub fn default_store() -> Option<PathBuf> {
    let data = value(XDG_DATA_HOME)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| home().map(|home| home.join(".local/share")))?;
    Some(data.join("kctl/store"))
}
