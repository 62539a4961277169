//! What all connections share: look-ups and turns of instances, how many ask STS at once, and lines that are counted.

use super::instances::Instances;
use super::turns::Turns;
use super::{Context, STAGE};
use crate::tally::Tally;
use node::bootstrap::Refusal;
use std::mem::Discriminant;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Calls of STS at once: whoever can connect can cause them, and AWS counts them for the whole account.
const STS_CALLS: usize = 8;

/// Why a line is said: of one cause there is one every few seconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// That instance joined.
    Joined(String),
    /// Refusals of that kind, of that instance once it is known.
    Refused(Discriminant<Refusal>, Option<String>),
    /// A caller does not trust the endpoint's certificate.
    Certificate,
    /// A connection could not be taken.
    Accept,
}

pub(super) type Lines = Tally<Cause>;

pub(super) struct Endpoint {
    pub(super) context: Arc<Context>,
    pub(super) instances: Instances,
    pub(super) turns: Turns,
    pub(super) sts: Semaphore,
    pub(super) lines: Lines,
}

impl Endpoint {
    pub(super) fn of(context: Arc<Context>) -> Self {
        Self {
            instances: Instances::of(context.machine.clone(), context.pause),
            turns: Turns::every(context.pause),
            sts: Semaphore::new(STS_CALLS),
            lines: Lines::new(context.log.clone(), STAGE, context.told),
            context,
        }
    }
}
