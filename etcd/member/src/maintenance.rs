//! Changes that the local etcd makes when it is asked through its JSON gateway: another leader, a smaller database, an alarm less.

use super::EtcdGateway;
use super::gateway::{Number, Signed};
use anyhow::{Context, bail};
use etcd_rules::{OtherMember, RunningMember};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::time::Duration;

/// Timeout of a change of leader: etcd itself gives up after an election timeout.
const MOVE_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a defragmentation, which copies the whole database.
pub const DEFRAGMENT_TIMEOUT: Duration = Duration::from_mins(5);

/// Timeout of a compaction, which deletes old revisions in small steps, and of a hash, which reads all keys.
const SCAN_TIMEOUT: Duration = Duration::from_mins(2);

/// Timeout of a change of alarms.
const ALARM_TIMEOUT: Duration = Duration::from_secs(15);

/// etcd's message for a revision that is compacted already.
pub(crate) const COMPACTED: &str = "required revision has been compacted";

/// The hash of a member's keys at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataHash {
    /// Name of the member in etcd.
    pub member: String,
    /// The hash. It depends on which revisions are compacted.
    pub hash: u64,
    /// Revision up to which the member has compacted its keys; -1: none is.
    pub compacted: i64,
}

/// Maintenance of the local member and its cluster, as a trait that tests replace.
pub trait EtcdMaintenance: Send + Sync + 'static {
    /// What the member says about itself and its cluster.
    fn describe_member(&self) -> impl Future<Output = anyhow::Result<RunningMember>> + Send;

    /// What the other members in this member's list say about themselves.
    fn describe_others(&self, own: &RunningMember)
    -> impl Future<Output = Vec<OtherMember>> + Send;

    /// Makes the member with this id (hex) the leader, and returns when it leads. Only the leader can do that.
    fn move_leader(&self, id: &str) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Defragments the database of the member.
    fn defragment(&self) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Compacts the keys of the cluster up to a revision. Returns when the local member has deleted them.
    fn compact(&self, revision: u64) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Disarms an alarm of the cluster (`NOSPACE`, `CORRUPT`), for whichever members it was raised.
    fn disarm(&self, alarm: &str) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// The hash of every member's keys at a revision that all have.
    fn hash_data(
        &self,
        own: &RunningMember,
        revision: u64,
    ) -> impl Future<Output = anyhow::Result<Vec<DataHash>>> + Send;
}

impl EtcdMaintenance for EtcdGateway {
    async fn describe_member(&self) -> anyhow::Result<RunningMember> {
        Self::describe_member(self).await
    }

    async fn describe_others(&self, own: &RunningMember) -> Vec<OtherMember> {
        let others = own.members.iter().filter(|listed| listed.id != own.id);
        let asked = others.map(|listed| async {
            let says = self.of_member(&listed.name).describe_member().await;
            OtherMember {
                listed: listed.clone(),
                says: says.map_err(|error| format!("{error:#}")),
            }
        });
        futures::future::join_all(asked).await
    }

    async fn move_leader(&self, id: &str) -> anyhow::Result<()> {
        let body = transfer_request(id)?;
        self.request_change("maintenance/transfer-leadership", body, MOVE_TIMEOUT)
            .await
    }

    async fn defragment(&self) -> anyhow::Result<()> {
        let (method, body) = ("maintenance/defragment", "{}".to_owned());
        self.request_change(method, body, DEFRAGMENT_TIMEOUT).await
    }

    async fn compact(&self, revision: u64) -> anyhow::Result<()> {
        let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
        let changed = self
            .request_change("kv/compaction", body, SCAN_TIMEOUT)
            .await;
        match changed {
            Err(error) if format!("{error:#}").contains(COMPACTED) => Ok(()),
            other => other,
        }
    }

