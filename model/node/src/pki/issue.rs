//! Leaf certificates, issued from a keyset's primary key and never stored.

use super::mint::{BACKDATED, common_name, serial, serial_number};
use super::{Error, KeyAlgorithm, KeySource, Keyset};
use crate::secret::Secret;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use std::net::IpAddr;
use time::{Duration, OffsetDateTime};

/// How long certificates are valid that nobody renews while their machine is up: long enough for a year between two boots.
/// kOps'.
pub const LEAF_VALIDITY: Duration = Duration::days(455);

/// What a certificate may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// TLS client.
    Client,
    /// TLS server.
    Server,
    /// Both; etcd's peers.
    ClientServer,
}

/// What a leaf certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Subject CN: Kubernetes' user name.
    pub common_name: String,
    /// Subject O: Kubernetes' group.
    pub organization: Option<String>,
    /// Its uses.
    pub usage: Usage,
    /// DNS names and IP addresses, as text.
    pub names: Vec<String>,
    /// From now; it ends no later than its authority.
    pub validity: Duration,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// PEM.
    pub certificate: String,
    /// PEM, PKCS#8.
    pub key: Secret,
}

/// Issues a certificate with a new key, signed by the keyset's primary key.
pub fn issue(keyset: &Keyset, leaf: &Leaf, source: &mut dyn KeySource) -> Result<Issued, Error> {
    let (issuer, authority_ends) = issuer(keyset)?;
    let key = source.generate(KeyAlgorithm::EcdsaP256)?;
    let now = source.now();
    let mut params = certificate_params(leaf, now, authority_ends)?;
    params.serial_number = Some(serial_number(serial(now, &key)?));
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Issued {
        certificate: certificate.pem(),
        key: Secret::new(key.serialize_pem()),
    })
}

/// What the certificate says but its number: it ends no later than its authority does. It is valid from before now, but a
/// short-lived one by no more than it is to live: kubelets renew theirs once most of the time between both ends is over.
pub(super) fn certificate_params(
    leaf: &Leaf,
    now: OffsetDateTime,
    authority_ends: OffsetDateTime,
) -> Result<CertificateParams, Error> {
    let ends = now.checked_add(leaf.validity).ok_or(Error::Time)?;
    let mut subject = common_name(&leaf.common_name);
    if let Some(organization) = &leaf.organization {
        subject.push(DnType::OrganizationName, organization);
    }
    let mut params = CertificateParams::default();
    params.not_before = now
        .checked_sub(BACKDATED.min(leaf.validity))
        .ok_or(Error::Time)?;
    params.not_after = ends.min(authority_ends);
    params.distinguished_name = subject;
    params.subject_alt_names = leaf
        .names
        .iter()
        .map(|name| alt_name(name))
        .collect::<Result<_, _>>()?;
    params.key_usages = key_usages(leaf.usage);
    params.extended_key_usages = extended_key_usages(leaf.usage);
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// The keyset's primary key ready to sign, and when its certificate ends.
pub(super) fn issuer(keyset: &Keyset) -> Result<(Issuer<'static, KeyPair>, OffsetDateTime), Error> {
    let unusable = |source| Error::Unusable {
        name: keyset.name.clone(),
        source,
    };
    let item = keyset.primary()?;
    let key = item
        .key
        .as_ref()
        .ok_or_else(|| Error::NoPrivateKey(keyset.name.clone()))?;
    let key = KeyPair::from_pem(key.reveal()).map_err(unusable)?;
    let unreadable = || unusable(rcgen::Error::CouldNotParseCertificate);
    let (_, pem) =
        x509_parser::pem::parse_x509_pem(item.certificate.as_bytes()).map_err(|_| unreadable())?;
    let ends = pem
        .parse_x509()
        .map_err(|_| unreadable())?
        .validity()
        .not_after
        .to_datetime();
    let issuer = Issuer::from_ca_cert_pem(&item.certificate, key).map_err(unusable)?;
    Ok((issuer, ends))
}

fn alt_name(name: &str) -> Result<SanType, Error> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let bad = || Error::BadName(name.to_owned());
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(bad());
    }
    Ok(SanType::DnsName(name.try_into().map_err(|_| bad())?))
}

fn key_usages(usage: Usage) -> Vec<KeyUsagePurpose> {
    match usage {
        Usage::Client => vec![KeyUsagePurpose::DigitalSignature],
        Usage::Server | Usage::ClientServer => {
            vec![
                KeyUsagePurpose::DigitalSignature,
                KeyUsagePurpose::KeyEncipherment,
            ]
        }
    }
}

fn extended_key_usages(usage: Usage) -> Vec<ExtendedKeyUsagePurpose> {
    match usage {
        Usage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        Usage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
        Usage::ClientServer => vec![
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        ],
    }
}
