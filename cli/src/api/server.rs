//! The address of a cluster's API: from its completed spec or, if its names do not resolve here, its load balancer.

use aws_cloud::{CloudClients, balancer_dns_name};
use engine::Failure;
use node::names::api_load_balancer;
use node::ports;
use spec::completed::{ApiEndpoint, CompletedCluster, ResolvedBy};
use url::Url;

/// The address of the API, and the name to verify its certificate against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServer {
    /// `https://HOST[:PORT]`.
    pub url: String,
    /// The host of the URL.
    pub host: String,
    pub port: u16,
    /// The name to expect in the certificate, if it is not the host's.
    pub certified_as: Option<String>,
}

/// Finds the API's address: its DNS name, or the load balancer's if the name is not published or resolves only in the VPC.
/// `None`: the load balancer does not exist yet.
pub async fn server(
    cluster: &CompletedCluster,
    clients: &CloudClients,
    internal: bool,
) -> Result<Option<ApiServer>, Failure> {
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
        return Ok(Some(ApiServer::from_host(host.clone(), port, None)));
    }
    balancer_server(cluster, clients).await
}

/// All addresses of the API, the one of [`server`] first: a name that is published may not resolve here, and a load balancer's
/// name may be reached without it.
pub async fn servers(
    cluster: &CompletedCluster,
    clients: &CloudClients,
) -> Result<Vec<ApiServer>, Failure> {
    let api = &cluster.api;
    let mut all: Vec<ApiServer> = server(cluster, clients, false).await?.into_iter().collect();
    let other = match api.resolved_by {
        ResolvedBy::Everybody => balancer_server(cluster, clients).await?,
        ResolvedBy::Vpc => Some(ApiServer::from_host(
            api.public_name.clone(),
            api.port,
            None,
        )),
        ResolvedBy::Nobody => None,
    };
    all.extend(other);
    Ok(all)
}

async fn balancer_server(
    cluster: &CompletedCluster,
    clients: &CloudClients,
) -> Result<Option<ApiServer>, Failure> {
    let api = &cluster.api;
    let balancer = api_load_balancer(&cluster.name);
    let host = balancer_dns_name(clients, &cluster.name, &balancer).await?;
    // A load balancer's own name is in no certificate of the cluster.
    Ok(host.map(|host| ApiServer::from_host(host, api.port, Some(api.internal_name.clone()))))
}

/// Why `--api-server` is not usable.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is not a URL.
    #[error("it is not a URL")]
    Url(#[from] url::ParseError),
    /// Not `https`, or without a host, or with more than host and port.
    #[error("it must have the form https://HOST[:PORT]")]
    Form,
}

/// The API at an address that the user gives, for example of a tunnel. Unless the host is one of the API's names, the
/// certificate must be valid for the internal name.
pub fn api_server_at(api: &ApiEndpoint, given: &str) -> Result<ApiServer, AddressError> {
    let url = Url::parse(given)?;
    let bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    let host = url.host_str().filter(|_| bare && url.scheme() == "https");
    let host = host.ok_or(AddressError::Form)?;
    let certified = [&api.public_name, &api.internal_name].contains(&&host.to_owned());
    let port = url.port_or_known_default().unwrap_or(ports::API);
    let host = host.trim_matches(['[', ']']).to_owned();
    Ok(ApiServer {
        url: given.trim_end_matches('/').to_owned(),
        host,
        port,
        certified_as: (!certified).then(|| api.internal_name.clone()),
    })
}

impl ApiServer {
    fn from_host(host: String, port: u16, certified_as: Option<String>) -> Self {
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
        let api = CompletedCluster::from_cluster(&spec).api;
        let at = |given: &str| {
            api_server_at(&api, given).map(|one| (one.host, one.port, one.certified_as))
        };
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
