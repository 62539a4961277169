//! Keys that somebody brings, such as those of a company's own authority: what of them a keyset takes, and why not the rest.

use super::issue::load_issuer;
use super::{Error, Keyset, KeysetItem, SERVICE_ACCOUNT};
use crate::secret::Secret;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::Pem;
use x509_parser::public_key::PublicKey;

/// Fewest bits of an RSA key.
const RSA_BITS: usize = 2048;

/// Why a key is not added, or does not get another place in its keyset. Never contains key material.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// There is no such item.
    #[error("the keyset {keyset} has no key {id}")]
    NoKey { keyset: String, id: String },
    /// What is distrusted does not sign.
    #[error("the key {id} of {keyset} is distrusted")]
    Distrusted { keyset: String, id: String },
    /// Only the certificate is known.
    #[error("the key {id} of {keyset} has no private half, so it cannot sign")]
    NoPrivateKey { keyset: String, id: String },
    /// The key that signs stays trusted.
    #[error("the key {id} of {keyset} is the primary one, which signs")]
    Primary { keyset: String, id: String },
    /// The certificate cannot be one of this keyset.
    #[error("the certificate cannot be used for {keyset}: {why}")]
    Certificate { keyset: String, why: String },
    /// The private key cannot be one of this keyset.
    #[error("the private key cannot be used for {keyset}: {why}")]
    Key { keyset: String, why: String },
    /// The cryptography library does not take it.
    #[error("the certificate and its key cannot sign for {keyset}")]
    Unusable {
        keyset: String,
        #[source]
        source: Error,
    },
}

/// The number of certificates in a text of PEM blocks.
pub fn count_certificates(text: &str) -> usize {
    blocks(text).count()
}

/// The private key among the PEM blocks of a text: the first one. openssl writes parameters of the curve before it.
pub fn private_key_block(text: &Secret) -> Option<Secret> {
    let text = text.reveal();
    let mut begins = text.match_indices("-----BEGIN ");
    begins.find_map(|(at, _)| {
        let block = text.get(at..)?;
        let (label, _) = block.strip_prefix("-----BEGIN ")?.split_once("-----")?;
        let end = format!("-----END {label}-----");
        let length = block.find(&end)? + end.len();
        let block = block.get(..length)?;
        label
            .ends_with("PRIVATE KEY")
            .then(|| Secret::new(format!("{block}\n")))
    })
}

/// The item of a certificate that somebody brings: the first one of the text, as in kOps. Without a key it is only trusted.
pub fn check_brought(
    keyset: &Keyset,
    certificate: &str,
    key: Option<&Secret>,
    now: OffsetDateTime,
) -> Result<KeysetItem, Refused> {
    let name = &keyset.name;
    let wrong = |why: &str| Refused::Certificate {
        keyset: name.clone(),
        why: why.to_owned(),
    };
    let pem = blocks(certificate).next();
    let pem = pem.ok_or_else(|| wrong("the file has no block BEGIN CERTIFICATE"))?;
    let parsed = pem.parse_x509().map_err(|_| wrong("it cannot be parsed"))?;
    check_validity(&parsed, now).map_err(|why| wrong(&why))?;
    check_public_key(&parsed).map_err(|why| wrong(&why))?;
    // The certificate of this keyset only carries the key.
    if name != SERVICE_ACCOUNT {
        check_authority(&parsed).map_err(wrong)?;
    }
    let known = keyset.items.iter().find(|item| {
        let mut own = blocks(&item.certificate);
        own.any(|own| own.contents == pem.contents)
    });
    if let Some(item) = known {
        return Err(wrong(&format!("it is that of the key {} already", item.id)));
    }
    let item = KeysetItem {
        id: parsed.serial.to_string(),
        certificate: encode(&pem),
        key: key.cloned(),
        distrusted: None,
    };
    if let Some(key) = key {
        check_key(name, &parsed, key)?;
        let alone = Keyset {
            name: name.clone(),
            primary: item.id.clone(),
            items: vec![item.clone()],
        };
        load_issuer(&alone).map_err(|source| Refused::Unusable {
            keyset: name.clone(),
            source,
        })?;
    }
    Ok(item)
}

/// The private key belongs to the certificate.
fn check_key(name: &str, certificate: &X509Certificate<'_>, key: &Secret) -> Result<(), Refused> {
    let wrong = |why: &str| Refused::Key {
        keyset: name.to_owned(),
        why: why.to_owned(),
    };
    let public = super::public_key(key);
    let public =
        public.map_err(|_| wrong("it is encrypted, or neither PKCS#8, PKCS#1 nor SEC1"))?;
    if public != certificate.public_key().raw {
        return Err(wrong("it belongs to another certificate"));
    }
    Ok(())
}

fn check_validity(certificate: &X509Certificate<'_>, now: OffsetDateTime) -> Result<(), String> {
    let validity = certificate.validity();
    let (begins, ends) = (
        validity.not_before.to_datetime(),
        validity.not_after.to_datetime(),
    );
    if ends <= now {
        return Err(format!("it has expired on {}", ends.date()));
    }
    if begins > now {
        return Err(format!("it is not valid before {}", begins.date()));
    }
    Ok(())
}

