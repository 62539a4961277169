//! A kubeconfig of the cluster's administrator, with a certificate that is issued here, expires soon and is stored
//! nowhere in the cluster.

use super::Server;
use crate::env;
use crate::error::{CommandError, Context};
use node::pki::{
    ClientCredentials, Keyset, Kubeconfig, Leaf, SystemKeys, Usage, issue_certificate, trust_bundle,
};
use node::secret::Secret;
use std::time::Duration;
use time::OffsetDateTime;

const AGAIN: &str = "try again, or restore the keyset kubernetes-ca from the bucket's versions";

/// Who asks.
#[derive(Clone, Debug)]
pub struct Administrator<'a> {
    /// The cluster's name.
    pub cluster: &'a str,
    /// The keyset kubernetes-ca, with its private key.
    pub authority: &'a Keyset,
    /// How long the certificate is good for.
    pub validity: Duration,
}

/// The kubeconfig that reaches a server as the cluster's administrator. Secret: it holds a private key.
pub fn administrator(who: &Administrator<'_>, server: &Server) -> Result<Secret, CommandError> {
    let user = env::value(env::USER).unwrap_or_else(|| "admin".to_owned());
    let leaf = Leaf {
        common_name: format!("kubecfg-{user}"),
        organization: Some("system:masters".to_owned()),
        usage: Usage::Client,
        names: Vec::new(),
        validity: who
            .validity
            .try_into()
            .failed("could not issue a certificate", AGAIN)?,
    };
    let mut keys = SystemKeys::at(OffsetDateTime::now_utc());
    let issued = issue_certificate(who.authority, &leaf, &mut keys);
    let issued = issued.failed("could not issue a certificate", AGAIN)?;
    let config = node::pki::render_kubeconfig(&Kubeconfig {
        name: who.cluster.to_owned(),
        server: server.url.clone(),
        tls_server_name: server.certified_as.clone(),
        trust_bundle: Some(trust_bundle(who.authority)),
        credentials: Some(ClientCredentials::Inside {
            certificate: issued.certificate,
            key: issued.key,
        }),
    });
    config.failed("could not make the kubeconfig", AGAIN)
}
