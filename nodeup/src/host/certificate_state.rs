//! Compares a certificate and its key with the desired ones. Pure.

use node::host::{Certificate, CertificateState};
use node::pki::{Usage, alternative_name_text, public_key};
use node::secret::Secret;
use std::collections::BTreeSet;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;

/// The expectations of a certificate.
pub(super) struct ExpectedCertificate<'a> {
    pub certificate: &'a Certificate,
    /// Trusted certificates of the authority, PEM.
    pub trusted: &'a str,
    pub now: OffsetDateTime,
    /// True if the certificate is good until it expires, because another program renews it.
    pub until_it_ends: bool,
}

/// The state of a certificate and its key. Both texts may contain other PEM blocks.
pub(super) fn judge_certificate(
    wanted: &ExpectedCertificate<'_>,
    certificate: &str,
    key: &str,
) -> CertificateState {
    let Some(pem) = find_block(certificate, "CERTIFICATE") else {
        return CertificateState::Unreadable;
    };
    let Ok(parsed) = pem.parse_x509() else {
        return CertificateState::Unreadable;
    };
    let Some(key) = public_key_of_private(key) else {
        return CertificateState::Unreadable;
    };
    if parsed.public_key().raw != key {
        return CertificateState::OtherKey;
    }
    if !has_content(&parsed, wanted.certificate) {
        return CertificateState::OtherContent;
    }
    if !is_signed_by_any(&parsed, wanted.trusted) {
        return CertificateState::OtherAuthority;
    }
    let validity = parsed.validity();
    let (begins, ends) = (
        validity.not_before.to_datetime(),
        validity.not_after.to_datetime(),
    );
    let left = ends - wanted.now;
    if begins > wanted.now || !left.is_positive() {
        CertificateState::Ended
    } else if wanted.until_it_ends || left * 3 > ends - begins {
        CertificateState::Good
    } else {
        CertificateState::Expiring
    }
}

fn find_block(text: &str, label: &str) -> Option<Pem> {
    let mut blocks = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok);
    blocks.find(|pem| pem.label == label)
}

/// The public key (DER) of the first private key in a text.
fn public_key_of_private(text: &str) -> Option<Vec<u8>> {
    let begin = text
        .find("-----BEGIN PRIVATE KEY")
        .or_else(|| text.find("-----BEGIN EC PRIVATE KEY"));
    let begin = begin.or_else(|| text.find("-----BEGIN RSA PRIVATE KEY"))?;
    public_key(&Secret::new(text.get(begin..)?)).ok()
}

fn has_content(parsed: &X509Certificate<'_>, wanted: &Certificate) -> bool {
    let subject = parsed.subject();
    let first = |mut values: Vec<&str>| (values.len() == 1).then(|| values.remove(0).to_owned());
    let common = subject
        .iter_common_name()
        .filter_map(|value| value.as_str().ok())
        .collect();
    let organization: Vec<&str> = subject
        .iter_organization()
        .filter_map(|value| value.as_str().ok())
        .collect();
    let wanted_organization: Vec<&str> = wanted.organization.as_deref().into_iter().collect();
    first(common).as_deref() == Some(wanted.common_name.as_str())
        && organization == wanted_organization
        && alternative_names(parsed) == wanted.names.iter().cloned().collect()
        && allows_usage(parsed, wanted.usage)
}

fn alternative_names(parsed: &X509Certificate<'_>) -> BTreeSet<String> {
    let extension = parsed.subject_alternative_name().ok().flatten();
    let names = extension
        .map(|extension| extension.value.general_names.as_slice())
        .unwrap_or_default();
    let text =
        |name: &GeneralName<'_>| alternative_name_text(name).unwrap_or_else(|| format!("{name:?}"));
    names.iter().map(text).collect()
}

fn allows_usage(parsed: &X509Certificate<'_>, usage: Usage) -> bool {
    let Ok(Some(extension)) = parsed.extended_key_usage() else {
        return false;
    };
    let (client, server) = (extension.value.client_auth, extension.value.server_auth);
    match usage {
        Usage::Client => client,
        Usage::Server => server,
        Usage::ClientServer => client && server,
    }
}

fn is_signed_by_any(parsed: &X509Certificate<'_>, trusted: &str) -> bool {
    let authorities = Pem::iter_from_buffer(trusted.as_bytes()).filter_map(Result::ok);
    let mut authorities = authorities.filter(|pem| pem.label == "CERTIFICATE");
    authorities.any(|pem| {
        pem.parse_x509().is_ok_and(|authority| {
            parsed
                .verify_signature(Some(authority.public_key()))
                .is_ok()
        })
    })
}
