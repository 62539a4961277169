//! State that all connections share: look-ups of instances, intervals of their requests, the limit of STS calls, and counted log lines.

use super::instances::InstanceLookup;
use super::request_limiter::RequestLimiter;
use super::{EndpointContext, STAGE};
use crate::limited_log::LimitedLog;
use node::bootstrap::Refusal;
use std::mem::Discriminant;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Limit of parallel STS calls: anyone who can connect causes them, and AWS limits them per account.
const STS_CALLS: usize = 8;

/// The cause of a log line. Each cause is logged once every few seconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LineCause {
    Joined(String),
    /// Refusals of one kind, of one instance if it is known.
    Refused(Discriminant<Refusal>, Option<String>),
    /// A caller does not trust the endpoint's certificate.
    Certificate,
    /// A connection could not be accepted.
    Accept,
}

pub(super) type EndpointLog = LimitedLog<LineCause>;

pub(super) struct SharedState {
    pub(super) context: Arc<EndpointContext>,
    pub(super) instances: InstanceLookup,
    pub(super) request_limiter: RequestLimiter,
    pub(super) sts: Semaphore,
    pub(super) lines: EndpointLog,
}

impl SharedState {
    pub(super) fn new(context: Arc<EndpointContext>) -> Self {
        Self {
            instances: InstanceLookup::start(context.ec2.clone(), context.request_interval),
            request_limiter: RequestLimiter::with_interval(context.request_interval),
            sts: Semaphore::new(STS_CALLS),
            lines: EndpointLog::new(context.log.clone(), STAGE, context.log_interval),
            context,
        }
    }
}
