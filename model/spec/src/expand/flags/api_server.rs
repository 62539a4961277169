//! kube-apiserver's flags.

use super::Error;
use super::naming::{Naming, collect_flags};
use crate::api::kube_apiserver::KubeAPIServerConfig;
use node::components::{Flags, KUBERNETES, component_pki};

const COMPONENT: &str = "kube-apiserver";

/// Fields whose flags differ from the naming rule, as in kOps.
pub(super) const NAMING: Naming = Naming {
    component: COMPONENT,
    named: &[
        ("apiServerCount", "apiserver-count"),
        ("auditLogMaxAge", "audit-log-maxage"),
        ("auditLogMaxBackups", "audit-log-maxbackup"),
        ("auditLogMaxSize", "audit-log-maxsize"),
        ("authenticationConfigFile", "authentication-config"),
        ("compactionInterval", "etcd-compaction-interval"),
        ("enableContentionProfiling", "contention-profiling"),
        ("enableProfiling", "profiling"),
        ("etcdCaFile", "etcd-cafile"),
        ("etcdCertFile", "etcd-certfile"),
        ("etcdKeyFile", "etcd-keyfile"),
        ("logFormat", "logging-format"),
        ("logLevel", "v"),
        (
            "requestheaderExtraHeaderPrefixes",
            "requestheader-extra-headers-prefix",
        ),
        ("serviceAccountJWKSURI", "service-account-jwks-uri"),
    ],
    none: &[
        "additionalServiceAccountIssuers",
        "appendAdmissionPlugins",
        "cpuLimit",
        "cpuRequest",
        "disableBasicAuth",
        "env",
        "image",
        "memoryLimit",
        "memoryRequest",
    ],
    empty: &[
        ("deleteCollectionWorkers", "0"),
        ("logFormat", "text"),
        ("logLevel", "0"),
        ("maxMutatingRequestsInflight", "0"),
        ("maxRequestsInflight", "0"),
        ("watchCacheSizes", "0"),
    ],
    repeated: &["oidcRequiredClaim", "serviceAccountKeyFile"],
};

/// Flags of kube-apiserver. With `encryption`, the API server reads its encryption configuration from a file with the
/// content of the cluster's secret `encryptionconfig`.
pub fn make_api_server_flags(
    config: &KubeAPIServerConfig,
    encryption: bool,
) -> Result<Flags, Error> {
    let mut flags = collect_flags(config, &NAMING)?;
    flags.set_if_missing("client-ca-file", format!("{KUBERNETES}/ca.crt"));
    // kOps leaves this out; then any server at a Node's address passes for its kubelet. The controller manager signs
    // kubelets' serving certificates with this authority, for addresses that EC2 confirms.
    flags.set_if_missing(
        "kubelet-certificate-authority",
        format!("{KUBERNETES}/ca.crt"),
    );
    for (flag, file) in [
        ("etcd-cafile", "etcd-ca.crt"),
        ("etcd-certfile", "etcd-client.crt"),
        ("etcd-keyfile", "etcd-client.key"),
        ("kubelet-client-certificate", "kubelet-api.crt"),
        ("kubelet-client-key", "kubelet-api.key"),
        ("proxy-client-cert-file", "apiserver-aggregator.crt"),
        ("proxy-client-key-file", "apiserver-aggregator.key"),
        (
            "requestheader-client-ca-file",
            "apiserver-aggregator-ca.crt",
        ),
        ("service-account-key-file", "service-account.pub"),
        ("service-account-signing-key-file", "service-account.key"),
        ("tls-cert-file", "server.crt"),
        ("tls-private-key-file", "server.key"),
    ] {
        flags.set_if_missing(flag, component_pki(COMPONENT, file));
    }
    for issuer in &config.additional_service_account_issuers {
        flags.add("service-account-issuer", issuer);
    }
    if encryption {
        flags.set_if_missing(
            "encryption-provider-config",
            component_pki(COMPONENT, "encryptionconfig.yaml"),
        );
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::{KubeAPIServerConfig, make_api_server_flags};

    #[test]
    fn the_first_issuer_signs_and_all_are_trusted() {
        let config = KubeAPIServerConfig {
            service_account_issuer: Some("https://new".into()),
            additional_service_account_issuers: vec!["https://old".into()],
            ..KubeAPIServerConfig::default()
        };
        let arguments = make_api_server_flags(&config, false).unwrap().arguments();
        let issuers = arguments
            .iter()
            .filter(|argument| argument.starts_with("--service-account-issuer="));
        let expected = [
            "--service-account-issuer=https://new",
            "--service-account-issuer=https://old",
        ];
        assert_eq!(
            issuers.collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>()
        );
    }

    #[test]
    fn kubelets_are_verified() {
        let arguments = |config: &KubeAPIServerConfig| -> Vec<String> {
            let all = make_api_server_flags(config, false).unwrap().arguments();
            let of = |argument: &String| argument.contains("kubelet-certificate-authority");
            all.into_iter().filter(of).collect()
        };
        let own = KubeAPIServerConfig {
            kubelet_certificate_authority: Some("/mine.crt".into()),
            ..KubeAPIServerConfig::default()
        };
        assert_eq!(
            arguments(&KubeAPIServerConfig::default()),
            ["--kubelet-certificate-authority=/srv/kubernetes/ca.crt"]
        );
        assert_eq!(
            arguments(&own),
            ["--kubelet-certificate-authority=/mine.crt"]
        );
    }

    #[test]
    fn the_users_paths_win() {
        let config = KubeAPIServerConfig {
            tls_cert_file: Some("/mine.crt".into()),
            service_account_key_file: vec!["/a.pub".into(), "/b.pub".into()],
            ..KubeAPIServerConfig::default()
        };
        let arguments = make_api_server_flags(&config, true).unwrap().arguments();
        let has = |argument: &str| arguments.iter().any(|other| other == argument);
        assert!(
            has("--tls-cert-file=/mine.crt")
                && !has("--tls-cert-file=/srv/kubernetes/kube-apiserver/server.crt")
        );
        assert!(
            has("--service-account-key-file=/a.pub") && has("--service-account-key-file=/b.pub")
        );
        assert!(has(
            "--encryption-provider-config=/srv/kubernetes/kube-apiserver/encryptionconfig.yaml"
        ));
    }
}
