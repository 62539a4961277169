//! Options for the name or address under which a cluster's API is reached.

use clap::Args;

/// How the API is reached.
#[derive(Clone, Debug, Default, Args)]
pub struct ApiReach {
    /// Use the API's internal name
    #[arg(long, conflicts_with = "api_server")]
    pub internal: bool,
    /// Use this address of the API, for example that of a tunnel; its certificate must be the cluster's
    #[arg(long, value_name = "https://HOST[:PORT]")]
    pub api_server: Option<String>,
}
