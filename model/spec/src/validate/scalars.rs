//! Quantities and durations, wherever they stand in a spec.

use node::duration::parse_seconds;
use serde::Serialize;
use serde_json::Value;

use crate::read::{Problem, path};

/// Fields that hold a Kubernetes quantity, by name.
const QUANTITIES: &[&str] = &[
    "auditWebhookBatchThrottleQps",
    "cpuLimit",
    "cpuRequest",
    "horizontalPodAutoscalerTolerance",
    "kubeAPIQPS",
    "memoryLimit",
    "memoryRequest",
    "qps",
];

/// Maps whose values are Kubernetes quantities, by name.
const QUANTITY_MAPS: &[&str] = &["kubeReserved", "systemReserved"];

/// Fields that hold a Go duration, by name.
const DURATIONS: &[&str] = &[
    "ClusterSigningDuration",
    "attachDetachReconcileSyncPeriod",
    "auditWebhookBatchMaxWait",
    "auditWebhookInitialBackoff",
    "authenticationTokenWebhookCacheTtl",
    "authorizationWebhookCacheAuthorizedTtl",
    "authorizationWebhookCacheUnauthorizedTtl",
    "backupInterval",
    "compactionInterval",
    "cpuCFSQuotaPeriod",
    "crashLoopBackOffMaxContainerRestartPeriod",
    "discoveryPollInterval",
    "endpointSliceUpdatesBatchPeriod",
    "endpointUpdatesBatchPeriod",
    "eventTTL",
    "evictionPressureTransitionPeriod",
    "experimentalClusterSigningDuration",
    "heartbeatInterval",
    "horizontalPodAutoscalerCpuInitializationPeriod",
    "horizontalPodAutoscalerDownscaleDelay",
    "horizontalPodAutoscalerDownscaleStabilization",
    "horizontalPodAutoscalerInitialReadinessDelay",
    "horizontalPodAutoscalerSyncPeriod",
    "horizontalPodAutoscalerUpscaleDelay",
    "housekeepingInterval",
    "imageMaximumGCAge",
    "imageMinimumGCAge",
    "imagePullProgressDeadline",
    "ipvsMinSyncPeriod",
    "ipvsSyncPeriod",
    "leaderElectLeaseDuration",
    "leaderElectRenewDeadlineDuration",
    "leaderElectRetryPeriod",
    "leaderElectionTimeout",
    "maxInstanceLifetime",
    "nodeMonitorGracePeriod",
    "nodeMonitorPeriod",
    "nodeStatusUpdateFrequency",
    "podEvictionTimeout",
    "requestTimeout",
    "runtimeRequestTimeout",
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "storageInitializationTimeout",
    "streamingConnectionIdleTimeout",
    "volumeStatsAggPeriod",
];

/// Checks every quantity and duration of a spec.
pub fn check<T: Serialize>(spec: &T, problems: &mut Vec<Problem>) {
    // A spec that has no JSON form does not exist: its keys are all text.
    if let Ok(value) = serde_json::to_value(spec) {
        check_values("spec", &value, problems);
    }
}

fn check_values(at: &str, value: &Value, problems: &mut Vec<Problem>) {
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                check_values(&path::element_path(at, index), element, problems);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = path::field_path(at, name);
                match value {
                    Value::String(text) if QUANTITIES.contains(&name.as_str()) => {
                        check_quantity(&path, text, problems);
                    }
                    Value::String(text) if DURATIONS.contains(&name.as_str()) => {
                        check_duration(&path, text, problems);
                    }
                    Value::Object(values) if QUANTITY_MAPS.contains(&name.as_str()) => {
                        for (name, value) in values {
                            check_quantity(
                                &path::field_path(&path, name),
                                value.as_str().unwrap_or_default(),
                                problems,
                            );
                        }
                    }
                    _ => check_values(&path, value, problems),
                }
            }
        }
        _ => {}
    }
}

fn check_quantity(path: &str, text: &str, problems: &mut Vec<Problem>) {
    if !is_quantity(text) {
        let problem = Problem::error(path, format!("\"{text}\" is not a quantity"));
        problems.push(problem.hint("write a number and a unit, such as 100m, 0.5, 170Mi or 2G"));
    }
}

fn check_duration(path: &str, text: &str, problems: &mut Vec<Problem>) {
    if parse_seconds(text).is_none() {
        let problem = Problem::error(path, format!("\"{text}\" is not a duration"));
        problems.push(problem.hint("write numbers with units, such as 30s, 15m or 1h30m"));
    }
}

/// Kubernetes' grammar: a decimal number, then a unit or an exponent.
fn is_quantity(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let is_number =
        number.matches('.').count() <= 1 && number.bytes().any(|byte| byte.is_ascii_digit());
    let units = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let exponent = unit
        .strip_prefix(['e', 'E'])
        .is_some_and(|exponent| exponent.parse::<i32>().is_ok());
    is_number && (units.contains(&unit) || exponent)
}

#[cfg(test)]
mod tests {
    use super::is_quantity;

    #[test]
    fn quantities_are_those_of_kubernetes() {
        for text in ["1", "100m", "3.14", "170Mi", "2G", "1e3", "12E", "-1", ".5"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "m", "1 Gi", "1GiB", "1.2.3", "many", "1e"] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
