//! Creates authorities: a new key with a self-signed certificate, as in kOps.

use super::{Error, KeyAlgorithm, KeySource, Keyset, KeysetItem};
use crate::secret::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PublicKeyData, SerialNumber,
};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

/// How far before now the validity of a certificate begins, for clocks that are behind. The same as in kOps.
pub(super) const BACKDATED: Duration = Duration::hours(48);
/// Validity of an authority: ten years, as in kOps.
const VALIDITY: Duration = Duration::days(3650);

/// The attribute serialNumber of a distinguished name (X.520).
const SERIAL_NUMBER: [u64; 4] = [2, 5, 4, 5];

/// Creates a keyset with one new key.
pub fn mint_keyset(
    name: &str,
    algorithm: KeyAlgorithm,
    source: &mut dyn KeySource,
) -> Result<Keyset, Error> {
    let key = source.generate(algorithm)?;
    let item = mint_item(common_name(name), &key, source, None)?;
    Ok(Keyset {
        name: name.to_owned(),
        primary: item.id.clone(),
        items: vec![item],
    })
}

/// Creates a further key of a keyset, of this private key (PEM) or a new one. The subject has the serial number, as in kOps: two authorities
/// of one name would be taken for each other by programs that look for the signer by its name.
pub fn mint_further(
    keyset: &Keyset,
    key: Option<&Secret>,
    source: &mut dyn KeySource,
) -> Result<KeysetItem, Error> {
    let pair = match key {
        Some(key) => KeyPair::from_pem(key.reveal())?,
        None => source.generate(KeyAlgorithm::default())?,
    };
    let mut subject = common_name(&keyset.name);
    let serial = new_serial(source.now(), &pair)?;
    subject.push(
        DnType::CustomDnType(SERIAL_NUMBER.to_vec()),
        serial.to_string(),
    );
    mint_item(subject, &pair, source, key)
}

/// `given`: the text of the private key, if it is not made here.
fn mint_item(
    subject: DistinguishedName,
    key: &KeyPair,
    source: &dyn KeySource,
    given: Option<&Secret>,
) -> Result<KeysetItem, Error> {
    let now = source.now();
    let serial = new_serial(now, key)?;
    let mut params = CertificateParams::default();
    params.not_before = now.checked_sub(BACKDATED).ok_or(Error::Time)?;
    params.not_after = now.checked_add(VALIDITY).ok_or(Error::Time)?;
    params.serial_number = Some(serial_number(serial));
    params.distinguished_name = subject;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(key)?;
    Ok(KeysetItem {
        id: serial.to_string(),
        certificate: certificate.pem(),
        key: Some(
            given
                .cloned()
                .unwrap_or_else(|| Secret::new(key.serialize_pem())),
        ),
        distrusted: None,
    })
}

/// A distinguished name with a common name only.
pub(super) fn common_name(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

/// A serial number: nanoseconds since 1970, followed by 32 bits of the key's digest, which are random. kOps' numbers have the same
/// form, so ids sort by age.
pub(super) fn new_serial(now: OffsetDateTime, key: &impl PublicKeyData) -> Result<u128, Error> {
    let nanoseconds = u128::try_from(now.unix_timestamp_nanos()).map_err(|_| Error::Time)?;
    let digest = Sha256::digest(key.der_bytes());
    let random = digest
        .iter()
        .take(4)
        .fold(0, |bits, byte| bits << 8 | u128::from(*byte));
    Ok(nanoseconds << 32 | random)
}

/// A serial number in a certificate's encoding: big-endian without leading zeros.
pub(super) fn serial_number(serial: u128) -> SerialNumber {
    let bytes = serial.to_be_bytes();
    let significant: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
    SerialNumber::from_slice(&significant)
}
