//! Issues leaf certificates with the primary key of a keyset.

use super::mint::{BACKDATED, common_name, new_serial, serial_number};
use super::{Error, KeyAlgorithm, KeySource, Keyset};
use crate::secret::Secret;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use std::net::IpAddr;
use time::{Duration, OffsetDateTime};

/// Validity of certificates that are renewed only when an instance boots: enough for a year between two boots. The same as in
/// kOps.
pub const LEAF_VALIDITY: Duration = Duration::days(455);

/// What a certificate may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Client,
    Server,
    /// Both, for etcd peers.
    ClientServer,
}

/// Content of a leaf certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Common name: the user name in Kubernetes.
    pub common_name: String,
    /// Organization: the group in Kubernetes.
    pub organization: Option<String>,
    pub usage: Usage,
    /// Alternative names: DNS names and IP addresses.
    pub names: Vec<String>,
    /// Validity from now. The certificate ends no later than its authority.
    pub validity: Duration,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// Certificate, PEM.
    pub certificate: String,
    /// Private key, PEM (PKCS#8).
    pub key: Secret,
}

/// Issues a certificate with a new key, signed by the keyset's primary key.
pub fn issue_certificate(
    keyset: &Keyset,
    leaf: &Leaf,
    source: &mut dyn KeySource,
) -> Result<IssuedCertificate, Error> {
    let (issuer, authority_ends) = load_issuer(keyset)?;
    let key = source.generate(KeyAlgorithm::EcdsaP256)?;
    let now = source.now();
    let mut params = certificate_params(leaf, now, authority_ends)?;
    params.serial_number = Some(serial_number(new_serial(now, &key)?));
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(IssuedCertificate {
        certificate: certificate.pem(),
        key: Secret::new(key.serialize_pem()),
    })
}

/// The parameters of a certificate except its serial number. It ends no later than its authority. Its validity begins before now,
/// but by no more than its lifetime, because kubelets renew theirs after most of the time between both ends has passed.
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

/// The primary key as issuer, and the end of its certificate's validity.
pub(super) fn load_issuer(
    keyset: &Keyset,
) -> Result<(Issuer<'static, KeyPair>, OffsetDateTime), Error> {
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
