//! The certificates of a member, which nodeup writes and renews.

use anyhow::Context;
use host::Host;

/// A file of the folder with a member's certificates.
pub(crate) fn read_certificate(host: &Host, folder: &str, file: &str) -> anyhow::Result<String> {
    let path = format!("{folder}/{file}");
    let text = host.read_text(&path)?;
    text.with_context(|| format!("{path} does not exist yet; nodeup writes it"))
}

/// A client that shows the certificate `own` (`server`, `peer`), and trusts servers with one of `authority` (`clients-ca`, `peers-ca`). etcd
/// negotiates HTTP/2 but answers with HTTP/1 on its peer port.
pub(crate) fn client_builder(
    host: &Host,
    folder: &str,
    (own, authority): (&str, &str),
) -> anyhow::Result<reqwest::ClientBuilder> {
    let read = |file: String| read_certificate(host, folder, &file);
    let own = [read(format!("{own}.crt"))?, read(format!("{own}.key"))?].concat();
    let trusted = read(format!("{authority}.crt"))?;
    let trusted = reqwest::Certificate::from_pem_bundle(trusted.as_bytes())?;
    let client = reqwest::Client::builder().no_proxy().http1_only();
    let own = reqwest::Identity::from_pem(own.as_bytes())?;
    Ok(client.tls_certs_only(trusted).identity(own))
}
