//! etcd's watch of all keys, through the JSON gateway of the local member. etcd sends the changes of a revision together, in order, and none
//! twice (etcd: "API guarantees", "Watch APIs"); large answers are divided into fragments.

use crate::EtcdGateway;
use crate::gateway::{CountReply, Number, ReplyHeader, Signed, StreamError};
use crate::maintenance::COMPACTED;
use anyhow::{Context, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use etcd_rules::RunningMember;
use etcd_rules::backup::WatchedEvent;
use serde::Deserialize;
use std::future::Future;
use std::time::Duration;

/// The request ends after this time, whatever it receives. Whoever watches begins anew before.
const WATCH_TIME: Duration = Duration::from_hours(2);

/// Timeout of a read that a majority of the members confirms.
const READ_TIME: Duration = Duration::from_secs(10);

/// The gateway writes an answer as a line. A fragment has `--max-request-bytes` (1.5 MiB) and 512 KiB at most, or one event; base64 makes it longer.
const LONGEST_LINE: usize = 32 << 20;

/// A member whose changes are followed, as a trait that tests replace.
pub trait ChangesSource: Send + Sync + 'static {
    type Watch: ChangesWatch;

    /// What the member says about itself.
    fn describe(&self) -> impl Future<Output = anyhow::Result<RunningMember>> + Send;

    /// etcd's revision. Everything that was acknowledged before the call is in it: a majority confirms that no other member leads.
    fn current_revision(&self) -> impl Future<Output = anyhow::Result<u64>> + Send;

    /// Watches all keys behind a revision that etcd has had. The error is [`Compacted`] if etcd does not have all of it any more.
    fn watch_behind(
        &self,
        revision: u64,
    ) -> impl Future<Output = anyhow::Result<Self::Watch>> + Send;

    /// For how long the lease with this id was granted, seconds; `None`: it has ended.
    fn lease_seconds(&self, id: u64) -> impl Future<Output = anyhow::Result<Option<u64>>> + Send;
}

/// A watch. After an error it is of no use.
pub trait ChangesWatch: Send + 'static {
    /// What etcd sends next. Nothing is lost if the future is dropped. The error is [`Compacted`] if etcd does not have all of it any more.
    fn next(&mut self) -> impl Future<Output = anyhow::Result<Watched>> + Send;
}

/// What etcd sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Changes in order. `is_whole`: all of their last revision were sent.
    Events {
        events: Vec<WatchedEvent>,
        is_whole: bool,
    },
    /// All changes up to this revision were sent.
    Progress(u64),
}

/// etcd has compacted changes that were asked for.
#[derive(Debug, thiserror::Error)]
#[error(
    "etcd has compacted the changes behind revision {behind}, so what follows cannot be stored"
)]
pub struct Compacted {
    /// Those behind this revision.
    pub behind: u64,
}

/// A watch through the gateway.
#[derive(Debug)]
pub struct GatewayWatch {
    /// The revision behind which changes were asked for.
    behind: u64,
    answer: reqwest::Response,
    lines: Lines,
}

impl ChangesSource for EtcdGateway {
    type Watch = GatewayWatch;

    async fn describe(&self) -> anyhow::Result<RunningMember> {
        self.describe_member().await
    }

    async fn current_revision(&self) -> anyhow::Result<u64> {
        // One key that nobody has, and not serializable.
        let body = r#"{"key":"AA==","count_only":true}"#.to_owned();
        let reply = self.request("kv/range", body, READ_TIME).await;
        let reply: CountReply = reply.context("etcd does not say its revision")?;
        Ok(reply.header.revision.0)
    }

