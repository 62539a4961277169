//! nodeup configures an instance at boot so that it becomes a Kubernetes node. Each stage has a module; `main` runs them in order.

// The modules are public for the tests of this crate only.
#![warn(unreachable_pub)]

pub mod api_proxy;
pub mod apply;
pub mod arguments;
mod bootstrap_client;
pub mod build;
pub mod digest;
pub mod download;
mod facts;
pub mod fetch;
pub mod host;
pub mod identify;
mod join;
mod lock;
pub mod paths;
pub mod probe;
pub mod report;
mod retry;
pub mod run;
pub mod stage;
mod stored;
pub mod warm_pool;
