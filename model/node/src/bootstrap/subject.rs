//! Compares the subject of a certificate signing request attribute by attribute. In a single text, one name could look like two
//! attributes.

use x509_parser::certification_request::X509CertificationRequest;

const COMMON_NAME: &str = "2.5.4.3";
const ORGANIZATION: &str = "2.5.4.10";

/// True if the subject consists of this common name and organization only.
pub(super) fn is_subject(
    request: &X509CertificationRequest<'_>,
    common_name: &str,
    organization: Option<&str>,
) -> bool {
    let subject = &request.certification_request_info.subject;
    let said = subject.iter_attributes().map(|attribute| {
        let kind = attribute.attr_type().to_id_string();
        attribute.as_str().ok().map(|text| (kind, text.to_owned()))
    });
    let Some(mut said) = said.collect::<Option<Vec<_>>>() else {
        return false;
    };
    said.sort();
    let pair = |kind: &str, text: &str| (kind.to_owned(), text.to_owned());
    let mut wanted: Vec<_> = organization
        .map(|organization| pair(ORGANIZATION, organization))
        .into_iter()
        .chain([pair(COMMON_NAME, common_name)])
        .collect();
    wanted.sort();
    said == wanted
}
