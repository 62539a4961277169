//! Where a cluster's API answers, from its completed spec and, where its names are not to be had, from its load balancer.

use aws_cloud::{CloudClients, balancer_dns_name};
use engine::Failure;
use node::names::api_load_balancer;
use node::ports;
use spec::completed::{ApiEndpoint, Completed, ResolvedBy};
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
/// there is no such balancer (yet).
pub async fn server(
    cluster: &Completed,
    clients: &CloudClients,
    internal: bool,
) -> Result<Option<Server>, Failure> {
    let api = &cluster.api;
    let named = match api.resolved_by {
        ResolvedBy::Everybody => true,
        ResolvedBy::Vpc => internal,
        ResolvedBy::Nobody => false,
    };
    if named {
        let (host, port) = if internal {
            (&api.internal_name, ports::API)
        } else {
            (&api.public_name, api.port)
        };
        return Ok(Some(Server::at(host.clone(), port, None)));
    }
    let balancer = api_load_balancer(&cluster.name);
    let host = balancer_dns_name(clients, &cluster.name, &balancer).await?;
    // A load balancer's own name is in no certificate of the cluster.
    Ok(host.map(|host| Server::at(host, api.port, Some(api.internal_name.clone()))))
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
pub fn server_at(api: &ApiEndpoint, given: &str) -> Result<Server, WrongAddress> {
    let url = Url::parse(given)?;
    let bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    let host = url.host_str().filter(|_| bare && url.scheme() == "https");
    let host = host.ok_or(WrongAddress::Form)?;
    let certified = [&api.public_name, &api.internal_name].contains(&&host.to_owned());
    let port = url.port_or_known_default().unwrap_or(ports::API);
    let host = host.trim_matches(['[', ']']).to_owned();
    Ok(Server {
        url: given.trim_end_matches('/').to_owned(),
        host,
        port,
        certified_as: (!certified).then(|| api.internal_name.clone()),
    })
}

impl Server {
    fn at(host: String, port: u16, certified_as: Option<String>) -> Self {
        let url = match port {
            ports::API => format!("https://{host}"),
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
    use spec::api::Cluster;

    #[test]
    fn an_address_of_the_users_is_verified_by_the_apis_name() {
        let mut spec = Cluster::default();
        spec.metadata.name = "a.example.com".to_owned();
        let api = Completed::read(&spec).api;
        let at =
            |given: &str| server_at(&api, given).map(|one| (one.host, one.port, one.certified_as));
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
