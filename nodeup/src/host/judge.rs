//! Whether a certificate and a key are what is wanted. Looks at nothing but its arguments.

use node::host::{Certificate, Standing};
use node::pki::{Usage, public_key};
use node::secret::Secret;
use std::collections::BTreeSet;
use std::net::IpAddr;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;

/// What it is measured by.
pub(super) struct Wanted<'a> {
    /// What it should say.
    pub certificate: &'a Certificate,
    /// Certificates of its authority, PEM.
    pub trusted: &'a str,
    /// The time.
    pub now: OffsetDateTime,
    /// It is good until its last moment: somebody else renews it.
    pub until_it_ends: bool,
}

/// How they stand. The text of either may hold other PEM blocks besides.
pub(super) fn judge(wanted: &Wanted<'_>, certificate: &str, key: &str) -> Standing {
    let Some(pem) = block(certificate, "CERTIFICATE") else {
        return Standing::Unreadable;
    };
    let Ok(parsed) = pem.parse_x509() else {
        return Standing::Unreadable;
    };
    let Some(key) = private_key(key) else {
        return Standing::Unreadable;
    };
    if parsed.public_key().raw != key {
        return Standing::OtherKey;
    }
    if !says(&parsed, wanted.certificate) {
        return Standing::OtherContent;
    }
    if !signed_by_one_of(&parsed, wanted.trusted) {
        return Standing::OtherAuthority;
    }
    let validity = parsed.validity();
    let (begins, ends) = (
        validity.not_before.to_datetime(),
        validity.not_after.to_datetime(),
    );
    let left = ends - wanted.now;
    if begins > wanted.now || !left.is_positive() {
        Standing::Ended
    } else if wanted.until_it_ends || left * 3 > ends - begins {
        Standing::Good
    } else {
        Standing::Expiring
    }
}

fn block(text: &str, label: &str) -> Option<Pem> {
    let mut blocks = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok);
    blocks.find(|pem| pem.label == label)
}

/// The public key of the first private key in a text.
fn private_key(text: &str) -> Option<Vec<u8>> {
    let begin = text
        .find("-----BEGIN PRIVATE KEY")
        .or_else(|| text.find("-----BEGIN EC PRIVATE KEY"));
    let begin = begin.or_else(|| text.find("-----BEGIN RSA PRIVATE KEY"))?;
    public_key(&Secret::new(text.get(begin..)?)).ok()
}

fn says(parsed: &X509Certificate<'_>, wanted: &Certificate) -> bool {
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
        && names(parsed) == wanted.names.iter().cloned().collect()
        && may(parsed, wanted.usage)
}

fn names(parsed: &X509Certificate<'_>) -> BTreeSet<String> {
    let extension = parsed.subject_alternative_name().ok().flatten();
    let names = extension
        .map(|extension| extension.value.general_names.as_slice())
        .unwrap_or_default();
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => {
            address(bytes).map_or_else(|| format!("{bytes:?}"), |address| address.to_string())
        }
        other => format!("{other:?}"),
    };
    names.iter().map(name).collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let sixteen = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| sixteen()).ok()
}

fn may(parsed: &X509Certificate<'_>, usage: Usage) -> bool {
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

fn signed_by_one_of(parsed: &X509Certificate<'_>, trusted: &str) -> bool {
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
