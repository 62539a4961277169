//! Keys that somebody brings, such as those of a company's own authority: what of them a keyset takes, and why not the rest.

use super::{
    Error, Keyset, KeysetItem, Leaf, SERVICE_ACCOUNT, SystemKeys, Usage, issue_certificate,
};
use crate::secret::Secret;
use std::ops::RangeInclusive;
use time::{Duration, OffsetDateTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::Pem;
use x509_parser::public_key::PublicKey;

/// Bits of an RSA key: TLS libraries take no longer ones.
const RSA_BITS: RangeInclusive<usize> = 2048..=8192;

/// P-256, P-384 and P-521.
const CURVES: [&str; 3] = ["1.2.840.10045.3.1.7", "1.3.132.0.34", "1.3.132.0.35"];

/// The extensions that may be critical: keyUsage, basicConstraints, cRLDistributionPoints, certificatePolicies, extendedKeyUsage. Kubernetes
/// accepts nothing below an authority with a critical one that Go (crypto/x509, `processExtensions`) does not handle.
const CRITICAL: [&str; 5] = [
    "2.5.29.15",
    "2.5.29.19",
    "2.5.29.31",
    "2.5.29.32",
    "2.5.29.37",
];

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
    /// Whoever the other keyset has signed for would be let in.
    #[error("the key cannot be used for {keyset}: the keyset {other} of this cluster has it too")]
    OtherKeyset { keyset: String, other: String },
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

/// False for an intermediate authority: another one has signed the first certificate of the text. `None`: it cannot be parsed.
pub fn is_self_issued(text: &str) -> Option<bool> {
    let pem = blocks(text).next()?;
    let parsed = pem.parse_x509().ok()?;
    Some(parsed.subject().as_raw() == parsed.issuer().as_raw())
}

/// Fails if another keyset has the key of this item, also as a key that is distrusted.
pub fn check_own_key(keyset: &Keyset, item: &KeysetItem, all: &[Keyset]) -> Result<(), Refused> {
    let key = public_bytes(&item.certificate);
    let mut others = all.iter().filter(|other| other.name != keyset.name);
    let other = others.find(|other| {
        let mut items = other.items.iter();
        items.any(|other| public_bytes(&other.certificate) == key)
    });
    match other {
        Some(other) if key.is_some() => Err(Refused::OtherKeyset {
            keyset: keyset.name.clone(),
            other: other.name.clone(),
        }),
        _ => Ok(()),
    }
}

/// The public key of a certificate, without the parameters of its algorithm, which have several forms.
fn public_bytes(certificate: &str) -> Option<Vec<u8>> {
    let pem = blocks(certificate).next()?;
    let parsed = pem.parse_x509().ok()?;
    Some(parsed.public_key().subject_public_key.data.to_vec())
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
    // Go refuses to parse them.
    if parsed
        .raw_serial()
        .first()
        .is_some_and(|byte| *byte >= 0x80)
    {
        return Err(wrong("its serial number is negative"));
    }
    check_validity(&parsed, now).map_err(|why| wrong(&why))?;
    check_public_key(&parsed).map_err(|why| wrong(&why))?;
    // The certificate of this keyset only carries the key.
    if name != SERVICE_ACCOUNT {
        check_authority(&parsed).map_err(|why| wrong(&why))?;
        check_extensions(&parsed).map_err(|why| wrong(&why))?;
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
        // API servers sign with that of this keyset, and kctl issues nothing.
        if name != SERVICE_ACCOUNT {
            check_issuing(name, &parsed, &item, now)?;
        }
    }
    Ok(item)
}

/// What the authority signs names it byte by byte: by that, programs find the authority of a certificate.
fn check_issuing(
    name: &str,
    authority: &X509Certificate<'_>,
    item: &KeysetItem,
    now: OffsetDateTime,
) -> Result<(), Refused> {
    let alone = Keyset {
        name: name.to_owned(),
        primary: item.id.clone(),
        items: vec![item.clone()],
    };
    let leaf = Leaf {
        common_name: "check".to_owned(),
        organization: None,
        usage: Usage::Client,
        names: Vec::new(),
        validity: Duration::MINUTE,
    };
    let issued = issue_certificate(&alone, &leaf, &mut SystemKeys::issuing_at(now));
    let issued = issued.map_err(|source| Refused::Unusable {
        keyset: name.to_owned(),
        source,
    })?;
    let issued = blocks(&issued.certificate).next();
    let is_named = issued.is_some_and(|pem| {
        let parsed = pem.parse_x509().ok();
        parsed.is_some_and(|parsed| parsed.issuer().as_raw() == authority.subject().as_raw())
    });
    if is_named {
        return Ok(());
    }
    Err(Refused::Certificate {
        keyset: name.to_owned(),
        why: format!(
            "kctl cannot write its name ({}) into what it signs: it may have each attribute, such as DC, once only",
            authority.subject()
        ),
    })
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
        Ok(PublicKey::RSA(key)) if RSA_BITS.contains(&key.key_size()) => Ok(()),
        Ok(PublicKey::RSA(key)) => Err(format!(
            "its RSA key has {} bits, and not from {} to {}",
            key.key_size(),
            RSA_BITS.start(),
            RSA_BITS.end()
        )),
        // Go does not take compressed points, which begin with 2 or 3.
        Ok(PublicKey::EC(point)) if point.data().first() == Some(&4) && has_curve(certificate) => {
            Ok(())
        }
        _ => Err("its key is neither RSA nor ECDSA on P-256, P-384 or P-521".to_owned()),
    }
}

fn has_curve(certificate: &X509Certificate<'_>) -> bool {
    let parameters = certificate.public_key().algorithm.parameters.as_ref();
    let curve = parameters.and_then(|parameters| parameters.as_oid().ok());
    curve.is_some_and(|curve| CURVES.contains(&curve.to_id_string().as_str()))
}