    async fn watch_behind(&self, revision: u64) -> anyhow::Result<GatewayWatch> {
        // Older releases let a watch begin at the compacted revision, although its deletions are gone (etcd: pull request 18274).
        let body = format!(r#"{{"key":"AA==","count_only":true,"revision":"{revision}"}}"#);
        let reply = self.request::<CountReply>("kv/range", body, READ_TIME);
        reply.await.map_err(|error| match format!("{error:#}") {
            said if said.contains(COMPACTED) => anyhow::Error::new(Compacted { behind: revision }),
            _ => error.context("etcd does not say whether it has the changes"),
        })?;
        let first = revision.saturating_add(1);
        // From the key \0 to the end: all.
        let body = format!(
            r#"{{"create_request":{{"key":"AA==","range_end":"AA==","start_revision":"{first}","progress_notify":true,"fragment":true}}}}"#
        );
        let client = self.build_client()?;
        let answer = self.send_request(&client, "watch", body, WATCH_TIME);
        Ok(GatewayWatch {
            behind: revision,
            answer: answer.await?,
            lines: Lines::default(),
        })
    }

    async fn lease_seconds(&self, id: u64) -> anyhow::Result<Option<u64>> {
        let body = format!(r#"{{"ID":"{}"}}"#, id.cast_signed());
        let reply = self.request("lease/timetolive", body, READ_TIME);
        let reply: LeaseReply = reply.await?;
        let granted = u64::try_from(reply.granted.0).unwrap_or_default();
        Ok((granted > 0).then_some(granted))
    }
}

impl ChangesWatch for GatewayWatch {
    async fn next(&mut self) -> anyhow::Result<Watched> {
        loop {
            while let Some(line) = self.lines.take() {
                if let Some(watched) = parse_line(&line, self.behind)? {
                    return Ok(watched);
                }
            }
            match self.answer.chunk().await.context("the watch broke off")? {
                Some(bytes) => self.lines.add(&bytes)?,
                None => bail!("etcd has ended the watch"),
            }
        }
    }
}

/// Divides what is received into lines.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    /// So many of them are known to have no end of line.
    scanned: usize,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if self.bytes.len().saturating_add(bytes.len()) > LONGEST_LINE {
            bail!("etcd sends an answer of more than {LONGEST_LINE} bytes");
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole line, with its end.
    fn take(&mut self) -> Option<Vec<u8>> {
        let new = self.bytes.get(self.scanned..).unwrap_or_default();
        let Some(end) = new.iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.bytes.len();
            return None;
        };
        let rest = self.bytes.split_off(self.scanned + end + 1);
        self.scanned = 0;
        Some(std::mem::replace(&mut self.bytes, rest))
    }
}

/// A line of the gateway's stream (grpc-gateway: `ForwardResponseStream`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WatchLine {
    result: WatchReply,
    error: Option<StreamError>,
}

/// JSON of protocol buffers leaves out what is zero, false or empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WatchReply {
    header: ReplyHeader,
    created: bool,
    canceled: bool,
    cancel_reason: String,
    compact_revision: Number,
    fragment: bool,
    events: Vec<EventReply>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventReply {
    #[serde(rename = "type")]
    kind: String,
    kv: KeyValue,
}

/// Key and value are base64.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeyValue {
    key: String,
    value: String,
    create_revision: Number,
    mod_revision: Number,
    version: Number,
    /// Ids of leases are chosen by clients, and signed.
    lease: Signed,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LeaseReply {
    /// 0 if the lease has ended.
    #[serde(rename = "grantedTTL")]
    granted: Signed,
}

/// What a line says of the changes behind a revision; `None`: only that the watch was created. Its revision is then that of etcd, and nothing
/// was sent yet.
fn parse_line(line: &[u8], behind: u64) -> anyhow::Result<Option<Watched>> {
    // The parser's error may repeat a value, which may be a secret.
    let line: WatchLine = serde_json::from_slice(line)
        .map_err(|_| anyhow!("etcd sends something else than the answer to a watch"))?;
    if let Some(StreamError { message }) = line.error {
        bail!("etcd cannot send its changes: {message}");
    }
    let reply = line.result;
    if reply.compact_revision != Number(0) {
        return Err(Compacted { behind }.into());
    }
    if reply.canceled {
        bail!("etcd has ended the watch: {}", reply.cancel_reason);
    }
    if reply.created && reply.events.is_empty() {
        return Ok(None);
    }
    if reply.events.is_empty() {
        return Ok(Some(Watched::Progress(reply.header.revision.0)));
    }
    let events = reply.events.into_iter().map(to_event);
    Ok(Some(Watched::Events {
        events: events.collect::<anyhow::Result<_>>()?,
        is_whole: !reply.fragment,
    }))
}

