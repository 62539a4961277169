//! Decides which certificate signing requests of kubelets are approved. A serving certificate may name only what EC2 confirms. A
//! client certificate renews the one that the node joined with, and must name the node and nothing else.

use super::caller::is_instance;
use super::subject::is_subject;
use crate::pki::{Malformed, SigningRequest, alternative_name_text};
use std::collections::BTreeSet;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};

/// The group of all nodes in the API.
const NODES: &str = "system:nodes";

/// Limit of a request, bytes. A kubelet's request has a few names. Approval writes the object again, which must not exceed
/// etcd's limit.
const LARGEST: usize = 64 * 1024;

/// A CertificateSigningRequest object of the API.
#[derive(Clone, Copy, Debug)]
pub struct KubeletRequest<'a> {
    /// User who created the object, as authenticated by the API server.
    pub user: &'a str,
    /// Groups of the user.
    pub groups: &'a [String],
    pub usages: &'a [String],
    /// The request itself, PEM.
    pub request: &'a [u8],
}

impl<'a> KubeletRequest<'a> {
    /// The instance id of the node that created the request; the error is the reason why there is none.
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

    /// Parses the request and checks that its subject is the user who created it.
    fn parse_request(&self) -> Result<SigningRequest, String> {
        if self.request.len() > LARGEST {
            return Err(format!("the request has more than {LARGEST} bytes"));
        }
        let request = SigningRequest::from_pem(self.request).map_err(describe_malformed)?;
        if is_subject(&parse_x509(&request)?, self.user, Some(NODES)) {
            return Ok(request);
        }
        Err(format!("the subject is not {} of {NODES}", self.user))
    }

    /// Checks that the usages are `wanted` plus those that TLS needs: the set that Kubernetes' signers accept.
    fn check_usages(&self, wanted: &str) -> Result<(), String> {
        let known = ["digital signature", "key encipherment", wanted];
        let foreign = |usage: &&String| !known.contains(&usage.as_str());
        match self.usages.iter().find(foreign) {
            Some(usage) => Err(format!("the usage {usage:?} is not allowed")),
            None if self.usages.iter().any(|usage| usage == wanted) => Ok(()),
            None => Err(format!("the request is not for {wanted}")),
        }
    }
}

/// Checks a request for a serving certificate against `confirmed`: the names and addresses of the instance according to EC2. The
/// error is the reason for a refusal.
pub fn check_serving(
    asked: &KubeletRequest<'_>,
    confirmed: &BTreeSet<String>,
) -> Result<(), String> {
    let node = asked.instance()?;
    asked.check_usages("server auth")?;
    let request = asked.parse_request()?;
    let names = requested_names(&parse_x509(&request)?)?;
    let foreign = |name: &&String| !confirmed.contains(*name) && name.as_str() != node;
    match names.iter().find(foreign) {
        Some(name) => Err(format!("EC2 does not confirm that {node} has {name}")),
        None if names.is_empty() => Err("the request names nothing".to_owned()),
        None => Ok(()),
    }
}

/// Checks a request for a client certificate: its name must be that of the certificate that authenticated it. Kubernetes' own
/// approver applies the same rule (`isNodeClientCert`) without EC2. The error is the reason for a refusal.
pub fn check_client(asked: &KubeletRequest<'_>) -> Result<(), String> {
    asked.instance()?;
    asked.check_usages("client auth")?;
    let request = asked.parse_request()?;
    let request = parse_x509(&request)?;
    let mut extensions = request.requested_extensions().into_iter().flatten();
    match extensions.next() {
        Some(extension) => Err(format!("the request has an extension: {extension:?}")),
        None => Ok(()),
    }
}

fn describe_malformed(why: Malformed) -> String {
    format!("the request {why}")
}

fn parse_x509(request: &SigningRequest) -> Result<X509CertificationRequest<'_>, String> {
    request.to_x509().map_err(describe_malformed)
}

/// All names and addresses of a request; fails on duplicates and unexpected extensions.
fn requested_names(request: &X509CertificationRequest<'_>) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for extension in request.requested_extensions().into_iter().flatten() {
        match extension {
            ParsedExtension::SubjectAlternativeName(all) => {
                for name in &all.general_names {
                    let name = name_text(name)?;
                    if names.contains(&name) {
                        return Err(format!("the request names {name} twice"));
                    }
                    names.insert(name);
                }
            }
            // The signer derives these from the usages, which were checked.
            ParsedExtension::KeyUsage(_) | ParsedExtension::ExtendedKeyUsage(_) => {}
            other => {
                return Err(format!(
                    "the request has an unexpected extension: {other:?}"
                ));
            }
        }
    }
    Ok(names)
}

