//! What instances are launched with: the NodeConfig of each group, and its user data.

mod apt_source;
mod egress_proxy;
mod group_files;
mod images;
mod mime;
mod node_config;
mod user_data;
mod warm_pool;

pub(crate) use egress_proxy::proxy_environment;
pub use node_config::{check_node_config, node_config};
pub use user_data::{OWN_PART, POOL_PART, UserData, user_data};