fn to_event(reply: EventReply) -> anyhow::Result<WatchedEvent> {
    let EventReply { kind, kv } = reply;
    let decode = |text: &str| {
        let decoded = STANDARD.decode(text);
        decoded.map_err(|_| anyhow!("etcd sends a key or a value that is not base64"))
    };
    let (key, Number(revision)) = (decode(&kv.key)?, kv.mod_revision);
    match kind.as_str() {
        "" | "PUT" => Ok(WatchedEvent {
            revision,
            key,
            value: Some(decode(&kv.value)?),
            lease: (kv.lease.0 != 0).then(|| kv.lease.0.cast_unsigned()),
            created: kv.create_revision.0,
            version: kv.version.0,
        }),
        "DELETE" => Ok(WatchedEvent {
            revision,
            key,
            value: None,
            lease: None,
            created: 0,
            version: 0,
        }),
        other => bail!("etcd sends a change of the unknown kind {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of etcd 3.6.
    const EVENTS: &str = r#"{"result":{"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"12","raft_term":"2"},
        "events":[{"kv":{"key":"L2E=","create_revision":"11","mod_revision":"11","version":"1","value":"Yg==","lease":"-5"}},
        {"type":"DELETE","kv":{"key":"L2E=","mod_revision":"12"}},{"kv":{"key":"L2I=","create_revision":"12","mod_revision":"12","version":"1"}}]}}"#;

    fn event(revision: u64, key: &str, value: Option<&str>) -> WatchedEvent {
        let is_put = u64::from(value.is_some());
        WatchedEvent {
            revision,
            key: key.as_bytes().to_vec(),
            value: value.map(|value| value.as_bytes().to_vec()),
            lease: None,
            created: revision * is_put,
            version: is_put,
        }
    }

    #[test]
    fn events_are_read_as_etcd_sends_them() {
        let leased = WatchedEvent {
            lease: Some(u64::MAX - 4),
            ..event(11, "/a", Some("b"))
        };
        let events = vec![leased, event(12, "/a", None), event(12, "/b", Some(""))];
        for (fragment, is_whole) in [("", true), (r#""fragment":true,"#, false)] {
            let text = EVENTS.replacen(r#""events""#, &format!(r#"{fragment}"events""#), 1);
            let watched = parse_line(text.as_bytes(), 10).unwrap();
            let events = events.clone();
            assert_eq!(watched, Some(Watched::Events { events, is_whole }));
        }
    }

    #[test]
    fn what_comes_without_events_is_told_apart() {
        let created = br#"{"result":{"header":{"revision":"12"},"created":true}}"#;
        assert_eq!(parse_line(created, 10).unwrap(), None);
        let progress = br#"{"result":{"header":{"revision":"12"}}}"#;
        assert_eq!(
            parse_line(progress, 10).unwrap(),
            Some(Watched::Progress(12))
        );
        let compacted =
            br#"{"result":{"header":{"revision":"12"},"canceled":true,"compact_revision":"9"}}"#;
        let error = parse_line(compacted, 7).unwrap_err();
        assert_eq!(error.downcast_ref::<Compacted>().unwrap().behind, 7);
        for (line, says) in [
            (
                r#"{"result":{"created":true,"canceled":true,"cancel_reason":"etcdserver: permission denied"}}"#,
                "permission denied",
            ),
            (
                r#"{"error":{"grpc_code":14,"message":"etcdserver: no leader"}}"#,
                "no leader",
            ),
            ("404 page not found\n", "something else"),
            (&*EVENTS.replace("Yg==", "Yg"), "not base64"),
            (&*EVENTS.replace("DELETE", "MOVE"), "kind MOVE"),
        ] {
            let why = format!("{:#}", parse_line(line.as_bytes(), 7).unwrap_err());
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn lines_are_whole_however_they_are_received() {
        let text = b"a\n\nbc\nd";
        for size in 1..=text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.add(piece).unwrap();
                found.extend(std::iter::from_fn(|| lines.take()));
            }
            assert_eq!(found, [b"a\n".to_vec(), b"\n".to_vec(), b"bc\n".to_vec()]);
            assert_eq!(lines.bytes, b"d");
        }
        assert!(Lines::default().add(&vec![0; LONGEST_LINE + 1]).is_err());
    }
}
