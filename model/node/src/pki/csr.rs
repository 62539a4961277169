//! Certificate signing requests. Only the one PEM form is accepted that all parsers read alike, so that the request that was
//! checked is the one that is signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::IpAddr;
use x509_parser::asn1_rs::Header;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::{ParsedCriAttribute, X509CriAttribute};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----\n";
const END: &str = "-----END CERTIFICATE REQUEST-----\n";
/// Base64 characters per line, as written by Go's `pem.Encode` and the crate `pem`.
const COLUMNS: usize = 64;

/// Why a request is not accepted; the text completes a sentence with the request as subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The text is not the canonical PEM of one request.
    #[error("is not the PEM of one certificate signing request and nothing else")]
    Pem,
    /// The DER is not a request, or has trailing bytes.
    #[error("cannot be read")]
    Unreadable,
    /// The signature does not match the request's own key.
    #[error("is not signed by its own key")]
    Signature,
    /// The request has attributes that parsers interpret differently.
    #[error("has more than one list of extensions, or attributes of another kind")]
    Attributes,
}

/// A request with a valid signature of its own key, as DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest(Vec<u8>);

impl SigningRequest {
    /// Parses PEM. Parsers differ in what they skip: Go's skips a block with trailing text after its first line's dashes or with a
    /// different label in its last line (`encoding/pem`, `Decode`), others accept it. For such a text the API server would sign
    /// another request than the one checked here. So the text must equal what Go's `pem.Encode` writes.
    pub fn from_pem(text: &[u8]) -> Result<Self, Malformed> {
        let der = decode_pem(text).ok_or(Malformed::Pem)?;
        parse_der(&der)?;
        Ok(Self(der))
    }

    /// The DER of the request.
    pub fn der(&self) -> &[u8] {
        &self.0
    }

    pub fn to_x509(&self) -> Result<X509CertificationRequest<'_>, Malformed> {
        parse_der(&self.0)
    }
}

fn decode_pem(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let lines = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let der = STANDARD.decode(lines.replace('\n', "")).ok()?;
    (encode_pem(&der) == text).then_some(der)
}

fn encode_pem(der: &[u8]) -> String {
    let mut text = BEGIN.to_owned();
    for (index, column) in STANDARD.encode(der).chars().enumerate() {
        if index > 0 && index.is_multiple_of(COLUMNS) {
            text.push('\n');
        }
        text.push(column);
    }
    text.push('\n');
    text.push_str(END);
    text
}

fn parse_der(der: &[u8]) -> Result<X509CertificationRequest<'_>, Malformed> {
    let read = X509CertificationRequest::from_der(der);
    let (rest, request) = read.map_err(|_| Malformed::Unreadable)?;
    if !rest.is_empty() {
        return Err(Malformed::Unreadable);
    }
    let attributes = request.certification_request_info.attributes();
    // Go merges the extensions of all lists; x509-parser returns the first list.
    if attributes.len() > 1 || !attributes.iter().all(is_one_list) {
        return Err(Malformed::Attributes);
    }
    request
        .verify_signature()
        .map_err(|_| Malformed::Signature)?;
    Ok(request)
}

/// True if an attribute is exactly one list of extensions. x509-parser returns the first value of a set and ignores the rest.
fn is_one_list(attribute: &X509CriAttribute<'_>) -> bool {
    let kind = attribute.parsed_attribute();
    let whole = Header::from_der(attribute.value)
        .is_ok_and(|(content, header)| header.length().definite().ok() == Some(content.len()));
    whole && matches!(kind, ParsedCriAttribute::ExtensionRequest(_))
}

