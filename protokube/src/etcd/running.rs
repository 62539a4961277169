//! The etcd that runs here, as it answers: health and metrics on the loopback address, and who its members are on the peers' port.

use crate::probe::Probe;
use anyhow::{Context, bail};
use host::Host;
use node::components::EtcdMemberNames;
use node::manifests::{ETCD_ALARMS, ETCD_SERVES};
use serde::Deserialize;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A call that takes longer is given up.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The header in which members say their cluster's id.
const CLUSTER_ID: &str = "x-etcd-cluster-id";

/// An etcd that runs, or does not.
pub trait Running: Send + Sync + 'static {
    /// Nothing if it knows a leader and reads are answered, whatever alarms say; else why not.
    fn unhealthy(&self) -> impl Future<Output = Option<String>> + Send;

    /// The alarm that stops writes, if there is one: `NOSPACE`, `CORRUPT`.
    fn alarm(&self) -> impl Future<Output = Option<String>> + Send;

    /// Who its members are.
    fn members(&self, member: &str) -> impl Future<Output = anyhow::Result<Members>> + Send;
}

/// An etcd cluster as one of its members sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// etcd's id of the cluster, hex.
    pub cluster_id: String,
    /// Names of the members that have come up at least once.
    pub named: Vec<String>,
}

/// An etcd of this machine.
#[derive(Clone, Debug)]
pub struct Http {
    /// For health.
    pub probe: Probe,
    /// `http://127.0.0.1:PORT`.
    pub health: String,
    /// For members.
    pub peer: Peer,
}

/// How its peers reach it. They prove who they are by names that lead to their address, so this machine's own address is dialed.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where certificates are read.
    pub host: Host,
    /// Folder of `peer.crt`, `peer.key`, `peers-ca.crt`.
    pub certificates: String,
    /// The members' names.
    pub names: EtcdMemberNames,
    /// This machine's address.
    pub address: IpAddr,
    /// The peers' port.
    pub port: u16,
}

impl Running for Http {
    async fn unhealthy(&self) -> Option<String> {
        self.probe
            .unhealthy(&format!("{}{ETCD_SERVES}", self.health))
            .await
    }

    async fn alarm(&self) -> Option<String> {
        let url = format!("{}{ETCD_ALARMS}", self.health);
        let answer = self.probe.ask(&url).await;
        alarm_in(&answer.ok()?.text)
    }

    async fn members(&self, member: &str) -> anyhow::Result<Members> {
        let Peer { port, names, .. } = &self.peer;
        let name = names.host(member);
        let url = format!("https://{name}:{port}/members");
        let asked = async {
            let client = self.peer.client(&name)?;
            let answer = client.get(&url).send().await?.error_for_status()?;
            let id = answer.headers().get(CLUSTER_ID);
            let id = id.and_then(|id| id.to_str().ok()).map(str::to_owned);
            let id = id.context("the answer says no cluster id")?;
            read_members(id, &answer.text().await?)
        };
        asked
            .await
            .with_context(|| format!("could not ask etcd who its members are ({url})"))
    }
}

impl Peer {
    fn client(&self, name: &str) -> anyhow::Result<reqwest::Client> {
        let file = |file: &str| {
            let path = format!("{}/{file}", self.certificates);
            let text = self.host.read_text(&path)?;
            text.with_context(|| format!("{path} is not there yet: nodeup writes it"))
        };
        let identity = format!("{}{}", file("peer.crt")?, file("peer.key")?);
        let trusted = reqwest::Certificate::from_pem_bundle(file("peers-ca.crt")?.as_bytes())?;
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(TIMEOUT)
            // etcd offers version 2 and answers in version 1 there.
            .http1_only()
            .tls_certs_only(trusted)
            .identity(reqwest::Identity::from_pem(identity.as_bytes())?)
            .resolve(name, SocketAddr::new(self.address, self.port))
            .build();
        client.context("could not make a client of etcd's peers")
    }
}

/// The alarm in an answer such as `{"health":"false","reason":"ALARM NOSPACE"}`.
fn alarm_in(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Health {
        #[serde(default)]
        reason: String,
    }
    let health: Health = serde_json::from_str(text).ok()?;
    health.reason.strip_prefix("ALARM ").map(str::to_owned)
}

/// etcd's answer. A member that has not come up yet has no addresses for clients.
fn read_members(cluster_id: String, text: &str) -> anyhow::Result<Members> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct One {
        #[serde(default)]
        name: String,
        #[serde(default, rename = "clientURLs")]
        client_urls: Vec<String>,
    }
    let all: Vec<One> = serde_json::from_str(text).context("the list of members is not JSON")?;
    if all.is_empty() {
        bail!("the list of members is empty");
    }
    let named = all.into_iter().filter(|one| !one.client_urls.is_empty());
    let named = named.map(|one| one.name).collect();
    Ok(Members { cluster_id, named })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_count_once_they_came_up() {
        // As etcd 3.6 answers while its second member has not started.
        let text = r#"[{"id":10276657743932975437,"peerURLs":["https://etcd-a.internal.x:2380"],"name":"etcd-a",
            "clientURLs":["https://etcd-a.internal.x:4001"]},{"id":1,"peerURLs":["https://etcd-b.internal.x:2380"],"name":"etcd-b"}]"#;
        let members = read_members("cdf8".into(), text).unwrap();
        assert_eq!(members.named, ["etcd-a"]);
        assert!(read_members("cdf8".into(), "[]").is_err());
    }
}
