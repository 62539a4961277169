//! nodeup configures an instance at boot so that it becomes a Kubernetes node. Each stage has a module; `main` runs them in order.

pub mod apply;
pub mod arguments;
pub mod build;
pub mod digest;
pub mod download;
pub mod endpoint;
pub mod facts;
pub mod fetch;
pub mod host;
pub mod identify;
pub mod join;
pub mod place;
pub mod report;
pub mod retry;
pub mod run;
pub mod stage;
pub mod stored;
