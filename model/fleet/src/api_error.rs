//! Why the cluster's API could not be asked.

use serde::Serialize;
use std::fmt;

/// What is wrong with the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiErrorReason {
    /// The keys or the load balancer that it needs do not exist yet.
    NotMade,
    /// Its name does not resolve.
    NoName,
    /// Its name resolves to kOps' placeholder address: no control plane has published its own.
    Placeholder,
    /// No connection, or no answer in time.
    NoAnswer,
    /// The server has no certificate of this cluster.
    Certificate,
    /// It rejects this cluster's administrator.
    Denied,
    /// It answers with an error.
    Failing,
}

/// Why the API could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiError {
    pub reason: ApiErrorReason,
    /// The same in words, with the cause.
    pub message: String,
    /// What to do about it.
    pub next: String,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