    async fn disarm(&self, alarm: &str) -> anyhow::Result<()> {
        const METHOD: &str = "maintenance/alarm";
        let all: AlarmsReply = self.request(METHOD, r#"{"action":"GET"}"#.into()).await?;
        for raised in all.alarms.iter().filter(|one| one.alarm == alarm) {
            let Number(id) = raised.member;
            let body = format!(r#"{{"action":"DEACTIVATE","memberID":"{id}","alarm":"{alarm}"}}"#);
            self.request_change(METHOD, body, ALARM_TIMEOUT).await?;
        }
        Ok(())
    }

    async fn hash_data(&self, own: &RunningMember, revision: u64) -> anyhow::Result<Vec<DataHash>> {
        let body = format!(r#"{{"revision":"{revision}"}}"#);
        let mut hashes = Vec::new();
        for listed in &own.members {
            let gateway = match listed.id == own.id {
                true => self.clone(),
                false => self.of_member(&listed.name),
            };
            let method = "maintenance/hashkv";
            let bytes = gateway.request_bytes(method, body.clone(), SCAN_TIMEOUT);
            let reply: HashReply = serde_json::from_slice(&bytes.await?)?;
            let Signed(compacted) = reply.compacted;
            hashes.push(DataHash {
                member: listed.name.clone(),
                hash: reply.hash,
                compacted,
            });
        }
        Ok(hashes)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AlarmsReply {
    pub(super) alarms: Vec<AlarmReply>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AlarmReply {
    #[serde(rename = "memberID")]
    pub(super) member: Number,
    pub(super) alarm: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HashReply {
    /// 32 bits, hence a number.
    hash: u64,
    #[serde(rename = "compact_revision")]
    compacted: Signed,
}

impl EtcdGateway {
    /// Calls a method that changes something. The answer does not matter.
    async fn request_change(
        &self,
        method: &str,
        body: String,
        timeout: Duration,
    ) -> anyhow::Result<()> {
        self.request_bytes(method, body, timeout).await.map(drop)
    }

    /// Like [`Self::request`], for a method that takes its time.
    pub(crate) async fn request_slowly<T: DeserializeOwned>(
        &self,
        method: &str,
        body: String,
        timeout: Duration,
    ) -> anyhow::Result<T> {
        let bytes = self.request_bytes(method, body, timeout).await?;
        serde_json::from_slice(&bytes).with_context(|| format!("etcd's answer to {method}"))
    }

    /// Calls a method that answers bit by bit.
    pub(crate) async fn begin_request(
        &self,
        method: &str,
        body: String,
        timeout: Duration,
    ) -> anyhow::Result<reqwest::Response> {
        let url = format!("https://{}:{}/v3/{method}", self.name, self.port);
        let request = self.build_client()?.post(&url).body(body).timeout(timeout);
        let answer = request.send().await;
        let answer = answer.with_context(|| format!("etcd does not answer at {url}"))?;
        let status = answer.status();
        if !status.is_success() {
            let bytes = answer.bytes().await?;
            bail!("{url} returned {status}: {}", error_message(&bytes));
        }
        Ok(answer)
    }

    /// Calls a method that takes its time. An error has etcd's message.
    async fn request_bytes(
        &self,
        method: &str,
        body: String,
        timeout: Duration,
    ) -> anyhow::Result<Vec<u8>> {
        let url = format!("https://{}:{}/v3/{method}", self.name, self.port);
        let client = self.build_client()?;
        let answered = async {
            let request = client.post(&url).body(body).timeout(timeout);
            let answer = request.send().await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        };
        let (status, bytes) = answered
            .await
            .with_context(|| format!("etcd does not answer at {url}"))?;
        if !status.is_success() {
            bail!("{url} returned {status}: {}", error_message(&bytes));
        }
        Ok(bytes.to_vec())
    }
}

/// A request of protocol buffers as JSON: a 64-bit number is a text.
fn transfer_request(id: &str) -> anyhow::Result<String> {
    let number = u64::from_str_radix(id, 16);
    let number = number.with_context(|| format!("{id:?} is not the id of a member"))?;
    Ok(format!(r#"{{"targetID":"{number}"}}"#))
}

/// The message in an error of the gateway: `{"code":9,"message":"etcdserver: not leader"}`.
fn error_message(bytes: &[u8]) -> String {
    #[derive(Deserialize)]
    struct ErrorReply {
        message: String,
    }
    match serde_json::from_slice::<ErrorReply>(bytes) {
        Ok(reply) => reply.message,
        Err(_) => String::from_utf8_lossy(bytes).trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hex_to_people_and_decimal_text_to_the_gateway() {
        assert_eq!(
            transfer_request("8e9e05c52164694d").unwrap(),
            r#"{"targetID":"10276657743932975437"}"#
        );
        assert!(transfer_request("etcd-b").is_err());
    }

    #[test]
    fn members_that_were_never_compacted_can_be_compared() {
        // Answer of etcd 3.6: of a store without compactions it says -1.
        let text = r#"{"header":{"revision":"7"},"hash":3125,"compact_revision":"-1"}"#;
        let HashReply { hash, compacted } = serde_json::from_str(text).unwrap();
        assert_eq!((hash, compacted.0), (3125, -1));
    }

    #[test]
    fn the_message_of_an_error_is_etcds() {
        let reply = br#"{"code":9,"message":"etcdserver: not leader"}"#;
        assert_eq!(error_message(reply), "etcdserver: not leader");
        assert_eq!(error_message(b"404 page not found\n"), "404 page not found");
    }
}
