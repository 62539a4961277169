//! Changes that the local etcd makes when it is asked through its JSON gateway: another leader, a smaller database, an alarm less.

use super::EtcdGateway;
use super::backup::KeyHash;
use super::gateway::{Number, Signed, TIMEOUT};
use anyhow::Context;
use etcd_rules::{OtherMember, RunningMember};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::future::Future;
use std::time::Duration;

/// Timeout of a change of leader: etcd itself gives up after an election timeout.
const MOVE_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a defragmentation, which copies the whole database.
pub const DEFRAGMENT_TIMEOUT: Duration = Duration::from_mins(5);

/// Timeout of a compaction, which deletes old revisions in small steps, and of a hash or a count, which read all keys.
pub(crate) const SCAN_TIMEOUT: Duration = Duration::from_mins(2);

/// Timeout of a change of alarms.
const ALARM_TIMEOUT: Duration = Duration::from_secs(15);

/// etcd's message for a revision that is compacted already.
pub(crate) const COMPACTED: &str = "required revision has been compacted";

/// The hash of a member's keys at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataHash {
    /// Name of the member in etcd.
    pub member: String,
    pub hash: KeyHash,
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
        let asked = others.map(|listed| async move {
            let says = async { self.of_member(&listed.name)?.describe_member().await };
            OtherMember {
                listed: listed.clone(),
                says: says.await.map_err(|error| format!("{error:#}")),
            }
        });
        futures::future::join_all(asked).await
    }

    async fn move_leader(&self, id: &str) -> anyhow::Result<()> {
        let (method, body) = ("maintenance/transfer-leadership", transfer_request(id)?);
        let IgnoredAny = self.request(method, body, MOVE_TIMEOUT).await?;
        Ok(())
    }

    async fn defragment(&self) -> anyhow::Result<()> {
        let (method, body) = ("maintenance/defragment", "{}".to_owned());
        let IgnoredAny = self.request(method, body, DEFRAGMENT_TIMEOUT).await?;
        Ok(())
    }

    async fn compact(&self, revision: u64) -> anyhow::Result<()> {
        let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
        match self.request("kv/compaction", body, SCAN_TIMEOUT).await {
            Ok(IgnoredAny) => Ok(()),
            Err(error) if format!("{error:#}").contains(COMPACTED) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn disarm(&self, alarm: &str) -> anyhow::Result<()> {
        const METHOD: &str = "maintenance/alarm";
        let listed = self.request(METHOD, r#"{"action":"GET"}"#.into(), TIMEOUT);
        let all: AlarmsReply = listed.await?;
        for raised in all.alarms.iter().filter(|one| one.alarm == alarm) {
            let Number(id) = raised.member;
            let body = format!(r#"{{"action":"DEACTIVATE","memberID":"{id}","alarm":"{alarm}"}}"#);
            let IgnoredAny = self.request(METHOD, body, ALARM_TIMEOUT).await?;
        }
        Ok(())
    }

    async fn hash_data(&self, own: &RunningMember, revision: u64) -> anyhow::Result<Vec<DataHash>> {
        let mut hashes = Vec::new();
        for listed in &own.members {
            let gateway = match listed.id == own.id {
                true => self.clone(),
                false => self.of_member(&listed.name)?,
            };
            hashes.push(DataHash {
                member: listed.name.clone(),
                hash: gateway.hash_keys(revision).await?,
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
pub(crate) struct HashReply {
    /// 32 bits, hence a number.
    hash: u64,
    compact_revision: Signed,
}

impl From<HashReply> for KeyHash {
    fn from(reply: HashReply) -> Self {
        let Signed(compacted) = reply.compact_revision;
        Self {
            hash: reply.hash,
            compacted,
        }
    }
}

impl EtcdGateway {
    /// The hash of the member's keys at a revision.
    pub(crate) async fn hash_keys(&self, revision: u64) -> anyhow::Result<KeyHash> {
        let body = format!(r#"{{"revision":"{revision}"}}"#);
        let reply = self.request::<HashReply>("maintenance/hashkv", body, SCAN_TIMEOUT);
        Ok(reply.await?.into())
    }
}

/// A request of protocol buffers as JSON: a 64-bit number is a text.
fn transfer_request(id: &str) -> anyhow::Result<String> {
    let number = u64::from_str_radix(id, 16);
    let number = number.with_context(|| format!("{id:?} is not the id of a member"))?;
    Ok(format!(r#"{{"targetID":"{number}"}}"#))
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
    fn keys_that_were_never_compacted_have_a_negative_revision() {
        // Answer of etcd 3.6.
        let text = r#"{"header":{"revision":"7"},"hash":3125,"compact_revision":"-1"}"#;
        let reply: HashReply = serde_json::from_str(text).unwrap();
        let hash = KeyHash {
            hash: 3125,
            compacted: -1,
        };
        assert_eq!(KeyHash::from(reply), hash);
    }
}
