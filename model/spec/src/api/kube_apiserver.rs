//! Flags of kube-apiserver: `spec.kubeAPIServer`.

use std::collections::BTreeMap;

use super::etcd::EnvVar;
use super::fields::spec;
use super::scalars::{Duration, Quantity};

spec! {
    /// The API server of every control-plane instance.
    pub struct KubeAPIServerConfig {
        /// Image to run instead of the one of the Kubernetes version.
        pub image: Option<String>,
        /// Removed from Kubernetes; kept for old specs.
        pub disable_basic_auth: Option<bool>,
        /// `--logging-format`.
        pub log_format: Option<String>,
        /// `--v`.
        pub log_level: Option<i32>,
        /// `--cloud-provider`.
        pub cloud_provider: Option<String>,
        /// `--etcd-compaction-interval`.
        pub compaction_interval: Option<Duration>,
        /// `--secure-port`.
        pub secure_port: Option<i32>,
        /// `--insecure-port`.
        pub insecure_port: Option<i32>,
        /// `--address`.
        pub address: Option<String>,
        /// `--advertise-address`.
        pub advertise_address: Option<String>,
        /// `--bind-address`.
        pub bind_address: Option<String>,
        /// `--insecure-bind-address`.
        pub insecure_bind_address: Option<String>,
        /// `--enable-bootstrap-token-auth`.
        pub enable_bootstrap_token_auth: Option<bool>,
        /// `--enable-aggregator-routing`.
        pub enable_aggregator_routing: Option<bool>,
        /// `--admission-control`.
        pub admission_control: Vec<String>,
        /// Added to the admission plugins that are on by default.
        pub append_admission_plugins: Vec<String>,
        /// `--enable-admission-plugins`.
        pub enable_admission_plugins: Vec<String>,
        /// `--disable-admission-plugins`.
        pub disable_admission_plugins: Vec<String>,
        /// `--admission-control-config-file`.
        pub admission_control_config_file: Option<String>,
        /// `--service-cluster-ip-range`.
        #[serde(rename = "serviceClusterIPRange")]
        pub service_cluster_ip_range: Option<String>,
        /// `--service-node-port-range`.
        pub service_node_port_range: Option<String>,
        /// `--etcd-servers`.
        pub etcd_servers: Vec<String>,
        /// `--etcd-servers-overrides`.
        pub etcd_servers_overrides: Vec<String>,
        /// `--etcd-cafile`.
        pub etcd_ca_file: Option<String>,
        /// `--etcd-certfile`.
        pub etcd_cert_file: Option<String>,
        /// `--etcd-keyfile`.
        pub etcd_key_file: Option<String>,
        /// `--basic-auth-file`.
        pub basic_auth_file: Option<String>,
        /// `--client-ca-file`.
        #[serde(rename = "clientCAFile")]
        pub client_ca_file: Option<String>,
        /// `--tls-cert-file`.
        pub tls_cert_file: Option<String>,
        /// `--tls-private-key-file`.
        pub tls_private_key_file: Option<String>,
        /// `--tls-cipher-suites`.
        pub tls_cipher_suites: Vec<String>,
        /// `--tls-min-version`.
        pub tls_min_version: Option<String>,
        /// `--token-auth-file`.
        pub token_auth_file: Option<String>,
        /// `--allow-privileged`.
        pub allow_privileged: Option<bool>,
        /// `--apiserver-count`.
        pub api_server_count: Option<i32>,
        /// `--runtime-config`.
        pub runtime_config: BTreeMap<String, String>,
        /// `--kubelet-client-certificate`.
        pub kubelet_client_certificate: Option<String>,
        /// `--kubelet-certificate-authority`.
        pub kubelet_certificate_authority: Option<String>,
        /// `--kubelet-client-key`.
        pub kubelet_client_key: Option<String>,
        /// `--anonymous-auth`.
        pub anonymous_auth: Option<bool>,
        /// `--kubelet-preferred-address-types`.
        pub kubelet_preferred_address_types: Vec<String>,
        /// `--storage-backend`.
        pub storage_backend: Option<String>,
        /// `--oidc-username-claim`.
        pub oidc_username_claim: Option<String>,
        /// `--oidc-username-prefix`.
        pub oidc_username_prefix: Option<String>,
        /// `--oidc-groups-claim`.
        pub oidc_groups_claim: Option<String>,
        /// `--oidc-groups-prefix`.
        pub oidc_groups_prefix: Option<String>,
        /// `--oidc-issuer-url`.
        #[serde(rename = "oidcIssuerURL")]
        pub oidc_issuer_url: Option<String>,
        /// `--oidc-client-id`.
        #[serde(rename = "oidcClientID")]
        pub oidc_client_id: Option<String>,
        /// `--oidc-required-claim`.
        pub oidc_required_claim: Vec<String>,
        /// `--oidc-ca-file`.
        #[serde(rename = "oidcCAFile")]
        pub oidc_ca_file: Option<String>,
        /// `--authentication-config`.
        pub authentication_config_file: Option<String>,
        /// `--proxy-client-cert-file`.
        pub proxy_client_cert_file: Option<String>,
        /// `--proxy-client-key-file`.
        pub proxy_client_key_file: Option<String>,
        /// `--audit-log-format`.
        pub audit_log_format: Option<String>,
        /// `--audit-log-path`.
        pub audit_log_path: Option<String>,
        /// `--audit-log-maxage`.
        pub audit_log_max_age: Option<i32>,
        /// `--audit-log-maxbackup`.
        pub audit_log_max_backups: Option<i32>,
        /// `--audit-log-maxsize`.
        pub audit_log_max_size: Option<i32>,
        /// `--audit-policy-file`.
        pub audit_policy_file: Option<String>,
        /// `--audit-webhook-batch-buffer-size`.
        pub audit_webhook_batch_buffer_size: Option<i32>,
        /// `--audit-webhook-batch-max-size`.
        pub audit_webhook_batch_max_size: Option<i32>,
        /// `--audit-webhook-batch-max-wait`.
        pub audit_webhook_batch_max_wait: Option<Duration>,
        /// `--audit-webhook-batch-throttle-burst`.
        pub audit_webhook_batch_throttle_burst: Option<i32>,
        /// `--audit-webhook-batch-throttle-enable`.
        pub audit_webhook_batch_throttle_enable: Option<bool>,
        /// `--audit-webhook-batch-throttle-qps`.
        pub audit_webhook_batch_throttle_qps: Option<Quantity>,
        /// `--audit-webhook-config-file`.
        pub audit_webhook_config_file: Option<String>,
        /// `--audit-webhook-initial-backoff`.
        pub audit_webhook_initial_backoff: Option<Duration>,
        /// `--audit-webhook-mode`.
        pub audit_webhook_mode: Option<String>,
        /// `--authentication-token-webhook-config-file`.
        pub authentication_token_webhook_config_file: Option<String>,
        /// `--authentication-token-webhook-cache-ttl`.
        pub authentication_token_webhook_cache_ttl: Option<Duration>,
        /// `--authorization-mode`.
        pub authorization_mode: Option<String>,
        /// `--authorization-webhook-config-file`.
        pub authorization_webhook_config_file: Option<String>,
        /// `--authorization-webhook-cache-authorized-ttl`.
        pub authorization_webhook_cache_authorized_ttl: Option<Duration>,
        /// `--authorization-webhook-cache-unauthorized-ttl`.
        pub authorization_webhook_cache_unauthorized_ttl: Option<Duration>,
        /// `--authorization-rbac-super-user`.
        pub authorization_rbac_super_user: Option<String>,
        /// `--encryption-provider-config`.
        pub encryption_provider_config: Option<String>,
        /// `--experimental-encryption-provider-config`.
        pub experimental_encryption_provider_config: Option<String>,
        /// `--requestheader-username-headers`.
        pub requestheader_username_headers: Vec<String>,
        /// `--requestheader-group-headers`.
        pub requestheader_group_headers: Vec<String>,
        /// `--requestheader-extra-headers-prefix`.
        pub requestheader_extra_header_prefixes: Vec<String>,
        /// `--requestheader-client-ca-file`.
        #[serde(rename = "requestheaderClientCAFile")]
        pub requestheader_client_ca_file: Option<String>,
        /// `--requestheader-allowed-names`.
        pub requestheader_allowed_names: Vec<String>,
        /// `--feature-gates`.
        pub feature_gates: BTreeMap<String, String>,
        /// `--goaway-chance`.
        pub goaway_chance: Option<String>,
        /// `--max-requests-inflight`.
        pub max_requests_inflight: Option<i32>,
        /// `--max-mutating-requests-inflight`.
        pub max_mutating_requests_inflight: Option<i32>,
        /// `--http2-max-streams-per-connection`.
        pub http2_max_streams_per_connection: Option<i32>,
        /// `--etcd-quorum-read`.
        pub etcd_quorum_read: Option<bool>,
        /// `--request-timeout`.
        pub request_timeout: Option<Duration>,
        /// `--storage-initialization-timeout`.
        pub storage_initialization_timeout: Option<Duration>,
        /// `--min-request-timeout`.
        pub min_request_timeout: Option<i32>,
        /// `--watch-cache`.
        pub watch_cache: Option<bool>,
        /// `--watch-cache-sizes`.
        pub watch_cache_sizes: Vec<String>,
        /// `--service-account-key-file`.
        pub service_account_key_file: Vec<String>,
        /// `--service-account-signing-key-file`.
        pub service_account_signing_key_file: Option<String>,
        /// `--service-account-issuer`.
        pub service_account_issuer: Option<String>,
        /// Further issuers whose tokens are accepted: `--service-account-issuer` again.
        pub additional_service_account_issuers: Vec<String>,
        /// `--service-account-jwks-uri`.
        #[serde(rename = "serviceAccountJWKSURI")]
        pub service_account_jwksuri: Option<String>,
        /// `--api-audiences`.
        pub api_audiences: Vec<String>,
        /// CPU the pod asks for.
        pub cpu_request: Option<Quantity>,
        /// CPU the pod may use at most.
        pub cpu_limit: Option<Quantity>,
        /// Memory the pod asks for.
        pub memory_request: Option<Quantity>,
        /// Memory the pod may use at most.
        pub memory_limit: Option<Quantity>,
        /// `--event-ttl`.
        #[serde(rename = "eventTTL")]
        pub event_ttl: Option<Duration>,
        /// `--audit-dynamic-configuration`.
        pub audit_dynamic_configuration: Option<bool>,
        /// `--profiling`.
        pub enable_profiling: Option<bool>,
        /// `--contention-profiling`.
        pub enable_contention_profiling: Option<bool>,
        /// `--cors-allowed-origins`.
        pub cors_allowed_origins: Vec<String>,
        /// `--strict-transport-security-directives`.
        pub strict_transport_security_directives: Vec<String>,
        /// `--default-not-ready-toleration-seconds`.
        pub default_not_ready_toleration_seconds: Option<i32>,
        /// `--default-unreachable-toleration-seconds`.
        pub default_unreachable_toleration_seconds: Option<i32>,
        /// `--delete-collection-workers`.
        pub delete_collection_workers: Option<i32>,
        /// Environment variables of the container.
        pub env: Vec<EnvVar>,
    }
}
