//! Which etcd settings `spec.etcdClusters[].manager.env` may contain: those that tune a member. Settings that define identity, data
//! location, trust or cluster formation belong to kctl and are refused by name with a reason.

/// How kctl treats an etcd setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtcdSetting {
    /// The user's value is passed to etcd.
    Taken,
    /// The setting is refused; the text says what it does.
    Refused(&'static str),
}

/// Prefix of etcd's environment variables.
const PREFIX: &str = "ETCD_";

/// Prefix of flags of etcd 3.5 and 3.6 that 3.7 no longer has.
const EXPERIMENTAL: &str = "experimental-";

/// Experimental flags that became features in etcd 3.6 (etcd 3.6: `ExperimentalFlagToFeatureMap`). The others lost their prefix.
const FEATURES: &[(&str, &str)] = &[
    ("compact-hash-check-enabled", "CompactHashCheck"),
    ("enable-lease-checkpoint", "LeaseCheckpoint"),
    ("enable-lease-checkpoint-persist", "LeaseCheckpointPersist"),
    ("initial-corrupt-check", "InitialCorruptCheck"),
    ("stop-grpc-service-on-defrag", "StopGRPCServiceOnDefrag"),
    (
        "txn-mode-write-with-shared-buffer",
        "TxnModeWriteWithSharedBuffer",
    ),
];

/// Flags of etcd 3.5, 3.6 and 3.7 that tune a member. 3.7 has no flag that 3.6 lacks.
const TAKEN: &[&str] = &[
    "auto-compaction-mode",
    "auto-compaction-retention",
    "backend-batch-interval",
    "backend-batch-limit",
    "backend-bbolt-freelist-type",
    "bootstrap-defrag-threshold-megabytes",
    "cipher-suites",
    "compact-hash-check-time",
    "compaction-batch-limit",
    "compaction-sleep-interval",
    "corrupt-check-time",
    "distributed-tracing-address",
    "distributed-tracing-instance-id",
    "distributed-tracing-sampling-rate",
    "distributed-tracing-service-name",
    "downgrade-check-time",
    "election-timeout",
    "enable-distributed-tracing",
    "enable-grpc-gateway",
    "enable-pprof",
    "experimental-bootstrap-defrag-threshold-megabytes",
    "experimental-compact-hash-check-enabled",
    "experimental-compact-hash-check-time",
    "experimental-compaction-batch-limit",
    "experimental-compaction-sleep-interval",
    "experimental-corrupt-check-time",
    "experimental-distributed-tracing-address",
    "experimental-distributed-tracing-instance-id",
    "experimental-distributed-tracing-sampling-rate",
    "experimental-distributed-tracing-service-name",
    "experimental-downgrade-check-time",
    "experimental-enable-distributed-tracing",
    "experimental-enable-lease-checkpoint",
    "experimental-enable-lease-checkpoint-persist",
    "experimental-initial-corrupt-check",
    "experimental-memory-mlock",
    "experimental-snapshot-catchup-entries",
    "experimental-stop-grpc-service-on-defrag",
    "experimental-txn-mode-write-with-shared-buffer",
    "experimental-warning-apply-duration",
    "experimental-warning-unary-request-duration",
    "experimental-watch-progress-notify-interval",
    "feature-gates",
    "grpc-keepalive-interval",
    "grpc-keepalive-min-time",
    "grpc-keepalive-timeout",
    "heartbeat-interval",
    "initial-election-tick-advance",
    "listen-metrics-urls",
    "log-format",
    "log-level",
    "logger",
    "max-concurrent-streams",
    "max-request-bytes",
    "max-snapshots",
    "max-txn-ops",
    "max-wals",
    "memory-mlock",
    "metrics",
    "pre-vote",
    "quota-backend-bytes",
    "raft-read-timeout",
    "raft-write-timeout",
    "snapshot-catchup-entries",
    "snapshot-count",
    "tls-max-version",
    "tls-min-version",
    "warning-apply-duration",
    "warning-unary-request-duration",
    "watch-progress-notify-interval",
];

/// Refused flags, grouped by what they do.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "says which member this is and where it is reached, which follows from the spec",
        &[
            "advertise-client-urls",
            "initial-advertise-peer-urls",
            "listen-client-urls",
            "listen-peer-urls",
            "name",
        ],
    ),
    (
        "moves etcd's data or log off its volume",
        &["data-dir", "wal-dir"],
    ),
    (
        "changes how members find and form their cluster: an instance could become a cluster of its own",
        &[
            "discovery",
            "discovery-cacert",
            "discovery-cert",
            "discovery-dial-timeout",
            "discovery-endpoints",
            "discovery-fallback",
            "discovery-insecure-skip-tls-verify",
            "discovery-insecure-transport",
            "discovery-keepalive-time",
            "discovery-keepalive-timeout",
            "discovery-key",
            "discovery-password",
            "discovery-proxy",
            "discovery-request-timeout",
            "discovery-srv",
            "discovery-srv-name",
            "discovery-token",
            "discovery-user",
            "force-new-cluster",
            "initial-cluster",
            "initial-cluster-state",
            "initial-cluster-token",
            "max-learners",
            "strict-reconfig-check",
        ],
    ),
    (
        "gives up acknowledged writes when the power fails",
        &["unsafe-no-fsync"],
    ),
    (
        "makes etcd ignore all its other settings",
        &["config-file", "version"],
    ),
    (
        "changes whom etcd trusts and how it proves who it is: certificates are kctl's",
        &[
            "auth-token",
            "auth-token-ttl",
            "auto-tls",
            "bcrypt-cost",
            "cert-file",
            "client-cert-allowed-hostname",
            "client-cert-auth",
            "client-cert-file",
            "client-crl-file",
            "client-key-file",
            "cors",
            "experimental-peer-skip-client-san-verification",
            "host-whitelist",
            "key-file",
            "peer-auto-tls",
            "peer-cert-allowed-cn",
            "peer-cert-allowed-hostname",
            "peer-cert-file",
            "peer-client-cert-auth",
            "peer-client-cert-file",
            "peer-client-key-file",
            "peer-crl-file",
            "peer-key-file",
            "peer-skip-client-san-verification",
            "peer-trusted-ca-file",
            "self-signed-cert-validity",
            "trusted-ca-file",
        ],
    ),
    (
        "sends the log elsewhere than to the pod's own",
        &[
            "enable-log-rotation",
            "log-outputs",
            "log-rotation-config-json",
        ],
    ),
    (
        "lets two etcds listen at one port",
        &["socket-reuse-address", "socket-reuse-port"],
    ),
    (
        "is the field manager.listenClientHTTPURLs",
        &["listen-client-http-urls"],
    ),
    (
        "belongs to etcd's version 2, which Kubernetes does not use",
        &[
            "enable-v2",
            "experimental-enable-v2v3",
            "proxy",
            "proxy-dial-timeout",
            "proxy-failure-wait",
            "proxy-read-timeout",
            "proxy-refresh-interval",
            "proxy-write-timeout",
            "v2-deprecation",
        ],
    ),
];

