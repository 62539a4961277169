//! Asks a scratch etcd through its JSON gateway, on a socket in the scratch folder: its network is its own.

use super::{EtcdContainers, REPLAY_TIME};
use crate::backup::KeyHash;
use crate::gateway::{CountReply, Number, ReplyHeader};
use crate::maintenance::{AlarmReply, AlarmsReply, HashReply};
use crate::unix_http::{Refused, request};
use anyhow::{Context, anyhow, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Timeout of a request: a count and a hash read all keys, and a transaction may have 48 MiB.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Keys whose values are read at once. All of them are in the memory of etcd and of this process, several times, and one may have a megabyte.
const PAGE: usize = 25;

/// The method that lists alarms and disarms them.
const ALARMS: &str = "maintenance/alarm";

/// Keys from the first one on, and before the second one.
pub(crate) type KeyRange<'a> = (&'a str, &'a str);

/// All keys, as etcd says it.
pub(crate) const ALL_KEYS: KeyRange<'static> = ("\0", "\0");

/// The JSON gateway of a scratch etcd that answers.
pub(crate) struct ScratchGateway<'a> {
    containers: &'a EtcdContainers<'a>,
    /// True if etcd had alarms when it started. They are in its database no more.
    pub(crate) had_alarms: bool,
}

/// What an etcd holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) keys: u64,
    /// The newest, also if the keys were counted at an older one.
    pub(crate) revision: u64,
}

impl Content {
    pub(crate) fn text(self) -> String {
        format!("{} keys at revision {}", self.keys, self.revision)
    }
}

/// No `Debug`: the values may be secrets.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ValuesReply {
    kvs: Vec<KeyValue>,
}

/// Both are base64.
#[derive(Default, Deserialize)]
#[serde(default)]
struct KeyValue {
    key: String,
    value: String,
}

impl<'a> ScratchGateway<'a> {
    /// Waits until the scratch etcd answers, and disarms the alarms of the old cluster, which would refuse changes.
    pub(super) fn open(containers: &'a EtcdContainers<'a>) -> anyhow::Result<Self> {
        let mut gateway = Self {
            containers,
            had_alarms: false,
        };
        let raised = gateway.wait_for_alarms()?;
        gateway.had_alarms = !raised.alarms.is_empty();
        for AlarmReply {
            member: Number(member),
            alarm,
        } in raised.alarms
        {
            let body =
                json!({"action": "DEACTIVATE", "memberID": member.to_string(), "alarm": alarm});
            gateway.post_until_available(ALARMS, &body.to_string())?;
        }
        Ok(gateway)
    }

    /// Asks for the alarms until the scratch etcd answers for the first time.
    fn wait_for_alarms(&self) -> anyhow::Result<AlarmsReply> {
        let begun = Instant::now();
        loop {
            match self.ask(ALARMS, r#"{"action":"GET"}"#) {
                Ok(answer) => return Ok(answer),
                Err(error)
                    if begun.elapsed() > REPLAY_TIME
                        || self.containers.has_scratch_etcd_ended().unwrap_or(false) =>
                {
                    return Err(error.context(self.containers.describe_failure()));
                }
                Err(_) => sleep(self.containers.interval),
            }
        }
    }

    /// Calls a method: `kv/txn`. `body`: JSON.
    pub(crate) fn ask<T: DeserializeOwned>(&self, method: &str, body: &str) -> anyhow::Result<T> {
        parse_answer(method, &self.post(method, body)?)
    }

    /// The same. Returns the answer as it is.
    pub(crate) fn post(&self, method: &str, body: &str) -> anyhow::Result<Vec<u8>> {
        let EtcdContainers { host, socket, .. } = self.containers;
        let what = format!("POST /v3/{method}");
        request(host, socket, (&what, Some(body)), TIMEOUT)
    }

    /// The same, for what may be done twice: again while etcd does not come to it, as its clients do (etcd: `client/v3/retry.go`).
    fn post_until_available(&self, method: &str, body: &str) -> anyhow::Result<Vec<u8>> {
        let begun = Instant::now();
        loop {
            match self.post(method, body) {
                Err(error)
                    if begun.elapsed() < TIMEOUT
                        && error.downcast_ref().is_some_and(Refused::is_unavailable) =>
                {
                    sleep(self.containers.interval);
                }
                answer => return answer,
            }
        }
    }

    /// The same, and reads the answer.
    pub(crate) fn ask_until_available<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &str,
    ) -> anyhow::Result<T> {
        parse_answer(method, &self.post_until_available(method, body)?)
    }

    /// Counts keys. `revision`: at which; `None`: now.
    pub(crate) fn count_keys(
        &self,
        (from, end): KeyRange<'_>,
        revision: Option<u64>,
    ) -> anyhow::Result<Content> {
        let body = json!({
            "key": STANDARD.encode(from),
            "range_end": STANDARD.encode(end),
            "count_only": true,
            // Zero: the newest.
            "revision": revision.unwrap_or_default().to_string(),
        });
        let CountReply {
            header:
                ReplyHeader {
                    revision: Number(revision),
                    ..
                },
            count: Number(keys),
        } = self.ask_until_available("kv/range", &body.to_string())?;
        // etcd begins with 1. Zero would be taken for what is wrong with a snapshot.
        ensure!(revision > 0, "etcd's answer to kv/range has no revision");
        Ok(Content { keys, revision })
    }

    /// etcd's hash of all keys up to a revision. Releases before 3.5.10 do not have this method in their gateway (etcd: pull request 16490).
    pub(crate) fn hash_keys(&self, revision: u64) -> anyhow::Result<KeyHash> {
        let body = json!({"revision": revision.to_string()});
        let reply: HashReply = self.ask_until_available("maintenance/hashkv", &body.to_string())?;
        Ok(reply.into())
    }

    /// All keys of a range with their values, one page after the other.
    pub(crate) fn for_each_value(
        &self,
        (from, end): KeyRange<'_>,
        mut take: impl FnMut(&str, &[u8]),
    ) -> anyhow::Result<()> {
        let mut from = from.to_owned();
        loop {
            let page = self.read_page((&from, end))?;
            for (key, value) in &page {
                take(key, value);
            }
            let is_full = page.len() == PAGE;
            match page.into_iter().next_back() {
                // What comes right after the last key.
                Some((last, _)) if is_full => from = format!("{last}\0"),
                _ => return Ok(()),
            }
        }
    }

    fn read_page(&self, (from, end): KeyRange<'_>) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let body = json!({
            "key": STANDARD.encode(from),
            "range_end": STANDARD.encode(end),
            "limit": PAGE.to_string(),
        });
        let said = self.post_until_available("kv/range", &body.to_string())?;
        // A value may be a secret, and stands in no error.
        let reply: ValuesReply =
            serde_json::from_slice(&said).map_err(|_| anyhow!("etcd's answer has no keys"))?;
        let decode = |KeyValue { key, value }| {
            let key = String::from_utf8(STANDARD.decode(key)?)?;
            Ok((key, STANDARD.decode(value)?))
        };
        reply.kvs.into_iter().map(decode).collect()
    }
}

fn parse_answer<T: DeserializeOwned>(method: &str, answer: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(answer).with_context(|| format!("etcd's answer to {method}"))
}
