//! Flags of kube-apiserver: `spec.kubeAPIServer`.

use std::collections::BTreeMap;

use super::etcd::EnvVar;
use super::fields::spec;
use super::scalars::{Duration, Quantity};

spec! {
    /// The API server of every control plane. The flag that a field becomes is in parentheses; without a default here,
    /// Kubernetes' own counts.
    pub struct KubeAPIServerConfig {
        /// Image of the API server. Default that of `spec.kubernetesVersion`.
        pub image: Option<String>,
        /// Turns off basic authentication, which no version of Kubernetes has any more: no effect.
        pub disable_basic_auth: Option<bool>,
        /// Form of the log: `text` or `json` (`--logging-format`). Default `text`.
        pub log_format: Option<String>,
        /// How much it logs (`--v`). Default 2.
        pub log_level: Option<i32>,
        /// Where the code for the cloud is: `external` (`--cloud-provider`).
        pub cloud_provider: Option<String>,
        /// How often old revisions in etcd are dropped (`--etcd-compaction-interval`). Default 5m.
        pub compaction_interval: Option<Duration>,
        /// TCP port of the API on control planes; only 443 is possible (`--secure-port`).
        pub secure_port: Option<i32>,
        /// TCP port without TLS (`--insecure-port`).
        pub insecure_port: Option<i32>,
        /// Address on which it listens without TLS (`--address`).
        pub address: Option<String>,
        /// Address at which it tells pods that it is (`--advertise-address`). Default that of the instance.
        pub advertise_address: Option<String>,
        /// Address on which it listens (`--bind-address`). Default `0.0.0.0`, on IPv6 `::`.
        pub bind_address: Option<String>,
        /// Address on which it listens without TLS (`--insecure-bind-address`).
        pub insecure_bind_address: Option<String>,
        /// Takes bootstrap tokens in `kube-system` (`--enable-bootstrap-token-auth`). Default false.
        pub enable_bootstrap_token_auth: Option<bool>,
        /// Sends requests for aggregated APIs to the addresses of pods, not of Services (`--enable-aggregator-routing`).
        /// Default true with `metricsServer`, else false.
        pub enable_aggregator_routing: Option<bool>,
        /// All admission plugins, in order (`--admission-control`). In the place of the other fields with plugins.
        pub admission_control: Vec<String>,
        /// Admission plugins that are on beside those of `enableAdmissionPlugins` or of its default.
        pub append_admission_plugins: Vec<String>,
        /// Admission plugins that are on (`--enable-admission-plugins`). Default a list of kOps without those of
        /// `disableAdmissionPlugins`.
        pub enable_admission_plugins: Vec<String>,
        /// Admission plugins that are off (`--disable-admission-plugins`).
        pub disable_admission_plugins: Vec<String>,
        /// File with the configuration of admission plugins (`--admission-control-config-file`).
        pub admission_control_config_file: Option<String>,
        /// Range of the addresses of Services; only that of `spec.serviceClusterIPRange` is possible
        /// (`--service-cluster-ip-range`).
        #[serde(rename = "serviceClusterIPRange")]
        pub service_cluster_ip_range: Option<String>,
        /// Range of NodePorts, such as `30000-32767` (`--service-node-port-range`). Default that.
        pub service_node_port_range: Option<String>,
        /// Address of etcd; only that of the member on the same instance is possible (`--etcd-servers`).
        pub etcd_servers: Vec<String>,
        /// Address of the etcd cluster for events; only that of the member on the same instance is possible
        /// (`--etcd-servers-overrides`).
        pub etcd_servers_overrides: Vec<String>,
        /// Certificate that verifies etcd; only the path where kctl puts it is possible (`--etcd-cafile`).
        pub etcd_ca_file: Option<String>,
        /// Certificate for etcd; only the path where kctl puts it is possible (`--etcd-certfile`).
        pub etcd_cert_file: Option<String>,
        /// Key of the certificate for etcd; only the path where kctl puts it is possible (`--etcd-keyfile`).
        pub etcd_key_file: Option<String>,
        /// File with passwords of users (`--basic-auth-file`).
        pub basic_auth_file: Option<String>,
        /// Certificates that verify those of clients (`--client-ca-file`). Default the cluster's authority.
        #[serde(rename = "clientCAFile")]
        pub client_ca_file: Option<String>,
        /// Certificate of the API server (`--tls-cert-file`). Default one that kctl issues.
        pub tls_cert_file: Option<String>,
        /// Key of the certificate of the API server (`--tls-private-key-file`). Default that of the one that kctl issues.
        pub tls_private_key_file: Option<String>,
        /// Cipher suites up to TLS 1.2, by Go's names (`--tls-cipher-suites`).
        pub tls_cipher_suites: Vec<String>,
        /// Least version of TLS, such as `VersionTLS12` (`--tls-min-version`).
        pub tls_min_version: Option<String>,
        /// File with tokens of users (`--token-auth-file`).
        pub token_auth_file: Option<String>,
        /// Lets pods have privileged containers (`--allow-privileged`). Default true.
        pub allow_privileged: Option<bool>,
        /// Number of API servers (`--apiserver-count`). Default the number of members of the etcd cluster `main`.
        pub api_server_count: Option<i32>,
        /// Versions of APIs that are on or off, such as `api/all: "false"` (`--runtime-config`).
        pub runtime_config: BTreeMap<String, String>,
        /// Certificate for kubelets; only the path where kctl puts it is possible (`--kubelet-client-certificate`).
        pub kubelet_client_certificate: Option<String>,
        /// Certificates that verify those of kubelets (`--kubelet-certificate-authority`). Default the cluster's authority.
        pub kubelet_certificate_authority: Option<String>,
        /// Key of the certificate for kubelets; only the path where kctl puts it is possible (`--kubelet-client-key`).
        pub kubelet_client_key: Option<String>,
        /// Answers requests without a name, as far as roles allow (`--anonymous-auth`). Default false.
        pub anonymous_auth: Option<bool>,
        /// Which address of a Node it uses for kubelet, in order (`--kubelet-preferred-address-types`). Default `InternalIP`,
        /// `Hostname`, `ExternalIP`.
        pub kubelet_preferred_address_types: Vec<String>,
        /// Form of storage (`--storage-backend`). Default `etcd3`.
        pub storage_backend: Option<String>,
        /// Claim of a token that is the name of the user (`--oidc-username-claim`). Default `sub`.
        pub oidc_username_claim: Option<String>,
        /// Text in front of names from tokens (`--oidc-username-prefix`). Default the issuer and `#`; `-` for none.
        pub oidc_username_prefix: Option<String>,
        /// Claim of a token with the groups of the user (`--oidc-groups-claim`). Default none.
        pub oidc_groups_claim: Option<String>,
        /// Text in front of groups from tokens (`--oidc-groups-prefix`). Default none.
        pub oidc_groups_prefix: Option<String>,
        /// URL of the OpenID issuer whose tokens are taken (`--oidc-issuer-url`). Default none.
        #[serde(rename = "oidcIssuerURL")]
        pub oidc_issuer_url: Option<String>,
        /// Audience that tokens of the issuer must have (`--oidc-client-id`).
        #[serde(rename = "oidcClientID")]
        pub oidc_client_id: Option<String>,
        /// Claims that a token must have, each as `name=value` (`--oidc-required-claim`).
        pub oidc_required_claim: Vec<String>,
        /// Certificates that verify the issuer (`--oidc-ca-file`). Default those of the system.
        #[serde(rename = "oidcCAFile")]
        pub oidc_ca_file: Option<String>,
        /// File with an AuthenticationConfiguration (`--authentication-config`).
        pub authentication_config_file: Option<String>,
        /// Certificate for aggregated APIs (`--proxy-client-cert-file`). Default one that kctl issues.
        pub proxy_client_cert_file: Option<String>,
        /// Key of the certificate for aggregated APIs (`--proxy-client-key-file`). Default that of the one that kctl issues.
        pub proxy_client_key_file: Option<String>,
        /// Form of the audit log: `json` or `legacy` (`--audit-log-format`). Default `json`.
        pub audit_log_format: Option<String>,
        /// File of the audit log, `-` for the log of the API server (`--audit-log-path`). Default no audit log.
        pub audit_log_path: Option<String>,
        /// Days that old files of the audit log are kept (`--audit-log-maxage`); 0 for ever. Default 366,
        /// before Kubernetes 1.36 0.
        pub audit_log_max_age: Option<i32>,
        /// Number of old files of the audit log that are kept (`--audit-log-maxbackup`); 0 for all. Default 100,
        /// before Kubernetes 1.36 0.
        pub audit_log_max_backups: Option<i32>,
        /// Size in MB at which a new file of the audit log begins (`--audit-log-maxsize`); since Kubernetes 1.36, 0
        /// for one file without an end. Default 100.
        pub audit_log_max_size: Option<i32>,
        /// File that says which requests are logged (`--audit-policy-file`). Without it none are.
        pub audit_policy_file: Option<String>,
        /// Events that wait for the audit webhook at most (`--audit-webhook-batch-buffer-size`). Default 10000.
        pub audit_webhook_batch_buffer_size: Option<i32>,
        /// Events in one request to the audit webhook at most (`--audit-webhook-batch-max-size`). Default 400.
        pub audit_webhook_batch_max_size: Option<i32>,
        /// How long an event waits for more at most (`--audit-webhook-batch-max-wait`). Default 30s.
        pub audit_webhook_batch_max_wait: Option<Duration>,
        /// Requests to the audit webhook at once (`--audit-webhook-batch-throttle-burst`). Default 15.
        pub audit_webhook_batch_throttle_burst: Option<i32>,
        /// Limits requests to the audit webhook (`--audit-webhook-batch-throttle-enable`). Default true.
        pub audit_webhook_batch_throttle_enable: Option<bool>,
        /// Requests per second to the audit webhook (`--audit-webhook-batch-throttle-qps`). Default 10.
        pub audit_webhook_batch_throttle_qps: Option<Quantity>,
        /// Kubeconfig file of the webhook that gets audit events (`--audit-webhook-config-file`). Default no webhook.
        pub audit_webhook_config_file: Option<String>,
        /// How long it waits before it repeats a first failed request to the audit webhook (`--audit-webhook-initial-backoff`).
        /// Default 10s.
        pub audit_webhook_initial_backoff: Option<Duration>,
        /// How it sends events to the audit webhook: `batch`, `blocking` or `blocking-strict` (`--audit-webhook-mode`). Default
        /// `batch`.
        pub audit_webhook_mode: Option<String>,
        /// Kubeconfig file of the webhook that knows tokens (`--authentication-token-webhook-config-file`). Not beside
        /// `spec.authentication.aws`.
        pub authentication_token_webhook_config_file: Option<String>,
        /// How long answers of the webhook for tokens are kept (`--authentication-token-webhook-cache-ttl`). Default 2m.
        pub authentication_token_webhook_cache_ttl: Option<Duration>,
        /// Who decides what is allowed, in order, with commas between (`--authorization-mode`). Default `Node,RBAC`, or
        /// `AlwaysAllow` by `spec.authorization`.
        pub authorization_mode: Option<String>,
        /// Kubeconfig file of the webhook that decides, for the mode `Webhook` (`--authorization-webhook-config-file`).
        pub authorization_webhook_config_file: Option<String>,
        /// How long a yes of that webhook is kept (`--authorization-webhook-cache-authorized-ttl`). Default 5m.
        pub authorization_webhook_cache_authorized_ttl: Option<Duration>,
        /// How long a no of that webhook is kept (`--authorization-webhook-cache-unauthorized-ttl`). Default 30s.
        pub authorization_webhook_cache_unauthorized_ttl: Option<Duration>,
        /// User who may do everything (`--authorization-rbac-super-user`).
        pub authorization_rbac_super_user: Option<String>,
        /// File that says how data in etcd are encrypted (`--encryption-provider-config`). Default that of
        /// `spec.encryptionConfig`.
        pub encryption_provider_config: Option<String>,
        /// Older name of `encryptionProviderConfig` (`--experimental-encryption-provider-config`).
        pub experimental_encryption_provider_config: Option<String>,
        /// Headers with the name of the user, from aggregated APIs and proxies (`--requestheader-username-headers`). Default
        /// `X-Remote-User`.
        pub requestheader_username_headers: Vec<String>,
        /// Headers with the groups of the user (`--requestheader-group-headers`). Default `X-Remote-Group`.
        pub requestheader_group_headers: Vec<String>,
        /// Beginnings of headers with more about the user (`--requestheader-extra-headers-prefix`). Default `X-Remote-Extra-`.
        pub requestheader_extra_header_prefixes: Vec<String>,
        /// Certificates that verify who may send such headers (`--requestheader-client-ca-file`). Default an authority of the
        /// cluster.
        #[serde(rename = "requestheaderClientCAFile")]
        pub requestheader_client_ca_file: Option<String>,
        /// Names in certificates that may send such headers (`--requestheader-allowed-names`). Default `aggregator`.
        pub requestheader_allowed_names: Vec<String>,
        /// Feature gates, `true` or `false` by name (`--feature-gates`).
        pub feature_gates: BTreeMap<String, String>,
        /// Share of requests, 0 to 0.02, after which HTTP/2 clients connect anew and reach another API server
        /// (`--goaway-chance`). Default 0.
        pub goaway_chance: Option<String>,
        /// Requests that only read, served at a time at most (`--max-requests-inflight`). Default 400.
        pub max_requests_inflight: Option<i32>,
        /// Requests that change something, served at a time at most (`--max-mutating-requests-inflight`). Default 200.
        pub max_mutating_requests_inflight: Option<i32>,
        /// Requests of one HTTP/2 connection at a time at most (`--http2-max-streams-per-connection`).
        pub http2_max_streams_per_connection: Option<i32>,
        /// Reads from etcd are those of the quorum, which they always are (`--etcd-quorum-read`).
        pub etcd_quorum_read: Option<bool>,
        /// How long a request may take (`--request-timeout`). Default 1m.
        pub request_timeout: Option<Duration>,
        /// How long it waits for storage when it starts (`--storage-initialization-timeout`). Default 1m.
        pub storage_initialization_timeout: Option<Duration>,
        /// Seconds that a watch lasts at least (`--min-request-timeout`). Default 1800.
        pub min_request_timeout: Option<i32>,
        /// Keeps objects in memory for watches (`--watch-cache`). Default true.
        pub watch_cache: Option<bool>,
        /// Sizes of the watch cache by resource, each as `resource#size` (`--watch-cache-sizes`).
        pub watch_cache_sizes: Vec<String>,
        /// Files with keys that verify tokens of service accounts (`--service-account-key-file`). Default the keys of the
        /// cluster's keyset `service-account`.
        pub service_account_key_file: Vec<String>,
        /// File with the key that signs tokens of service accounts (`--service-account-signing-key-file`). Default that of the
        /// cluster's keyset.
        pub service_account_signing_key_file: Option<String>,
        /// Issuer in tokens of service accounts (`--service-account-issuer`). Default the published issuer, else `https://` and
        /// `spec.masterInternalName`.
        pub service_account_issuer: Option<String>,
        /// Further issuers whose tokens of service accounts are taken (`--service-account-issuer` again).
        pub additional_service_account_issuers: Vec<String>,
        /// URL of the keys that verify tokens of service accounts (`--service-account-jwks-uri`). Default `openid/v1/jwks`
        /// below the issuer.
        #[serde(rename = "serviceAccountJWKSURI")]
        pub service_account_jwksuri: Option<String>,
        /// Audiences of tokens that the API takes (`--api-audiences`). Default `kubernetes.svc.default`.
        pub api_audiences: Vec<String>,
        /// CPU that its pod asks for. Default 150m.
        pub cpu_request: Option<Quantity>,
        /// CPU that its pod may use at most. Default no limit.
        pub cpu_limit: Option<Quantity>,
        /// Memory that its pod asks for. Default none.
        pub memory_request: Option<Quantity>,
        /// Memory that its pod may use at most. Default no limit.
        pub memory_limit: Option<Quantity>,
        /// How long events are kept (`--event-ttl`). Default 1h.
        #[serde(rename = "eventTTL")]
        pub event_ttl: Option<Duration>,
        /// Takes audit webhooks from objects of the cluster (`--audit-dynamic-configuration`).
        pub audit_dynamic_configuration: Option<bool>,
        /// Serves profiles of itself at `/debug/pprof` (`--profiling`). Default true.
        pub enable_profiling: Option<bool>,
        /// Its profiles show waiting for locks (`--contention-profiling`). Default false.
        pub enable_contention_profiling: Option<bool>,
        /// Regular expressions of origins that browsers may call it from (`--cors-allowed-origins`). Default none.
        pub cors_allowed_origins: Vec<String>,
        /// Directives of the HSTS header, such as `max-age=31536000` (`--strict-transport-security-directives`). Default no
        /// header.
        pub strict_transport_security_directives: Vec<String>,
        /// Seconds that pods stay on a Node that is not ready, if they do not say (`--default-not-ready-toleration-seconds`).
        /// Default 300.
        pub default_not_ready_toleration_seconds: Option<i32>,
        /// Seconds that pods stay on a Node that is not reached, if they do not say
        /// (`--default-unreachable-toleration-seconds`). Default 300.
        pub default_unreachable_toleration_seconds: Option<i32>,
        /// Objects of a collection that are deleted at a time (`--delete-collection-workers`). Default 1.
        pub delete_collection_workers: Option<i32>,
        /// Environment variables of the container.
        pub env: Vec<EnvVar>,
    }
}
