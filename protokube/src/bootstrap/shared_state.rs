//! State that all connections share: look-ups of instances, intervals of their requests, the limit of STS calls, and counted log lines.

use super::instances::InstanceLookup;
use super::request_limiter::RequestLimiter;
use super::{EndpointContext, STAGE};
use crate::limited_log::LimitedLog;
use node::bootstrap::Refusal;
use node::pki::{KUBERNETES_CA, Keyset};
use node::report::Status;
use protokube_role::keysets::read_keyset_object;
use std::mem::Discriminant;
use std::sync::Arc;
use time::{Duration, OffsetDateTime};
use tokio::sync::{Mutex, Semaphore};

/// Age after which the authority is read again.
const AUTHORITY_AGE: Duration = Duration::MINUTE;

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
    /// The authority could not be read.
    Authority,
}

pub(super) type EndpointLog = LimitedLog<LineCause>;

pub(super) struct SharedState {
    pub(super) context: Arc<EndpointContext>,
    pub(super) instances: InstanceLookup,
    pub(super) request_limiter: RequestLimiter,
    pub(super) sts: Semaphore,
    pub(super) lines: EndpointLog,
    authority: Mutex<KnownAuthority>,
}

/// The keyset `kubernetes-ca`, and when it was read.
struct KnownAuthority {
    keyset: Arc<Keyset>,
    read: OffsetDateTime,
}

impl SharedState {
    pub(super) fn new(context: Arc<EndpointContext>) -> Self {
        Self {
            instances: InstanceLookup::start(context.ec2.clone(), context.request_interval),
            request_limiter: RequestLimiter::with_interval(context.request_interval),
            sts: Semaphore::new(STS_CALLS),
            lines: EndpointLog::new(context.log.clone(), STAGE, context.log_interval),
            authority: Mutex::new(KnownAuthority {
                keyset: Arc::clone(&context.authority),
                read: (context.clock)(),
            }),
            context,
        }
    }

    /// The keyset `kubernetes-ca` as it was in the store a minute ago or later: workers of the next stage of a rotation join before this control
    /// plane is replaced. While the store cannot be read, the last known one.
    pub(super) async fn current_authority(&self) -> Arc<Keyset> {
        let now = (self.context.clock)();
        let mut known = self.authority.lock().await;
        if now - known.read >= AUTHORITY_AGE {
            known.read = now;
            match read_keyset_object(&self.context.store, KUBERNETES_CA).await {
                Ok(keyset) => known.keyset = Arc::new(keyset),
                Err(error) => {
                    let detail = format!("{KUBERNETES_CA} is taken as it was: {error:#}");
                    let (lines, failed) = (&self.lines, Status::Failed);
                    lines.log_or_count(LineCause::Authority, failed, None, &detail);
                }
            }
        }
        Arc::clone(&known.keyset)
    }
}
