//! nodeup turns a freshly launched instance into a Kubernetes node. `main` is its table of contents; here are the
//! chapters, so that they can be tested without a machine of their own.

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