/// The text of a subject alternative name, as issued certificates name it; `None` for what is neither a DNS name nor an address.
pub fn alternative_name_text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            let address = v4.or_else(|_| v6()).ok()?;
            Some(address.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, PublicKeyData};

    fn new_request(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let params = CertificateParams::new(names).unwrap();
        let key = KeyPair::generate().unwrap();
        params.serialize_request(&key).unwrap().pem().unwrap()
    }

    #[test]
    fn a_request_as_kubelet_writes_it_is_read() {
        let text = new_request(&["a.example.com"]);
        let read = SigningRequest::from_pem(text.as_bytes()).unwrap();
        assert_eq!(encode_pem(read.der()), text);
        assert!(
            read.to_x509()
                .unwrap()
                .requested_extensions()
                .is_some_and(|all| all.count() == 1)
        );
    }

    #[test]
    fn of_two_requests_in_one_text_none_is_read() {
        let (good, evil) = (
            new_request(&["a.example.com"]),
            new_request(&["kubernetes"]),
        );
        let skipped_by_go = good.replacen("REQUEST-----\n", "REQUEST-----x\n", 1);
        let ended_otherwise = good.replace("END CERTIFICATE REQUEST", "END X");
        for first in [&good, &skipped_by_go, &ended_otherwise] {
            let both = format!("{first}{evil}");
            assert_eq!(
                SigningRequest::from_pem(both.as_bytes()),
                Err(Malformed::Pem),
                "{both}"
            );
        }
    }

    #[test]
    fn nothing_is_passed_over() {
        let text = new_request(&[]);
        let one_line: String = text.replace('\n', "");
        for other in [
            format!(" {text}"),
            format!("\n{text}"),
            format!("{text}\n"),
            format!("{text}x"),
            text.trim_end().to_owned(),
            text.replace('\n', "\r\n"),
            text.replace(" REQUEST", ""),
            text.replace("-----\nM", "-----\nProc-Type: 4\n\nM"),
            one_line,
            String::new(),
        ] {
            let read = SigningRequest::from_pem(other.as_bytes());
            assert_eq!(read, Err(Malformed::Pem), "{other}");
        }
    }

    #[test]
    fn what_stands_behind_the_request_is_refused() {
        let mut der = SigningRequest::from_pem(new_request(&[]).as_bytes())
            .unwrap()
            .0;
        der.push(0);
        let read = SigningRequest::from_pem(encode_pem(&der).as_bytes());
        assert_eq!(read, Err(Malformed::Unreadable));
    }

    /// A request with these attributes (DER, without their `[0]`), signed by its key.
    fn with_attributes(attributes: &[u8]) -> Vec<u8> {
        let key = KeyPair::generate().unwrap();
        let info = [
            &[2, 1, 0, 0x30, 0][..],
            &key.subject_public_key_info(),
            &encode_tagged(0xa0, attributes),
        ];
        let info = encode_tagged(0x30, &info.concat());
        let signature = rcgen::SigningKey::sign(&key, &info).unwrap();
        // ecdsa-with-SHA256.
        let algorithm = [0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
        let bits = encode_tagged(3, &[&[0], &signature[..]].concat());
        encode_tagged(0x30, &[&info, &algorithm[..], &bits].concat())
    }

    fn encode_tagged(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        let length: &[u8] = match content.len() {
            0..128 => &length[1..],
            128..256 => &[0x81, length[1]],
            _ => &[0x82, length[0], length[1]],
        };
        [&[tag], length, content].concat()
    }

    /// `extensionRequest` with these values.
    fn extension_attribute(values: &[u8]) -> Vec<u8> {
        let oid = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];
        encode_tagged(0x30, &[&oid[..], &encode_tagged(0x31, values)].concat())
    }

    /// A list with one SAN: this name.
    fn san_list(name: &str) -> Vec<u8> {
        let names = encode_tagged(0x30, &encode_tagged(0x82, name.as_bytes()));
        let extension = [&[6, 3, 0x55, 0x1d, 0x11], &encode_tagged(4, &names)[..]].concat();
        encode_tagged(0x30, &encode_tagged(0x30, &extension))
    }

    #[test]
    fn one_list_of_extensions_is_read_and_no_second_one() {
        let of = |attributes: &[u8]| {
            let text = encode_pem(&with_attributes(attributes));
            SigningRequest::from_pem(text.as_bytes()).map(drop)
        };
        let (good, evil) = (san_list("a.example.com"), san_list("kubernetes"));
        assert_eq!(of(&[]), Ok(()));
        assert_eq!(of(&extension_attribute(&good)), Ok(()));
        let two_lists = [extension_attribute(&good), extension_attribute(&evil)].concat();
        let two_values = extension_attribute(&[good, evil].concat());
        for attributes in [two_lists, two_values] {
            assert_eq!(of(&attributes), Err(Malformed::Attributes));
        }
    }

    proptest! {
        #[test]
        fn any_other_text_is_refused_or_another_request(at in 0..400_usize, byte: u8, insert: bool) {
            let text = new_request(&["a.example.com"]).into_bytes();
            let mut other = text.clone();
            let at = at % text.len();
            if insert {
                other.insert(at, byte);
            } else {
                other[at] = byte;
            }
            if let Ok(read) = SigningRequest::from_pem(&other) {
                prop_assert_eq!(encode_pem(read.der()).into_bytes(), other);
            }
        }
    }
}
