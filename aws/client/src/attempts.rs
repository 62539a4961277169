//! Every attempt of every call: counted, and told where a call has to be repeated so often that somebody would wonder.

use crate::causes::deepest;
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
pub(crate) const MOST: u32 = 8;

/// Failed attempts that nobody needs to hear of: about four seconds.
const UNTOLD: u32 = 2;

/// A call that failed several times and is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// As in `s3:ListObjectsV2`.
    pub call: String,
    /// Attempts that failed.
    pub failed: u32,
    /// Attempts in all before it is given up.
    pub most: u32,
    /// What the last attempt met: an error of the network, or a status of HTTP.
    pub why: String,
}

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            failed,
            most,
            why,
        } = self;
        write!(
            f,
            "{call} failed {failed} times ({why}): trying again, {most} times in all"
        )
    }
}

/// Who is told.
type Listener = Arc<dyn Fn(&Again) + Send + Sync>;

/// Counts attempts by `service.operation`, and tells of each operation once that it is tried again. Clones share both.
#[derive(Clone, Default)]
pub struct Attempts {
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
    told: Arc<Mutex<BTreeSet<String>>>,
    listener: Option<Listener>,
}

impl fmt::Debug for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attempts").field(&self.counts).finish()
    }
}

impl Attempts {
    /// The same counts, and somebody who is told.
    pub(crate) fn telling(&self, listener: impl Fn(&Again) + Send + Sync + 'static) -> Self {
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
            let key = format!("{}.{}", short(call.service()), call.name());
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
        if failed <= UNTOLD || failed >= MOST {
            return Ok(());
        }
        let Some(why) = why(context) else {
            return Ok(());
        };
        let call = format!("{}:{}", short(call.service()), call.name());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(call.clone()) {
            listener(&Again {
                call,
                failed,
                most: MOST,
                why,
            });
        }
        Ok(())
    }
}

/// What an attempt met, if it failed.
fn why(context: &FinalizerInterceptorContextRef<'_>) -> Option<String> {
    let error = context.output_or_error()?.err()?;
    if let Some(connector) = error.as_connector_error() {
        return Some(deepest(connector));
    }
    if error.is_timeout_error() {
        return Some("no answer in time".to_owned());
    }
    let response = context.response()?;
    Some(format!("HTTP {}", response.status().as_u16()))
}

/// A service as its endpoints call it.
fn short(service: &str) -> String {
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
