//! Creates certificate signing requests, and signs them with a keyset.

use super::issue::{certificate_params, load_issuer};
use super::mint::{common_name, new_serial, serial_number};
use super::{Error, KeyAlgorithm, KeySource, Keyset, Leaf, SigningRequest};
use crate::secret::Secret;
use rcgen::{CertificateParams, CertificateSigningRequestParams, DnType, DnValue};
use time::OffsetDateTime;

/// Creates a key and a request (PEM) with the subject of `leaf`. Returns the request and the key.
pub fn create_request(leaf: &Leaf, source: &mut dyn KeySource) -> Result<(String, Secret), Error> {
    let key = source.generate(KeyAlgorithm::EcdsaP256)?;
    Ok((
        request_for_key(leaf, &Secret::new(key.serialize_pem()))?,
        Secret::new(key.serialize_pem()),
    ))
}

/// Creates a request (PEM) with the subject of `leaf` for an existing key (PEM, PKCS#8).
pub fn request_for_key(leaf: &Leaf, key: &Secret) -> Result<String, Error> {
    let key = rcgen::KeyPair::from_pem(key.reveal())?;
    let mut subject = common_name(&leaf.common_name);
    if let Some(organization) = &leaf.organization {
        subject.push(DnType::OrganizationName, organization);
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    Ok(params.serialize_request(&key)?.pem()?)
}

/// Issues the certificate for a request that has exactly the subject of `leaf`. Only the key is taken from the request.
pub fn sign_request(
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
    let (issuer, ends) = load_issuer(keyset)?;
    let mut params = certificate_params(leaf, now, ends)?;
    params.serial_number = Some(serial_number(new_serial(now, &asked.public_key)?));
    Ok(params.signed_by(&asked.public_key, &issuer)?.pem())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{SystemKeys, Usage, mint_keyset};
    use time::Duration;

    fn node_leaf(name: &str) -> Leaf {
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
        let mut keys = SystemKeys::issuing_at(now);
        let authority = mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let (request, key) = create_request(&node_leaf("i-1"), &mut keys).unwrap();
        let request = SigningRequest::from_pem(request.as_bytes()).unwrap();
        let certificate = sign_request(&authority, &request, &node_leaf("i-1"), now).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).unwrap();
        let parsed = pem.parse_x509().unwrap();
        let key = rcgen::KeyPair::from_pem(key.reveal()).unwrap();
        assert_eq!(
            parsed.public_key().subject_public_key.data.as_ref(),
            rcgen::PublicKeyData::der_bytes(&key)
        );
        assert!(matches!(
            sign_request(&authority, &request, &node_leaf("i-2"), now),
            Err(Error::OtherSubject { .. })
        ));
    }
}
