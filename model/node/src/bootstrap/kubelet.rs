//! Certificates that kubelets ask for through the API: which requests are approved. A serving certificate must name only what
//! EC2 confirms; a client certificate, which renews the one that the Node joined with, names the Node and nothing else.

use super::caller::is_instance;
use super::subject::is_subject;
use crate::pki::{Malformed, SigningRequest};
use std::collections::BTreeSet;
use std::net::IpAddr;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};

/// The group of all Nodes.
const NODES: &str = "system:nodes";

/// A larger request is not looked into, bytes: what a kubelet asks for has a few names. What is approved is written once more,
/// and must not be larger than etcd takes.
const LARGEST: usize = 64 * 1024;

/// What a certificate signing request in the API says.
#[derive(Clone, Copy, Debug)]
pub struct KubeletRequest<'a> {
    /// Who made it, as the API server authenticated it.
    pub user: &'a str,
    /// Its groups.
    pub groups: &'a [String],
    /// Usages.
    pub usages: &'a [String],
    /// PEM.
    pub request: &'a [u8],
}

impl<'a> KubeletRequest<'a> {
    /// The instance whose Node made it; the error says why there is none.
    pub fn instance(&self) -> Result<&'a str, String> {
        let node = self.user.strip_prefix("system:node:").unwrap_or_default();
        if !is_instance(node) {
            return Err(format!("{:?} is not the Node of an instance", self.user));
        }
        if !self.groups.iter().any(|group| group == NODES) {
            return Err(format!("{} is not in {NODES}", self.user));
        }
        Ok(node)
    }

    /// The request itself: as it is usually written, in the name of who made it.
    fn read(&self) -> Result<SigningRequest, String> {
        if self.request.len() > LARGEST {
            return Err(format!("the request has more than {LARGEST} bytes"));
        }
        let request = SigningRequest::read(self.request).map_err(malformed)?;
        if is_subject(&parsed(&request)?, self.user, Some(NODES)) {
            return Ok(request);
        }
        Err(format!("the subject is not {} of {NODES}", self.user))
    }

    /// That its usages are `wanted` and what TLS needs for it: those that Kubernetes' signers take.
    fn check_usages(&self, wanted: &str) -> Result<(), String> {
        let known = ["digital signature", "key encipherment", wanted];
        let foreign = |usage: &&String| !known.contains(&usage.as_str());
        match self.usages.iter().find(foreign) {
            Some(usage) => Err(format!("{usage:?} is no usage of such a certificate")),
            None if self.usages.iter().any(|usage| usage == wanted) => Ok(()),
            None => Err(format!("the request is not for {wanted}")),
        }
    }
}

/// Checks a request for a serving certificate against the names and addresses that EC2 says its instance has; the error says
/// what is wrong.
pub fn check_serving(
    asked: &KubeletRequest<'_>,
    confirmed: &BTreeSet<String>,
) -> Result<(), String> {
    let node = asked.instance()?;
    asked.check_usages("server auth")?;
    let request = asked.read()?;
    let names = names(&parsed(&request)?)?;
    let foreign = |name: &&String| !confirmed.contains(*name) && name.as_str() != node;
    match names.iter().find(foreign) {
        Some(name) => Err(format!("EC2 does not say that {node} has {name}")),
        None if names.is_empty() => Err("the request names nothing".to_owned()),
        None => Ok(()),
    }
}

/// Checks a request for a client certificate, whose name is that of the certificate it was made with; the error says what is
/// wrong. Kubernetes' own approval asks the same of it (`isNodeClientCert`), and nothing of EC2.
pub fn check_client(asked: &KubeletRequest<'_>) -> Result<(), String> {
    asked.instance()?;
    asked.check_usages("client auth")?;
    let request = asked.read()?;
    let request = parsed(&request)?;
    let mut extensions = request.requested_extensions().into_iter().flatten();
    match extensions.next() {
        Some(extension) => Err(format!("the request has an extension: {extension:?}")),
        None => Ok(()),
    }
}

fn malformed(why: Malformed) -> String {
    format!("the request {why}")
}

fn parsed(request: &SigningRequest) -> Result<X509CertificationRequest<'_>, String> {
    request.parsed().map_err(malformed)
}