fn check_public_key(certificate: &X509Certificate<'_>) -> Result<(), String> {
    match certificate.public_key().parsed() {
        Ok(PublicKey::RSA(key)) if key.key_size() < RSA_BITS => Err(format!(
            "its RSA key has {} bits, and {RSA_BITS} are the fewest",
            key.key_size()
        )),
        Ok(PublicKey::RSA(_)) => Ok(()),
        Ok(PublicKey::EC(point)) if [256, 384, 521, 528].contains(&point.key_size()) => Ok(()),
        _ => Err("its key is neither RSA nor ECDSA on P-256, P-384 or P-521".to_owned()),
    }
}

/// Go, in which Kubernetes is written, accepts certificates of this authority.
fn check_authority(certificate: &X509Certificate<'_>) -> Result<(), &'static str> {
    let constraints = certificate.basic_constraints().ok().flatten();
    if !constraints.is_some_and(|constraints| constraints.value.ca) {
        return Err("it is not that of an authority (basicConstraints CA:TRUE)");
    }
    if let Ok(Some(usage)) = certificate.key_usage()
        && !usage.value.key_cert_sign()
    {
        return Err("its key may not sign certificates (keyUsage keyCertSign)");
    }
    if let Ok(Some(usage)) = certificate.extended_key_usage() {
        let usage = usage.value;
        if !(usage.any || usage.client_auth && usage.server_auth) {
            return Err("it may not sign for clients and servers (extendedKeyUsage)");
        }
    }
    let mut extensions = certificate.extensions().iter();
    if extensions.any(|one| matches!(one.parsed_extension(), ParsedExtension::NameConstraints(_))) {
        return Err("it limits the names of its certificates (nameConstraints)");
    }
    Ok(())
}

fn blocks(text: &str) -> impl Iterator<Item = Pem> + '_ {
    let all = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok);
    all.filter(|pem| pem.label == "CERTIFICATE")
}

fn encode(pem: &Pem) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(&pem.contents);
    super::public::encode_block("CERTIFICATE", &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{KeyAlgorithm, KeySource, SystemKeys, mint_keyset};
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyUsagePurpose};
    use time::Duration;

    fn now() -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::days(20_000)
    }

    /// A certificate and its key.
    fn made(change: impl FnOnce(&mut CertificateParams)) -> (String, Secret) {
        let key = SystemKeys::issuing_at(now())
            .generate(KeyAlgorithm::EcdsaP256)
            .unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        (params.not_before, params.not_after) = (now() - Duration::DAY, now() + Duration::DAY);
        change(&mut params);
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), Secret::new(key.serialize_pem()))
    }

    fn keyset(name: &str) -> Keyset {
        let mut keys = SystemKeys::issuing_at(now());
        mint_keyset(name, KeyAlgorithm::EcdsaP256, &mut keys).unwrap()
    }

    fn why(name: &str, (certificate, key): &(String, Secret)) -> String {
        let refused = check_brought(&keyset(name), certificate, Some(key), now());
        refused
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn an_authority_with_its_key_is_taken_and_anything_else_is_refused_with_the_reason() {
        let good = made(|_| {});
        assert_eq!(why("kubernetes-ca", &good), "");
        let other = made(|_| {});
        for (what, brought) in [
            ("another certificate", (good.0.clone(), other.1)),
            (
                "has expired",
                made(|of| of.not_after = now() - Duration::HOUR),
            ),
            (
                "not valid before",
                made(|of| of.not_before = now() + Duration::HOUR),
            ),
            ("CA:TRUE", made(|of| of.is_ca = IsCa::ExplicitNoCa)),
            (
                "keyCertSign",
                made(|of| of.key_usages = vec![KeyUsagePurpose::DigitalSignature]),
            ),
            (
                "extendedKeyUsage",
                made(|of| {
                    of.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
                }),
            ),
            ("BEGIN CERTIFICATE", ("nothing".to_owned(), good.1.clone())),
            (
                "PKCS#8",
                (
                    good.0.clone(),
                    Secret::new("-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n"),
                ),
            ),
        ] {
            let why = why("kubernetes-ca", &brought);
            assert!(why.contains(what), "{what}: {why}");
        }
        // Of these, the certificate only carries the key.
        let plain = made(|of| of.is_ca = IsCa::NoCa);
        assert_eq!(why(SERVICE_ACCOUNT, &plain), "");
    }

    #[test]
    fn of_a_chain_the_first_certificate_is_taken_once() {
        let (first, second) = (made(|_| {}), made(|_| {}));
        let chain = format!("a comment\n{}{}", first.0, second.0);
        assert_eq!(count_certificates(&chain), 2);
        let mut keyset = keyset("kubernetes-ca");
        let item = check_brought(&keyset, &chain, Some(&first.1), now()).unwrap();
        assert_eq!(
            item.certificate.trim_end(),
            first.0.replace("\r\n", "\n").trim_end()
        );
        keyset.add(item, now()).unwrap();
        let again = check_brought(&keyset, &first.0, None, now()).unwrap_err();
        assert!(again.to_string().contains("already"), "{again}");
    }

    #[test]
    fn the_private_key_is_found_after_other_blocks() {
        let key = made(|_| {}).1;
        let file = format!(
            "-----BEGIN EC PARAMETERS-----\nBggq\n-----END EC PARAMETERS-----\n{}",
            key.reveal()
        );
        let found = private_key_block(&Secret::new(file)).unwrap();
        assert_eq!(
            found.reveal().trim_end(),
            key.reveal().replace("\r\n", "\n").trim_end()
        );
        assert_eq!(
            private_key_block(&Secret::new("-----BEGIN PUBLIC KEY-----")),
            None
        );
    }
}