/// Nothing in the certificate keeps programs from using it.
fn check_extensions(certificate: &X509Certificate<'_>) -> Result<(), String> {
    if certificate.extensions_map().is_err() {
        return Err("it has the same extension twice".to_owned());
    }
    for extension in certificate.extensions() {
        let id = extension.oid.to_id_string();
        if let ParsedExtension::ParseError { .. } = extension.parsed_extension() {
            return Err(format!("its extension {id} cannot be parsed"));
        }
        if extension.critical && !CRITICAL.contains(&id.as_str()) {
            return Err(format!(
                "its extension {id} is critical, and programs that do not know it accept nothing that it signs"
            ));
        }
    }
    Ok(())
}

/// Go, in which Kubernetes is written, accepts certificates of this authority.
fn check_authority(certificate: &X509Certificate<'_>) -> Result<(), String> {
    let constraints = certificate.basic_constraints().ok().flatten();
    if !constraints.is_some_and(|constraints| constraints.value.ca) {
        return Err("it is not that of an authority (basicConstraints CA:TRUE)".to_owned());
    }
    if let Ok(Some(usage)) = certificate.key_usage()
        && !usage.value.key_cert_sign()
    {
        return Err("its key may not sign certificates (keyUsage keyCertSign)".to_owned());
    }
    if let Ok(Some(usage)) = certificate.extended_key_usage() {
        let usage = usage.value;
        if !(usage.any || usage.client_auth && usage.server_auth) {
            return Err("it may not sign for clients and servers (extendedKeyUsage)".to_owned());
        }
    }
    let mut extensions = certificate.extensions().iter();
    if extensions.any(|one| matches!(one.parsed_extension(), ParsedExtension::NameConstraints(_))) {
        return Err("it limits the names of its certificates (nameConstraints)".to_owned());
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
    use crate::pki::{KeyAlgorithm, KeySource, mint_further, mint_keyset};
    use rcgen::{
        BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, KeyUsagePurpose,
        SerialNumber,
    };

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

    /// The certificate with other bytes in place of these.
    fn patched((certificate, key): (String, Secret), from: &[u8], to: &[u8]) -> (String, Secret) {
        let mut pem = blocks(&certificate).next().unwrap();
        let found = pem.contents.windows(from.len());
        let at: Vec<usize> = (0..)
            .zip(found)
            .filter(|(_, one)| *one == from)
            .map(|(at, _)| at)
            .collect();
        assert!(!at.is_empty());
        for at in at {
            pem.contents[at..at + to.len()].copy_from_slice(to);
        }
        (encode(&pem), key)
    }

    fn with_extension(oid: &[u64], critical: bool) -> (String, Secret) {
        made(|of| {
            let mut extension = CustomExtension::from_oid_content(oid, vec![5, 0]);
            extension.set_criticality(critical);
            of.custom_extensions = vec![extension];
        })
    }

    /// An authority whose name has these attributes, the last numbers of whose types are given.
    fn named(types: [u64; 2]) -> (String, Secret) {
        made(|of| {
            for (number, value) in types.into_iter().zip(["corp", "example"]) {
                let component = vec![0, 9, 2342, 19_200_300, 100, 1, number];
                of.distinguished_name
                    .push(DnType::CustomDnType(component), value);
            }
        })
    }

    #[test]
    fn an_authority_whose_certificates_programs_would_not_accept_is_refused() {
        const P256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
        let [mut other_curve, own] = [P256, P256];
        other_curve[7] = 6;
        let number = || made(|of| of.serial_number = Some(SerialNumber::from_slice(&[0x7f, 1, 2])));
        // DC is 0.9.2342.19200300.100.1.25; rcgen makes no name with two of them.
        let (second, first) = ([0x2c, 0x64, 1, 26], [0x2c, 0x64, 1, 25]);
        for (what, brought) in [
            ("", named([25, 26])),
            ("each attribute", patched(named([25, 26]), &second, &first)),
            ("", number()),
            ("negative", patched(number(), &[2, 3, 0x7f], &[2, 3, 0xff])),
            ("P-256", patched(made(|_| {}), &own, &other_curve)),
            ("", with_extension(&[1, 3, 6, 1, 4, 1, 311, 21, 1], false)),
            (
                "1.3.6.1.4.1.311.21.1 is critical",
                with_extension(&[1, 3, 6, 1, 4, 1, 311, 21, 1], true),
            ),
        ] {
            let why = why("kubernetes-ca", &brought);
            assert!(
                why.contains(what) && why.is_empty() == what.is_empty(),
                "{what}: {why}"
            );
            // Those that cannot sign are checked too, but for what they would sign.
            let alone = check_brought(&keyset("kubernetes-ca"), &brought.0, None, now());
            assert_eq!(
                alone.is_ok(),
                what.is_empty() || what == "each attribute",
                "{what}"
            );
        }
    }

    #[test]
    fn a_key_of_another_keyset_is_refused() {
        let (certificate, key) = made(|_| {});
        let (mut one, other) = (keyset("kubernetes-ca"), keyset("etcd-clients-ca"));
        let item = check_brought(&one, &certificate, Some(&key), now()).unwrap();
        one.add(item.clone(), now()).unwrap();
        let all = [one.clone(), other.clone()];
        check_own_key(&one, &item, &all).unwrap();
        let again = mint_further(&other, Some(&key), &mut SystemKeys::issuing_at(now())).unwrap();
        for item in [item, again] {
            let refused = check_own_key(&other, &item, &all).unwrap_err();
            assert!(refused.to_string().contains("kubernetes-ca"), "{refused}");
        }
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
