//! Issues short-lived administrator certificates and writes them into kubeconfigs. The certificates are not stored in the
//! cluster.

use super::ApiServer;
use crate::env;
use crate::error::{CommandError, ErrorContext};
use node::pki::{
    ClientCredentials, Keyset, Kubeconfig, Leaf, SystemKeys, Usage, issue_certificate, trust_bundle,
};
use node::secret::Secret;
use std::time::Duration;
use time::OffsetDateTime;

const AGAIN: &str = "try again, or restore the keyset kubernetes-ca from the bucket's versions";

/// What an administrator's kubeconfig is made from.
#[derive(Clone, Debug)]
pub struct KubeconfigRequest<'a> {
    pub cluster: &'a str,
    /// The keyset kubernetes-ca, with its private key.
    pub authority: &'a Keyset,
    /// Validity of the certificate.
    pub validity: Duration,
}

/// Issues a certificate and returns the kubeconfig with it. Secret: it holds a private key.
pub fn administrator_kubeconfig(
    request: &KubeconfigRequest<'_>,
    server: &ApiServer,
) -> Result<Secret, CommandError> {
    let user = env::get_variable(env::USER).unwrap_or_else(|| "admin".to_owned());
    let leaf = Leaf {
        common_name: format!("kubecfg-{user}"),
        organization: Some("system:masters".to_owned()),
        usage: Usage::Client,
        names: Vec::new(),
        validity: request
            .validity
            .try_into()
            .or_failed("could not issue a certificate", AGAIN)?,
    };
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    let issued = issue_certificate(request.authority, &leaf, &mut keys);
    let issued = issued.or_failed("could not issue a certificate", AGAIN)?;
    let config = node::pki::render_kubeconfig(&Kubeconfig {
        name: request.cluster.to_owned(),
        server: server.url.clone(),
        tls_server_name: server.certified_as.clone(),
        trust_bundle: Some(trust_bundle(request.authority)),
        credentials: Some(ClientCredentials::Inside {
            certificate: issued.certificate,
            key: issued.key,
        }),
    });
    config.or_failed("could not make the kubeconfig", AGAIN)
}
