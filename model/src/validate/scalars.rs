//! Quantities and durations, wherever they stand in a spec.

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
        walk("spec", &value, problems);
    }
}

fn walk(at: &str, value: &Value, problems: &mut Vec<Problem>) {
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                walk(&path::element(at, index), element, problems);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = path::field(at, name);
                match value {
                    Value::String(text) if QUANTITIES.contains(&name.as_str()) => {
                        quantity(&path, text, problems);
                    }
                    Value::String(text) if DURATIONS.contains(&name.as_str()) => {
                        duration(&path, text, problems);
                    }
                    Value::Object(values) if QUANTITY_MAPS.contains(&name.as_str()) => {
                        for (name, value) in values {
                            quantity(
                                &path::field(&path, name),
                                value.as_str().unwrap_or_default(),
                                problems,
                            );
                        }
                    }
                    _ => walk(&path, value, problems),
                }
            }
        }
        _ => {}
    }
}

fn quantity(path: &str, text: &str, problems: &mut Vec<Problem>) {
    if !is_quantity(text) {
        let problem = Problem::error(path, format!("\"{text}\" is not a quantity"));
        problems.push(problem.hint("write a number and a unit, such as 100m, 0.5, 170Mi or 2G"));
    }
}

fn duration(path: &str, text: &str, problems: &mut Vec<Problem>) {
    if seconds(text).is_none() {
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

/// The seconds of a Go duration such as `1h30m`, `-1.5s` or `0`.
pub fn seconds(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let mut total = None;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest.get(..end)?.parse().ok()?;
        rest = rest.get(end..)?;
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let factor = match rest.get(..end)? {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        rest = rest.get(end..)?;
        total = Some(total.unwrap_or(0.0) + number * factor);
    }
    total.map(|total: f64| sign * total)
}

#[cfg(test)]
mod tests {
    use super::{is_quantity, seconds};

    #[test]
    fn quantities_are_those_of_kubernetes() {
        for text in ["1", "100m", "3.14", "170Mi", "2G", "1e3", "12E", "-1", ".5"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "m", "1 Gi", "1GiB", "1.2.3", "many", "1e"] {
            assert!(!is_quantity(text), "{text}");
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, value) in [
            ("1m0s", 60.0),
            ("1h30m", 5400.0),
            ("0", 0.0),
            ("1.5s", 1.5),
            ("-2s", -2.0),
            ("250ms", 0.25),
        ] {
            assert_eq!(seconds(text), Some(value), "{text}");
        }
        for text in ["", "5", "1d", "s", "1m1", "ten"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
