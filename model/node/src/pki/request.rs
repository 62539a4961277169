//! Certificate signing requests: made where the key is, answered with a certificate for that key alone.

use super::issue::{certificate_params, issuer};
use super::mint::{common_name, serial, serial_number};
use super::{Error, KeyAlgorithm, KeySource, Keyset, Leaf, SigningRequest};
use crate::secret::Secret;
use rcgen::{CertificateParams, CertificateSigningRequestParams, DnType, DnValue};
use time::OffsetDateTime;

/// A new key, and a request for a certificate that says `leaf`.
pub fn request(leaf: &Leaf, source: &mut dyn KeySource) -> Result<(String, Secret), Error> {
    let key = source.generate(KeyAlgorithm::EcdsaP256)?;
    Ok((
        request_for(leaf, &Secret::new(key.serialize_pem()))?,
        Secret::new(key.serialize_pem()),
    ))
}

/// A request for a certificate that says `leaf`, for a key that is there already (PEM, PKCS#8).
pub fn request_for(leaf: &Leaf, key: &Secret) -> Result<String, Error> {
    let key = rcgen::KeyPair::from_pem(key.reveal())?;
    let mut subject = common_name(&leaf.common_name);
    if let Some(organization) = &leaf.organization {
        subject.push(DnType::OrganizationName, organization);
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    Ok(params.serialize_request(&key)?.pem()?)
}

/// The certificate that a request asks for, if it asks for exactly the subject of `leaf`: nothing else of the request
/// but its key goes into it.
pub fn sign(
    keyset: &Keyset,
    request: &SigningRequest,
    leaf: &Leaf,
    now: OffsetDateTime,
) -> Result<String, Error> {
    let asked = CertificateSigningRequestParams::from_der(&request.der().into())?;
    let said = |kind| match asked.params.distinguished_name.get(&kind) {
        Some(DnValue::Utf8String(text)) => Some(text.clone()),
        Some(DnValue::PrintableString(text)) => Some(text.as_str().to_owned()),
        _ => None,
    };
    if said(DnType::CommonName).as_deref() != Some(&leaf.common_name)
        || said(DnType::OrganizationName) != leaf.organization
    {
        return Err(Error::OtherSubject {
            wanted: leaf.common_name.clone(),
        });
    }
    let (issuer, ends) = issuer(keyset)?;
    let mut params = certificate_params(leaf, now, ends)?;
    params.serial_number = Some(serial_number(serial(now, &asked.public_key)?));
    Ok(params.signed_by(&asked.public_key, &issuer)?.pem())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{SystemKeys, Usage, mint};
    use time::Duration;

    fn leaf(name: &str) -> Leaf {
        Leaf {
            common_name: format!("system:node:{name}"),
            organization: Some("system:nodes".to_owned()),
            usage: Usage::Client,
            names: Vec::new(),
            validity: Duration::days(1),
        }
    }

    #[test]
    fn a_certificate_is_for_the_requests_key_and_for_no_other_name() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let mut keys = SystemKeys::at(now);
        let authority = mint("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let (request, key) = request(&leaf("i-1"), &mut keys).unwrap();
        let request = SigningRequest::read(request.as_bytes()).unwrap();
        let certificate = sign(&authority, &request, &leaf("i-1"), now).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).unwrap();
        let parsed = pem.parse_x509().unwrap();
        let key = rcgen::KeyPair::from_pem(key.reveal()).unwrap();
        assert_eq!(
            parsed.public_key().subject_public_key.data.as_ref(),
            rcgen::PublicKeyData::der_bytes(&key)
        );
        assert!(matches!(
            sign(&authority, &request, &leaf("i-2"), now),
            Err(Error::OtherSubject { .. })
        ));
    }
}
