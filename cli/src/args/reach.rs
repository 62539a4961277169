//! By which of its names or addresses a cluster's API is reached.

use clap::Args;

/// How the API is reached.
#[derive(Clone, Debug, Default, Args)]
pub struct Reach {
    /// Use the API's internal name
    #[arg(long, conflicts_with = "api_server")]
    pub internal: bool,
    /// Use this address of the API, a tunnel's for example; its certificate still has to be the cluster's
    #[arg(long, value_name = "https://HOST[:PORT]")]
    pub api_server: Option<String>,
}