/// How a variable (`ETCD_QUOTA_BACKEND_BYTES`) is treated; `None` if etcd has no such setting. etcd also reads each flag from an
/// environment variable: the flag's name in capitals, `-` as `_` (<https://etcd.io/docs/v3.6/op-guide/configuration/>).
pub fn etcd_setting(variable: &str) -> Option<EtcdSetting> {
    let flag = flag_name(variable)?;
    if TAKEN.contains(&flag.as_str()) {
        return Some(EtcdSetting::Taken);
    }
    let refused = REFUSED
        .iter()
        .find(|(_, flags)| flags.contains(&flag.as_str()));
    refused.map(|(does, _)| EtcdSetting::Refused(does))
}

/// What took the place of a variable that etcd 3.7 no longer has and, unlike a flag, would ignore
/// (<https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/>, "Flags removed"). etcd 3.6 has both. `None`: it is no such variable.
pub fn successor_of_setting(variable: &str) -> Option<String> {
    let flag = flag_name(variable)?;
    let flag = flag.strip_prefix(EXPERIMENTAL)?;
    let feature = FEATURES.iter().find(|(old, _)| *old == flag);
    Some(match feature {
        Some((_, feature)) => format!("{PREFIX}FEATURE_GATES with {feature}"),
        None => variable_name(flag),
    })
}

/// The accepted variables, sorted.
pub fn taken_etcd_settings() -> impl Iterator<Item = String> {
    TAKEN.iter().map(|flag| variable_name(flag))
}

/// The flag of an environment variable.
fn flag_name(variable: &str) -> Option<String> {
    let flag = variable.strip_prefix(PREFIX)?;
    let is_other = |letter: char| letter.is_lowercase() || letter == '-';
    (!flag.contains(is_other)).then(|| flag.to_lowercase().replace('_', "-"))
}

/// The environment variable of a flag.
fn variable_name(flag: &str) -> String {
    format!("{PREFIX}{}", flag.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every flag of etcd 3.5.31, 3.6.12 and 3.7.2: those that `server/embed/config.go` and `server/etcdmain/config.go` define and
    /// `server/etcdmain/help.go` lists, but for those that do nothing (`ignored` there).
    const FLAGS: &str = include_str!("etcd_flags.txt");

    #[test]
    fn each_flag_of_etcds_is_either_taken_or_refused() {
        let flags: Vec<&str> = FLAGS.lines().collect();
        let refused = REFUSED.iter().flat_map(|(_, flags)| flags.iter());
        let mut known: Vec<&str> = TAKEN.iter().chain(refused).copied().collect();
        known.sort_unstable();
        assert_eq!(known, flags, "in one of both lists, and in no other");
        let judged = |flag: &&str| etcd_setting(&variable_name(flag)).is_some();
        assert!(flags.iter().all(judged));
    }

    #[test]
    fn each_flag_that_etcd_3_7_lacks_has_a_successor() {
        let gone = |flag: &&&str| flag.starts_with(EXPERIMENTAL);
        for flag in TAKEN.iter().filter(gone) {
            let successor = successor_of_setting(&variable_name(flag)).unwrap();
            let variable = successor.split(' ').next().unwrap();
            assert_eq!(etcd_setting(variable), Some(EtcdSetting::Taken), "{flag}");
            assert_eq!(successor_of_setting(variable), None, "{flag}");
        }
        assert_eq!(
            successor_of_setting("ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK").unwrap(),
            "ETCD_FEATURE_GATES with InitialCorruptCheck"
        );
    }

    #[test]
    fn what_makes_a_member_what_it_is_cannot_be_set() {
        for variable in [
            "ETCD_FORCE_NEW_CLUSTER",
            "ETCD_WAL_DIR",
            "ETCD_CONFIG_FILE",
            "ETCD_UNSAFE_NO_FSYNC",
            "ETCD_INITIAL_CLUSTER_STATE",
            "ETCD_NAME",
            "ETCD_DISCOVERY_SRV",
        ] {
            let setting = etcd_setting(variable);
            assert!(
                matches!(setting, Some(EtcdSetting::Refused(_))),
                "{variable}"
            );
        }
        let quota = etcd_setting("ETCD_QUOTA_BACKEND_BYTES");
        assert_eq!(quota, Some(EtcdSetting::Taken));
        for variable in ["ETCD_QUOTA", "GOGC", "ETCD_quota-backend-bytes"] {
            assert_eq!(etcd_setting(variable), None, "{variable}");
        }
    }
}