/// Every name and address that a request wants, each once.
fn names(request: &X509CertificationRequest<'_>) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for extension in request.requested_extensions().into_iter().flatten() {
        match extension {
            ParsedExtension::SubjectAlternativeName(all) => {
                for name in &all.general_names {
                    let name = text(name)?;
                    if names.contains(&name) {
                        return Err(format!("the request names {name} twice"));
                    }
                    names.insert(name);
                }
            }
            // What the signer makes of these, the usages say; they were checked.
            ParsedExtension::KeyUsage(_) | ParsedExtension::ExtendedKeyUsage(_) => {}
            other => return Err(format!("the request has an extension too many: {other:?}")),
        }
    }
    Ok(names)
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
            &KubeletRequest {
                user,
                groups: &groups,
                usages: &words(usages),
                request,
            },
            &confirmed(),
        )
    }

    const SERVING: &[&str] = &["digital signature", "server auth"];
    const CLIENT: &[&str] = &["digital signature", "client auth"];

    fn check_renewal(user: &str, usages: &[&str], request: &[u8]) -> Result<(), String> {
        check_client(&KubeletRequest {
            user,
            groups: &[NODES.to_owned()],
            usages: &usages.iter().map(ToString::to_string).collect::<Vec<_>>(),
            request,
        })
    }

    #[test]
    fn a_node_renews_its_own_client_certificate_and_asks_for_nothing_else_in_it() {
        let user = format!("system:node:{NODE}");
        let other = "system:node:i-0123456789abcdef1";
        let good = csr(&user, &[]);
        assert_eq!(check_renewal(&user, CLIENT, &good), Ok(()));
        let rsa = ["digital signature", "key encipherment", "client auth"];
        assert_eq!(check_renewal(&user, &rsa, &good), Ok(()));
        let refused = [
            check_renewal(other, CLIENT, &good),
            check_renewal("system:node:a", CLIENT, &csr("system:node:a", &[])),
            check_renewal("protokube", CLIENT, &csr("protokube", &[])),
            check_renewal(&user, SERVING, &good),
            check_renewal(&user, &["client auth", "server auth"], &good),
            check_renewal(&user, CLIENT, &csr(&user, &["10.0.0.1"])),
            check_renewal(&user, CLIENT, &csr(other, &[])),
        ];
        for result in &refused {
            assert!(result.is_err(), "{refused:?}");
        }
    }

    #[test]
    fn a_request_that_the_api_server_reads_otherwise_is_left_alone() {
        let user = format!("system:node:{NODE}");
        let good = String::from_utf8(csr(&user, &["10.0.0.1"])).unwrap();
        let evil = String::from_utf8(csr(&user, &["kubernetes.default.svc"])).unwrap();
        // Go's reader passes over either first block.
        for first in [
            good.replacen("REQUEST-----\n", "REQUEST-----x\n", 1),
            good.replace("END CERTIFICATE REQUEST", "END X"),
        ] {
            let both = format!("{first}{evil}");
            assert!(check(&user, SERVING, both.as_bytes()).is_err(), "{both}");
        }
    }

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
            check(&user, SERVING, &csr(&user, &["10.0.0.1", NODE, NODE])),
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
        let outside = KubeletRequest {
            user: &user,
            groups: &[],
            usages: &SERVING.iter().map(ToString::to_string).collect::<Vec<_>>(),
            request: &good,
        };
        assert!(check_serving(&outside, &confirmed()).is_err());
    }

    #[test]
    fn an_inflated_request_is_left_alone_whatever_it_names() {
        let user = format!("system:node:{NODE}");
        let addresses: Vec<String> = (0..10_000)
            .map(|number| std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).to_string())
            .collect();
        let names: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let ask = |names: &[&str]| {
            check_serving(
                &KubeletRequest {
                    user: &user,
                    groups: &[NODES.to_owned()],
                    usages: &["server auth".to_owned()],
                    request: &csr(&user, names),
                },
                &addresses.iter().cloned().collect(),
            )
        };
        assert_eq!(ask(&names[..100]), Ok(()));
        assert!(ask(&names).unwrap_err().contains("more than 65536 bytes"));
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
