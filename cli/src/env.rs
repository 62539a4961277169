//! Every environment variable that kctl reads, in one place. `AWS_*` is read by the AWS SDK, `HTTPS_PROXY`
//! and `NO_PROXY` by the HTTP client, `RUST_LOG` by the log filter.

use std::path::PathBuf;

/// Where clusters are kept: `s3://BUCKET[/PREFIX]` or `file://DIR`.
pub const STATE_STORE: &str = "KCTL_STATE_STORE";
/// kOps' name of the variable; kctl's own has precedence.
pub const KOPS_STATE_STORE: &str = "KOPS_STATE_STORE";
/// The account whose bucket the store is, where it is not the caller's.
pub const STATE_OWNER: &str = "KCTL_STATE_OWNER";
/// The cluster that commands are about.
pub const CLUSTER_NAME: &str = "KCTL_CLUSTER_NAME";
/// kOps' name of the variable; kctl's own has precedence.
pub const KOPS_CLUSTER_NAME: &str = "KOPS_CLUSTER_NAME";
/// Folder with the binaries that instances download: `linux/amd64/nodeup`, `linux/arm64/protokube`, ...
pub const ASSETS: &str = "KCTL_ASSETS";
/// How long a cluster's lock lives without a renewal; for tests.
pub const LOCK_LIFE: &str = "KCTL_LOCK_LIFE";
/// Kubeconfig files, as kubectl reads them; the first is written.
pub const KUBECONFIG: &str = "KUBECONFIG";
/// Editor of `kctl edit`; first choice.
pub const VISUAL: &str = "VISUAL";
/// Editor of `kctl edit`; second choice, before `vi`.
pub const EDITOR: &str = "EDITOR";
/// Set and not empty: no colour (no-color.org).
pub const NO_COLOR: &str = "NO_COLOR";
/// Set and not `0`: colour even without a terminal.
pub const CLICOLOR_FORCE: &str = "CLICOLOR_FORCE";
/// `dumb`: no colour, no live progress.
pub const TERM: &str = "TERM";
/// Where data of the user goes; default `~/.local/share`.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
pub const HOME: &str = "HOME";
/// Folder of docker's `config.json`, with passwords of registries; default `~/.docker`.
pub const DOCKER_CONFIG: &str = "DOCKER_CONFIG";
/// Who runs this, for the operation log.
pub const USER: &str = "USER";

/// Names and meanings, for `docs/reference`.
pub const DOCUMENTED: &[(&str, &str)] = &[
    (
        STATE_STORE,
        "where clusters are kept: `s3://BUCKET[/PREFIX]` or `file://DIR`; `--state` wins",
    ),
    (
        KOPS_STATE_STORE,
        "the same under kOps' name; kctl's own variable has precedence",
    ),
    (
        STATE_OWNER,
        "account of the buckets of the state store and of backups, where it is not that of the credentials: kctl writes to no other account's, and instances use no other account's",
    ),
    (
        CLUSTER_NAME,
        "the cluster that commands are about; an argument or `--name` wins",
    ),
    (
        KOPS_CLUSTER_NAME,
        "the same under kOps' name; kctl's own variable has precedence",
    ),
    (
        ASSETS,
        "folder with `linux/amd64/nodeup`, `linux/amd64/protokube`, and the same for `arm64`; default: beside kctl",
    ),
    (
        KUBECONFIG,
        "kubeconfig files as kubectl reads them; the first is written",
    ),
    (
        LOCK_LIFE,
        "for tests: how long a cluster's lock lives without a renewal, from 2s to 10m; default: 30s",
    ),
    (VISUAL, "editor of `kctl edit`"),
    (EDITOR, "the same, second choice; then `vi`"),
    (NO_COLOR, "no colour"),
    (CLICOLOR_FORCE, "colour even without a terminal"),
    (TERM, "`dumb`: no colour, no live progress"),
    (
        XDG_DATA_HOME,
        "default location of the store: `kctl/store` below it",
    ),
    (
        DOCKER_CONFIG,
        "folder of docker's `config.json`, with passwords of registries that images are copied from and to; default: `~/.docker`",
    ),
    (
        "TMPDIR",
        "folder of temporary files: `get assets --copy` and `bundle push` need room there for one file or image layer at a time",
    ),
    (
        "AWS_*",
        "credentials, region, profile and endpoints, as the AWS SDK reads them",
    ),
    ("HTTPS_PROXY, NO_PROXY", "proxy for downloads"),
    (
        "RUST_LOG",
        "what `-v` logs, in detail; of libraries never `trace`, which has keys in it",
    ),
];

/// The value of a variable, unless it is unset or empty.
pub fn get_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The first of several variables that has a value.
pub fn first_variable(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| get_variable(name))
}

pub fn home_dir() -> Option<PathBuf> {
    get_variable(HOME).map(PathBuf::from)
}

/// The default state store: a folder in the user's data directory.
pub fn default_store() -> Option<PathBuf> {
    let data = get_variable(XDG_DATA_HOME)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| home_dir().map(|home| home.join(".local/share")))?;
    Some(data.join("kctl/store"))
}
