//! Client of a cluster's API: finds its address, issues an administrator's certificate, queries it, and explains failures.

mod addons;
mod administrator;
mod error;
mod query;
mod server;

pub use addons::read_addon_objects;
pub use administrator::{KubeconfigRequest, administrator_kubeconfig};
pub use error::{missing_resource, read_client_error};
pub use query::{
    ApiObjects, ApiQuery, answers_readyz, api_client, check_addresses, list_nodes, query_api,
};
pub use server::{AddressError, ApiServer, api_server_at, server, servers};
