//! Queries the local etcd: health on the loopback address, and the list of members on the peer port.

use crate::certificates::client_builder;
use crate::hosts::{FILE as HOSTS, parse_entries};
use anyhow::{Context, bail, ensure};
use host::Host;
use node::components::EtcdMemberNames;
use node::manifests::{ETCD_ANSWERS, ETCD_SERVES};
use protokube_role::probe::Probe;
use serde::Deserialize;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Response header with the cluster id.
const CLUSTER_ID: &str = "x-etcd-cluster-id";

/// Queries of the local etcd, as a trait that tests replace.
pub trait RunningEtcd: Send + Sync + 'static {
    /// `None` if etcd knows a leader and answers reads, whatever alarms it has; otherwise the reason why not.
    fn find_problem(&self) -> impl Future<Output = Option<String>> + Send;

    /// True if a local etcd runs, whether or not it is healthy.
    fn is_answering(&self) -> impl Future<Output = bool> + Send;

    /// Lists the members of the cluster; `member` is the local one.
    fn list_members(
        &self,
        member: &str,
    ) -> impl Future<Output = anyhow::Result<EtcdMembers>> + Send;
}

/// An etcd cluster as its local member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdMembers {
    /// etcd's id of the cluster, hex.
    pub cluster_id: String,
    /// Names of the members that have started at least once.
    pub named: Vec<String>,
}

/// The local etcd, queried by HTTP.
#[derive(Clone, Debug)]
pub struct EtcdHttp {
    /// Client for health checks.
    pub probe: Probe,
    /// URL of the health port: `http://127.0.0.1:PORT`.
    pub health: String,
    /// Access to the peer port.
    pub peer: EtcdPeer,
}

/// Access to the peer port. Peers are verified by names that resolve to their addresses, so the instance's own address is used.
#[derive(Clone, Debug)]
pub struct EtcdPeer {
    /// Access to certificate files.
    pub host: Host,
    /// Folder with `peer.crt`, `peer.key` and `peers-ca.crt`.
    pub certificates: String,
    /// Names of the members.
    pub names: EtcdMemberNames,
    /// Private address of this instance.
    pub address: IpAddr,
    pub port: u16,
}

impl RunningEtcd for EtcdHttp {
    async fn find_problem(&self) -> Option<String> {
        self.probe
            .find_problem(&format!("{}{ETCD_SERVES}", self.health))
            .await
    }

    async fn is_answering(&self) -> bool {
        let url = format!("{}{ETCD_ANSWERS}", self.health);
        self.probe.fetch_url(&url).await.is_ok()
    }

    async fn list_members(&self, member: &str) -> anyhow::Result<EtcdMembers> {
        let EtcdPeer { port, names, .. } = &self.peer;
        let name = names.member_host(member);
        let url = format!("https://{name}:{port}/members");
        let requested = async {
            self.peer.expect_name(&name)?;
            let client = self.peer.build_client(&name)?;
            let answer = client.get(&url).send().await?.error_for_status()?;
            let id = answer.headers().get(CLUSTER_ID);
            let id = id.and_then(|id| id.to_str().ok()).map(str::to_owned);
            let id = id.context("the response has no cluster id")?;
            parse_members(id, &answer.text().await?)
        };
        requested
            .await
            .with_context(|| format!("could not list the members of etcd ({url})"))
    }
}

impl EtcdPeer {
    /// etcd looks up the names in the certificate of whoever connects, to compare addresses. A name that is not in `/etc/hosts` yet is
    /// looked up in DNS, whose denial the resolver of the VPC would keep for the SOA's negative TTL, 15 minutes in Route 53.
    fn expect_name(&self, name: &str) -> anyhow::Result<()> {
        let text = self.host.read_text(HOSTS)?.unwrap_or_default();
        ensure!(
            parse_entries(&text).contains_key(name),
            "the name is not in {HOSTS} yet"
        );
        Ok(())
    }

    fn build_client(&self, name: &str) -> anyhow::Result<reqwest::Client> {
        let client = client_builder(&self.host, &self.certificates, ("peer", "peers-ca"))?;
        let address = SocketAddr::new(self.address, self.port);
        let client = client.timeout(TIMEOUT).resolve(name, address).build();
        client.context("could not create a client for etcd's peer port")
    }
}

/// Parses the list of members. A member that has not started yet has no client URLs.
fn parse_members(cluster_id: String, text: &str) -> anyhow::Result<EtcdMembers> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ListedMember {
        #[serde(default)]
        name: String,
        #[serde(default, rename = "clientURLs")]
        client_urls: Vec<String>,
    }
    let all: Vec<ListedMember> =
        serde_json::from_str(text).context("the list of members is not JSON")?;
    if all.is_empty() {
        bail!("the list of members is empty");
    }
    let named = all.into_iter().filter(|one| !one.client_urls.is_empty());
    let named = named.map(|one| one.name).collect();
    Ok(EtcdMembers { cluster_id, named })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_count_once_they_came_up() {
        // Response of etcd 3.6 while its second member has not started.
        let text = r#"[{"id":10276657743932975437,"peerURLs":["https://etcd-a.internal.x:2380"],"name":"etcd-a",
            "clientURLs":["https://etcd-a.internal.x:4001"]},{"id":1,"peerURLs":["https://etcd-b.internal.x:2380"],"name":"etcd-b"}]"#;
        let members = parse_members("cdf8".into(), text).unwrap();
        assert_eq!(members.named, ["etcd-a"]);
        assert!(parse_members("cdf8".into(), "[]").is_err());
    }
}
