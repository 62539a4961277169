//! The etcd clusters: `spec.etcdClusters`.

use serde_json::Value;

use super::fields::spec;
use super::scalars::{Duration, Quantity};

spec! {
    pub struct EtcdClusterSpec {
        /// `main` or `events`.
        pub name: String,
        /// `Manager`; kOps knew `Legacy` too.
        pub provider: Option<String>,
        /// Its members, an odd number.
        pub etcd_members: Vec<EtcdMemberSpec>,
        /// Always on; kept for old specs.
        #[serde(rename = "enableEtcdTLS")]
        pub enable_etcd_tls: Option<bool>,
        /// Always on; kept for old specs.
        #[serde(rename = "enableTLSAuth")]
        pub enable_tls_auth: Option<bool>,
        /// etcd version; default by the Kubernetes version.
        pub version: Option<String>,
        /// `--election-timeout`.
        pub leader_election_timeout: Option<Duration>,
        /// `--heartbeat-interval`.
        pub heartbeat_interval: Option<Duration>,
        /// Image instead of the default one.
        pub image: Option<String>,
        pub backups: Option<EtcdBackupSpec>,
        /// How snapshots are taken.
        pub manager: Option<EtcdManagerSpec>,
        /// Memory a pod asks for.
        pub memory_request: Option<Quantity>,
        /// CPU a pod asks for.
        pub cpu_request: Option<Quantity>,
    }

    /// One member: a volume, and the group whose instance mounts it.
    pub struct EtcdMemberSpec {
        /// Name, unique in its etcd cluster: `a`, `b`, `c`.
        pub name: String,
        /// Control-plane group whose instance runs it.
        pub instance_group: String,
        /// EBS type; default gp3.
        pub volume_type: Option<String>,
        /// IOPS, where the type lets them be chosen.
        pub volume_iops: Option<i32>,
        /// MiB/s, gp3 only.
        pub volume_throughput: Option<i32>,
        /// GiB; default 20.
        pub volume_size: Option<i32>,
        /// KMS key of the volume.
        pub kms_key_id: Option<String>,
        /// Whether the volume is encrypted; default true.
        pub encrypted_volume: Option<bool>,
    }

    pub struct EtcdBackupSpec {
        /// `s3://bucket/path`.
        pub backup_store: Option<String>,
        /// Image of the backup container; removed from kOps.
        pub image: Option<String>,
        /// Seconds after which the changes since the last part are stored; 0: none are stored; default 5. kctl's own field.
        pub changes_seconds: Option<i32>,
    }

    /// How etcd is run and its snapshots are taken.
    pub struct EtcdManagerSpec {
        /// Image of etcd-manager; kctl has none.
        pub image: Option<String>,
        /// Settings as environment variables, such as ETCD_LISTEN_METRICS_URLS.
        pub env: Vec<EnvVar>,
        /// Time between snapshots; default 15m.
        pub backup_interval: Option<Duration>,
        /// Days snapshots are kept; default 90.
        pub backup_retention_days: Option<i32>,
        /// Time between looks for other members.
        pub discovery_poll_interval: Option<Duration>,
        /// `--listen-metrics-urls`.
        #[serde(rename = "listenMetricsURLs")]
        pub listen_metrics_urls: Vec<String>,
        /// `--listen-client-http-urls`.
        #[serde(rename = "listenClientHTTPURLs")]
        pub listen_client_http_urls: Vec<String>,
        pub log_level: Option<i32>,
    }

    pub struct EnvVar {
        pub name: String,
        pub value: Option<String>,
        /// Where the value comes from, as in Kubernetes.
        pub value_from: Option<Value>,
    }
}
