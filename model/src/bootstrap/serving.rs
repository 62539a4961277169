//! Which serving certificates of kubelets are approved: those whose names and addresses EC2 confirms.

use super::subject::is_subject;
use std::collections::BTreeSet;
use std::net::IpAddr;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

/// The group of all Nodes.
const NODES: &str = "system:nodes";

/// What a certificate signing request in the API says.
#[derive(Clone, Copy, Debug)]
pub struct ServingRequest<'a> {
    /// Who made it, as the API server authenticated it.
    pub user: &'a str,
    /// Its groups.
    pub groups: &'a [String],
    /// Usages.
    pub usages: &'a [String],
    /// PEM.
    pub request: &'a [u8],
}

impl<'a> ServingRequest<'a> {
    /// The instance whose Node made it; the error says why there is none.
    pub fn instance(&self) -> Result<&'a str, String> {
        let node = self.user.strip_prefix("system:node:").unwrap_or_default();
        if !super::caller::is_instance(node) {
            return Err(format!("{:?} is not the Node of an instance", self.user));
        }
        if !self.groups.iter().any(|group| group == NODES) {
            return Err(format!("{} is not in {NODES}", self.user));
        }
        Ok(node)
    }
}

/// Checks a request against the names and addresses that EC2 says its instance has; the error says what is wrong.
pub fn check_serving(
    asked: &ServingRequest<'_>,
    confirmed: &BTreeSet<String>,
) -> Result<(), String> {
    let node = asked.instance()?;
    check_usages(asked.usages)?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(asked.request)
        .map_err(|_| "the request is not PEM".to_owned())?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents)
        .map_err(|_| "the request cannot be read".to_owned())?;
    request
        .verify_signature()
        .map_err(|_| "the request is not signed by its own key".to_owned())?;
    if !is_subject(&request, asked.user, Some(NODES)) {
        return Err(format!("the subject is not {} of {NODES}", asked.user));
    }
    let mut names = 0;
    for extension in request.requested_extensions().into_iter().flatten() {
        match extension {
            ParsedExtension::SubjectAlternativeName(all) => {
                for name in &all.general_names {
                    let name = text(name)?;
                    if !(confirmed.contains(&name) || name == node) {
                        return Err(format!("EC2 does not say that {node} has {name}"));
                    }
                    names += 1;
                }
            }
            // What the signer makes of these, the usages say; they were checked.
            ParsedExtension::KeyUsage(_) | ParsedExtension::ExtendedKeyUsage(_) => {}
            other => return Err(format!("the request has an extension too many: {other:?}")),
        }
    }
    if names == 0 {
        return Err("the request names nothing".to_owned());
    }
    Ok(())
}

/// Those that Kubernetes' signer takes: server authentication and what TLS needs for it.
fn check_usages(usages: &[String]) -> Result<(), String> {
    let known = ["digital signature", "key encipherment", "server auth"];
    let foreign = usages.iter().find(|usage| !known.contains(&usage.as_str()));
    match foreign {
        Some(usage) => Err(format!("{usage:?} is no usage of a serving certificate")),
        None if usages.iter().any(|usage| usage == "server auth") => Ok(()),
        None => Err("the request is not for serving".to_owned()),
    }
}

fn text(name: &GeneralName<'_>) -> Result<String, String> {
    match name {
        GeneralName::DNSName(name) => Ok((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            let address = v4.or_else(|_| v6());
            address.map_or_else(
                |_| Err("an address has a wrong length".to_owned()),
                |address| Ok(address.to_string()),
            )
        }
        other => Err(format!("{other} is neither a name nor an address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{Leaf, SystemKeys, Usage};
    use rcgen::{CertificateParams, DnType, KeyPair};

    const NODE: &str = "i-0123456789abcdef0";

    fn csr(common_name: &str, names: &[&str]) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, NODES);
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let request = params.serialize_request(&key).unwrap();
        request.pem().unwrap().into_bytes()
    }

    fn confirmed() -> BTreeSet<String> {
        [
            "10.0.0.1",
            "fd00::1",
            "i-0123456789abcdef0.eu-west-1.compute.internal",
        ]
        .map(str::to_owned)
        .into()
    }

    fn check(user: &str, usages: &[&str], request: &[u8]) -> Result<(), String> {
        let words = |all: &[&str]| -> Vec<String> { all.iter().map(ToString::to_string).collect() };
        let groups = words(&["system:nodes", "system:authenticated"]);
        check_serving(
            &ServingRequest {
                user,
                groups: &groups,
                usages: &words(usages),
                request,
            },
            &confirmed(),
        )
    }

    const SERVING: &[&str] = &["digital signature", "server auth"];

    #[test]
    fn what_ec2_confirms_is_approved() {
        let user = format!("system:node:{NODE}");
        let names = [
            NODE,
            "i-0123456789abcdef0.eu-west-1.compute.internal",
            "10.0.0.1",
            "fd00::1",
        ];
        assert_eq!(check(&user, SERVING, &csr(&user, &names)), Ok(()));
        let usages = ["key encipherment", "digital signature", "server auth"];
        assert_eq!(check(&user, &usages, &csr(&user, &["10.0.0.1"])), Ok(()));
    }

    #[test]
    fn everything_else_is_left_alone() {
        let user = format!("system:node:{NODE}");
        let other = "system:node:i-0123456789abcdef1";
        let good = csr(&user, &["10.0.0.1"]);
        let refused = [
            check(&user, SERVING, &csr(&user, &["10.0.0.1", "10.0.0.2"])),
            check(&user, SERVING, &csr(&user, &["kubernetes.default"])),
            check(&user, SERVING, &csr(&user, &["*.compute.internal"])),
            check(&user, SERVING, &csr(&user, &[])),
            check(&user, SERVING, &csr(other, &["10.0.0.1"])),
            check(other, SERVING, &good),
            check("system:serviceaccount:a:b", SERVING, &good),
            check(&user, &["client auth"], &good),
            check(&user, &["server auth", "client auth"], &good),
            check(&user, &["digital signature"], &good),
            check(&user, SERVING, b"no request"),
        ];
        for result in &refused {
            assert!(result.is_err(), "{refused:?}");
        }
        let outside = ServingRequest {
            user: &user,
            groups: &[],
            usages: &SERVING.iter().map(ToString::to_string).collect::<Vec<_>>(),
            request: &good,
        };
        assert!(check_serving(&outside, &confirmed()).is_err());
    }

    #[test]
    fn one_name_cannot_pretend_to_be_a_name_and_an_organization() {
        let user = format!("system:node:{NODE}");
        let leaf = Leaf {
            common_name: format!("{user}, O=system:nodes"),
            organization: None,
            usage: Usage::Server,
            names: Vec::new(),
            validity: time::Duration::DAY,
        };
        let mut keys = SystemKeys::at(time::OffsetDateTime::UNIX_EPOCH);
        let (request, _) = crate::pki::request(&leaf, &mut keys).unwrap();
        assert!(check(&user, SERVING, request.as_bytes()).is_err());
    }
}
