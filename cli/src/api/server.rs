//! Where a cluster's API answers, from its completed spec and, where its names are not to be had, from its load balancer.

use aws_cloud::{CloudClients, balancer_dns_name};
use engine::Failure;
use node::names::{api_load_balancer, dns, load_balancer};
use spec::api::{Cluster, DnsType, LoadBalancerType};
use url::Url;

/// Where the API answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `https://HOST[:PORT]`.
    pub url: String,
    /// The host in it.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The name in its certificate, where that is not the host's.
    pub certified_as: Option<String>,
}

/// The API's address: its name in DNS, or its load balancer's where names are published nowhere, or for the VPC only. `None`:
/// there is no such balancer (yet). `spec` is the completed spec.
pub async fn server(
    spec: &Cluster,
    clients: &CloudClients,
    internal: bool,
) -> Result<Option<Server>, Failure> {
    let names = Names::of(spec);
    let named = match names.seen_by {
        Seen::Everybody => true,
        Seen::Vpc => internal,
        Seen::Nobody => false,
    };
    if named {
        let host = if internal {
            names.internal
        } else {
            names.public
        };
        let port = if internal { HTTPS } else { names.port };
        return Ok(Some(Server::at(host, port, None)));
    }
    let name = api_load_balancer(spec.name());
    let aws_name = load_balancer(&name);
    let stem = aws_name
        .rsplit_once('-')
        .map_or(aws_name.as_str(), |(stem, _)| stem);
    let host = balancer_dns_name(clients, spec.name(), &name, stem).await?;
    // A balancer's own name is in no certificate of the cluster's.
    Ok(host.map(|host| Server::at(host, names.port, Some(names.internal))))
}

/// What is no address of an API.
#[derive(Debug, thiserror::Error)]
pub enum WrongAddress {
    /// No URL.
    #[error("it is no URL")]
    Url(#[from] url::ParseError),
    /// Not `https`, or without a host, or with more than host and port.
    #[error("it has to be https://HOST[:PORT] and no more")]
    Form,
}

/// The API at an address of the user's: a tunnel's, say. Unless that is one of the API's names, its certificate has to
/// be that of the internal one.
pub fn server_at(spec: &Cluster, given: &str) -> Result<Server, WrongAddress> {
    let url = Url::parse(given)?;
    let bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    let host = url.host_str().filter(|_| bare && url.scheme() == "https");
    let host = host.ok_or(WrongAddress::Form)?;
    let names = Names::of(spec);
    let certified = [&names.public, &names.internal].contains(&&host.to_owned());
    let port = url.port_or_known_default().unwrap_or(HTTPS);
    let host = host.trim_matches(['[', ']']).to_owned();
    Ok(Server {
        url: given.trim_end_matches('/').to_owned(),
        host,
        port,
        certified_as: (!certified).then_some(names.internal),
    })
}

const HTTPS: u16 = 443;

/// With a certificate of the user's on 443, client certificates are understood on 8443 only.
const BESIDE_USERS_CERTIFICATE: u16 = 8443;

/// Who can look up the API's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nobody,
    /// The names are in a private zone, and a balancer that is no internal one says that operators are elsewhere. kOps' rule.
    Vpc,
    /// Everybody who is to reach the API.
    Everybody,
}

struct Names {
    seen_by: Seen,
    public: String,
    internal: String,
    port: u16,
}

impl Names {
    fn of(spec: &Cluster) -> Self {
        let name = spec.name();
        let spec = &spec.spec;
        let dns = spec.topology.as_ref().and_then(|one| one.dns.as_ref());
        let balancer = spec.api.as_ref().and_then(|api| api.load_balancer.as_ref());
        let faces_all = balancer.is_some_and(|one| one.type_ != Some(LoadBalancerType::Internal));
        let tls = balancer.is_some_and(|balancer| balancer.ssl_certificate.is_some());
        let or = |said: &Option<String>, usual: String| said.clone().unwrap_or(usual);
        Self {
            seen_by: match dns.and_then(|dns| dns.type_) {
                Some(DnsType::None) => Seen::Nobody,
                Some(DnsType::Private) if faces_all => Seen::Vpc,
                _ => Seen::Everybody,
            },
            public: or(&spec.master_public_name, dns::api(name)),
            internal: or(&spec.master_internal_name, dns::api_internal(name)),
            port: if tls { BESIDE_USERS_CERTIFICATE } else { HTTPS },
        }
    }
}

impl Server {
    fn at(host: String, port: u16, certified_as: Option<String>) -> Self {
        let url = match port {
            HTTPS => format!("https://{host}"),
            port => format!("https://{host}:{port}"),
        };
        Self {
            url,
            host,
            port,
            certified_as,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::api::api_access::LoadBalancerAccessSpec;
    use spec::api::topology::DNSSpec;

    #[test]
    fn names_of_a_private_zone_are_for_operators_beside_an_internal_balancer_or_none() {
        use DnsType::{None as Nowhere, Private, Public};
        use LoadBalancerType::Internal;
        let internet = LoadBalancerType::Public;
        for (dns, balancer, expected) in [
            (Some(Nowhere), Some(internet), Seen::Nobody),
            (Some(Private), Some(internet), Seen::Vpc),
            (Some(Private), Some(Internal), Seen::Everybody),
            (Some(Private), None, Seen::Everybody),
            (Some(Public), Some(internet), Seen::Everybody),
            (None, None, Seen::Everybody),
        ] {
            let mut cluster = Cluster::default();
            let topology = cluster.spec.topology.get_or_insert_default();
            topology.dns = dns.map(|type_| DNSSpec { type_: Some(type_) });
            cluster.spec.api.get_or_insert_default().load_balancer =
                balancer.map(|type_| LoadBalancerAccessSpec {
                    type_: Some(type_),
                    ..LoadBalancerAccessSpec::default()
                });
            let seen_by = Names::of(&cluster).seen_by;
            assert_eq!(seen_by, expected, "{dns:?} {balancer:?}");
        }
    }

    #[test]
    fn an_address_of_the_users_is_verified_by_the_apis_name() {
        let mut spec = Cluster::default();
        spec.metadata.name = "a.example.com".to_owned();
        let at =
            |given: &str| server_at(&spec, given).map(|one| (one.host, one.port, one.certified_as));
        let internal = Some("api.internal.a.example.com".to_owned());
        assert_eq!(
            at("https://127.0.0.1:6443").unwrap(),
            ("127.0.0.1".to_owned(), 6443, internal.clone())
        );
        assert_eq!(
            at("https://[::1]").unwrap(),
            ("::1".to_owned(), 443, internal)
        );
        let name = "api.a.example.com";
        assert_eq!(
            at(&format!("https://{name}/")).unwrap(),
            (name.to_owned(), 443, None)
        );
        for wrong in [
            "",
            "127.0.0.1:6443",
            "http://h",
            "https://h/path",
            "https://me@h",
        ] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}
