//! The etcd clusters: `spec.etcdClusters`.

use serde_json::Value;

use super::fields::spec;
use super::scalars::{Duration, Quantity};

spec! {
    /// One etcd cluster, in which the API server stores objects.
    pub struct EtcdClusterSpec {
        /// Name of the etcd cluster: `main` for all objects but events, `events` for these.
        pub name: String,
        /// Who runs etcd; only `Manager` is possible, for which protokube stands.
        pub provider: Option<String>,
        /// Its members, an odd number, each in a control-plane group of its own.
        pub etcd_members: Vec<EtcdMemberSpec>,
        /// Members use TLS. They always do.
        #[serde(rename = "enableEtcdTLS")]
        pub enable_etcd_tls: Option<bool>,
        /// Members ask for certificates. They always do.
        #[serde(rename = "enableTLSAuth")]
        pub enable_tls_auth: Option<bool>,
        /// Version of etcd. Default that for the version of Kubernetes.
        pub version: Option<String>,
        /// How long a member waits for the leader before it calls an election. Default etcd's own, 1s.
        pub leader_election_timeout: Option<Duration>,
        /// How often the leader tells the others that it is there. Default etcd's own, 100ms.
        pub heartbeat_interval: Option<Duration>,
        /// Image of etcd. Default that of `version`.
        pub image: Option<String>,
        /// Where backups are stored.
        pub backups: Option<EtcdBackupSpec>,
        /// How often backups are taken, how long they are kept, and settings of etcd.
        pub manager: Option<EtcdManagerSpec>,
        /// Memory that a pod asks for. Default 100Mi.
        pub memory_request: Option<Quantity>,
        /// CPU that a pod asks for. Default 200m for `main`, 100m for `events`.
        pub cpu_request: Option<Quantity>,
    }

    /// One member of an etcd cluster: a volume, and the group whose instance runs it.
    pub struct EtcdMemberSpec {
        /// Name of the member, unique in its etcd cluster, such as `a`.
        pub name: String,
        /// Name of the control-plane group whose instance runs the member.
        pub instance_group: String,
        /// EBS type of its volume. Default `gp3`.
        pub volume_type: Option<String>,
        /// IOPS of its volume, for the types gp3, io1 and io2. Default the least of the type: 3000, 100, 100.
        pub volume_iops: Option<i32>,
        /// Throughput of its volume in MiB/s, for gp3. Default 125.
        pub volume_throughput: Option<i32>,
        /// Size of its volume in GiB. Default 20.
        pub volume_size: Option<i32>,
        /// KMS key with which its volume is encrypted. Default the account's key for EBS.
        pub kms_key_id: Option<String>,
        /// Whether its volume is encrypted. Default false; `kctl create cluster` writes true.
        pub encrypted_volume: Option<bool>,
    }

    /// Where backups of etcd are stored.
    pub struct EtcdBackupSpec {
        /// Place of the backups, `s3://BUCKET/PATH`. Default `backups/etcd/NAME` below `spec.configBase`.
        pub backup_store: Option<String>,
        /// Image of a container that took backups. protokube takes them itself.
        pub image: Option<String>,
        /// Seconds after which the changes since the last part are stored; 0 stores none. Default 5. kctl's own field.
        pub changes_seconds: Option<i32>,
    }

    /// How often etcd is backed up, how long backups are kept, and settings of its members.
    pub struct EtcdManagerSpec {
        /// Image of etcd-manager. There is none in kctl: no effect.
        pub image: Option<String>,
        /// Environment variables that tune members, such as `ETCD_QUOTA_BACKEND_BYTES`, and those of backups, such as
        /// `ETCD_MANAGER_DAILY_BACKUPS_RETENTION`.
        pub env: Vec<EnvVar>,
        /// Time between two snapshots. Default 15m0s.
        pub backup_interval: Option<Duration>,
        /// Days that daily snapshots are kept. Default 90.
        pub backup_retention_days: Option<i32>,
        /// How often etcd-manager looked for other members. There is none in kctl: no effect.
        pub discovery_poll_interval: Option<Duration>,
        /// URLs at which members serve metrics. Default none.
        #[serde(rename = "listenMetricsURLs")]
        pub listen_metrics_urls: Vec<String>,
        /// URLs at which members serve HTTP clients apart from gRPC. Default the URLs of all clients.
        #[serde(rename = "listenClientHTTPURLs")]
        pub listen_client_http_urls: Vec<String>,
        /// How much etcd-manager logged. There is none in kctl: no effect.
        pub log_level: Option<i32>,
    }

    /// An environment variable.
    pub struct EnvVar {
        /// Name of the variable.
        pub name: String,
        /// Value of the variable.
        pub value: Option<String>,
        /// Where the value comes from, in the form of Kubernetes.
        pub value_from: Option<Value>,
    }
}
