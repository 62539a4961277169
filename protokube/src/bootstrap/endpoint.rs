//! State that all connections share: look-ups and turns of instances, the limit of STS calls, and counted log lines.

use super::instances::InstanceLookup;
use super::turns::Turns;
use super::{EndpointContext, STAGE};
use crate::tally::Tally;
use node::bootstrap::Refusal;
use std::mem::Discriminant;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Limit of parallel STS calls: anyone who can connect causes them, and AWS limits them per account.
const STS_CALLS: usize = 8;

/// The cause of a log line. Each cause is logged once every few seconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LineCause {
    /// An instance joined.
    Joined(String),
    /// Refusals of one kind, of one instance if it is known.
    Refused(Discriminant<Refusal>, Option<String>),
    /// A caller does not trust the endpoint's certificate.
    Certificate,
    /// A connection could not be accepted.
    Accept,
}

pub(super) type LineTally = Tally<LineCause>;

pub(super) struct Endpoint {
    pub(super) context: Arc<EndpointContext>,
    pub(super) instances: InstanceLookup,
    pub(super) turns: Turns,
    pub(super) sts: Semaphore,
    pub(super) lines: LineTally,
}

impl Endpoint {
    pub(super) fn new(context: Arc<EndpointContext>) -> Self {
        Self {
            instances: InstanceLookup::start(context.machine.clone(), context.pause),
            turns: Turns::with_pause(context.pause),
            sts: Semaphore::new(STS_CALLS),
            lines: LineTally::new(context.log.clone(), STAGE, context.told),
            context,
        }
    }
}