fn name_text(name: &GeneralName<'_>) -> Result<String, String> {
    alternative_name_text(name).ok_or_else(|| format!("{name} is neither a name nor an address"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{Leaf, SystemKeys, Usage};
    use rcgen::{CertificateParams, DnType, KeyPair};

    const NODE: &str = "i-0123456789abcdef0";

    fn request_pem(common_name: &str, names: &[&str]) -> Vec<u8> {
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

    fn confirmed_names() -> BTreeSet<String> {
        [
            "10.0.0.1",
            "fd00::1",
            "i-0123456789abcdef0.eu-west-1.compute.internal",
        ]
        .map(str::to_owned)
        .into()
    }

    fn check_serving_request(user: &str, usages: &[&str], request: &[u8]) -> Result<(), String> {
        let words = |all: &[&str]| -> Vec<String> { all.iter().map(ToString::to_string).collect() };
        let groups = words(&["system:nodes", "system:authenticated"]);
        check_serving(
            &KubeletRequest {
                user,
                groups: &groups,
                usages: &words(usages),
                request,
            },
            &confirmed_names(),
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
        let good = request_pem(&user, &[]);
        assert_eq!(check_renewal(&user, CLIENT, &good), Ok(()));
        let rsa = ["digital signature", "key encipherment", "client auth"];
        assert_eq!(check_renewal(&user, &rsa, &good), Ok(()));
        let refused = [
            check_renewal(other, CLIENT, &good),
            check_renewal("system:node:a", CLIENT, &request_pem("system:node:a", &[])),
            check_renewal("protokube", CLIENT, &request_pem("protokube", &[])),
            check_renewal(&user, SERVING, &good),
            check_renewal(&user, &["client auth", "server auth"], &good),
            check_renewal(&user, CLIENT, &request_pem(&user, &["10.0.0.1"])),
            check_renewal(&user, CLIENT, &request_pem(other, &[])),
        ];
        for result in &refused {
            assert!(result.is_err(), "{refused:?}");
        }
    }

    #[test]
    fn a_request_that_the_api_server_reads_otherwise_is_left_alone() {
        let user = format!("system:node:{NODE}");
        let good = String::from_utf8(request_pem(&user, &["10.0.0.1"])).unwrap();
        let evil = String::from_utf8(request_pem(&user, &["kubernetes.default.svc"])).unwrap();
        // Go's parser skips either first block.
        for first in [
            good.replacen("REQUEST-----\n", "REQUEST-----x\n", 1),
            good.replace("END CERTIFICATE REQUEST", "END X"),
        ] {
            let both = format!("{first}{evil}");
            assert!(
                check_serving_request(&user, SERVING, both.as_bytes()).is_err(),
                "{both}"
            );
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
        assert_eq!(
            check_serving_request(&user, SERVING, &request_pem(&user, &names)),
            Ok(())
        );
        let usages = ["key encipherment", "digital signature", "server auth"];
        assert_eq!(
            check_serving_request(&user, &usages, &request_pem(&user, &["10.0.0.1"])),
            Ok(())
        );
    }

    #[test]
    fn everything_else_is_left_alone() {
        let user = format!("system:node:{NODE}");
        let other = "system:node:i-0123456789abcdef1";
        let good = request_pem(&user, &["10.0.0.1"]);
        let refused = [
            check_serving_request(
                &user,
                SERVING,
                &request_pem(&user, &["10.0.0.1", "10.0.0.2"]),
            ),
            check_serving_request(&user, SERVING, &request_pem(&user, &["kubernetes.default"])),
            check_serving_request(&user, SERVING, &request_pem(&user, &["*.compute.internal"])),
            check_serving_request(&user, SERVING, &request_pem(&user, &[])),
            check_serving_request(
                &user,
                SERVING,
                &request_pem(&user, &["10.0.0.1", NODE, NODE]),
            ),
            check_serving_request(&user, SERVING, &request_pem(other, &["10.0.0.1"])),
            check_serving_request(other, SERVING, &good),
            check_serving_request("system:serviceaccount:a:b", SERVING, &good),
            check_serving_request(&user, &["client auth"], &good),
            check_serving_request(&user, &["server auth", "client auth"], &good),
            check_serving_request(&user, &["digital signature"], &good),
            check_serving_request(&user, SERVING, b"no request"),
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
        assert!(check_serving(&outside, &confirmed_names()).is_err());
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
                    request: &request_pem(&user, names),
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
        let mut keys = SystemKeys::issuing_at(time::OffsetDateTime::UNIX_EPOCH);
        let (request, _) = crate::pki::create_request(&leaf, &mut keys).unwrap();
        assert!(check_serving_request(&user, SERVING, request.as_bytes()).is_err());
    }
}
