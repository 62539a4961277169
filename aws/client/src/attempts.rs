//! Counts every attempt of every AWS call, and reports a call that fails repeatedly to a listener.

use crate::causes::deepest_cause;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Attempts of one call, the first included, before a throttled or broken one is given up.
pub(crate) const MAX_ATTEMPTS: u32 = 8;

/// Failed attempts that are not reported to the listener. They take about four seconds.
const UNREPORTED_ATTEMPTS: u32 = 2;

/// A call that failed several times and is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryNotice {
    /// As in `s3:ListObjectsV2`.
    pub call: String,
    pub failed: u32,
    /// Attempts in all before it is given up.
    pub max_attempts: u32,
    /// Why the last attempt failed: a network error, or an HTTP status.
    pub why: String,
}

impl fmt::Display for RetryNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            failed,
            max_attempts,
            why,
        } = self;
        write!(
            f,
            "{call} failed {failed} times ({why}): trying again, {max_attempts} times in all"
        )
    }
}

type Listener = Arc<dyn Fn(&RetryNotice) + Send + Sync>;

/// Counts attempts by `service.operation`, and reports each operation that is retried once. Clones share both.
#[derive(Clone, Default)]
pub struct Attempts {
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
    reported_calls: Arc<Mutex<BTreeSet<String>>>,
    listener: Option<Listener>,
}

impl fmt::Debug for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attempts").field(&self.counts).finish()
    }
}

impl Attempts {
    /// Shares the counts of `self`, and reports retries to `listener`.
    pub(crate) fn with_listener(
        &self,
        listener: impl Fn(&RetryNotice) + Send + Sync + 'static,
    ) -> Self {
        Self {
            listener: Some(Arc::new(listener)),
            ..self.clone()
        }
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.clone()
    }
}

impl Intercept for Attempts {
    fn name(&self) -> &'static str {
        "attempts"
    }

    fn read_before_attempt(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(call) = config.load::<Metadata>() {
            let key = format!("{}.{}", short_service_name(call.service()), call.name());
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(key).or_default() += 1;
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let failed = config
            .load::<RequestAttempts>()
            .map_or(0, RequestAttempts::attempts);
        let (Some(listener), Some(call)) = (&self.listener, config.load::<Metadata>()) else {
            return Ok(());
        };
        // A call that may not be repeated fails at its first attempt.
        if failed <= UNREPORTED_ATTEMPTS || failed >= MAX_ATTEMPTS {
            return Ok(());
        }
        let Some(why) = failure_reason(context) else {
            return Ok(());
        };
        let call = format!("{}:{}", short_service_name(call.service()), call.name());
        let mut reported_calls = self
            .reported_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if reported_calls.insert(call.clone()) {
            listener(&RetryNotice {
                call,
                failed,
                max_attempts: MAX_ATTEMPTS,
                why,
            });
        }
        Ok(())
    }
}

/// Why an attempt failed; `None` if it succeeded.
fn failure_reason(context: &FinalizerInterceptorContextRef<'_>) -> Option<String> {
    let error = context.output_or_error()?.err()?;
    if let Some(connector) = error.as_connector_error() {
        return Some(deepest_cause(connector));
    }
    if error.is_timeout_error() {
        return Some("no answer in time".to_owned());
    }
    let response = context.response()?;
    Some(format!("HTTP {}", response.status().as_u16()))
}

/// The service name that appears in its endpoints.
fn short_service_name(service: &str) -> String {
    match service {
        "Auto Scaling" => "autoscaling".to_owned(),
        "Elastic Load Balancing v2" => "elbv2".to_owned(),
        "EventBridge" => "events".to_owned(),
        "Route 53" => "route53".to_owned(),
        other => other.to_lowercase(),
    }
}

#[cfg(test)]
#[path = "attempts_test.rs"]
mod tests;
