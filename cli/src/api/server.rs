//! Where a cluster's API answers, from its completed spec and, without DNS, from its load balancer.

use aws::{Clients, balancer_dns_name};
use model::api::{Cluster, DnsType};
use model::engine::Failure;
use model::names::{api_load_balancer, load_balancer};

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

/// The API's address: its name in DNS, or its load balancer's where names are published nowhere. `None`: there is no
/// such balancer (yet). `spec` is the completed spec.
pub async fn server(
    spec: &Cluster,
    clients: &Clients,
    internal: bool,
) -> Result<Option<Server>, Failure> {
    let names = Names::of(spec);
    if names.published {
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

const HTTPS: u16 = 443;

/// With a certificate of the user's on 443, client certificates are understood on 8443 only.
const BESIDE_USERS_CERTIFICATE: u16 = 8443;

struct Names {
    published: bool,
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
        let tls = balancer.is_some_and(|balancer| balancer.ssl_certificate.is_some());
        let or = |said: &Option<String>, usual: String| said.clone().unwrap_or(usual);
        Self {
            published: dns.and_then(|dns| dns.type_) != Some(DnsType::None),
            public: or(&spec.master_public_name, format!("api.{name}")),
            internal: or(&spec.master_internal_name, format!("api.internal.{name}")),
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
