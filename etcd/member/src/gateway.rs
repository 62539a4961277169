//! Asks a member of etcd through the JSON gateway on its client port (etcd documentation, "gRPC gateway"). What the local member says
//! about itself is its own answer, so it answers without a quorum too.

use super::certificates::client_builder;
use super::hosts::{FILE as HOSTS, parse_entries};
use anyhow::{Context, bail};
use etcd_rules::{ListedMember, RaisedAlarm, RunningMember};
use host::Host;
use node::components::EtcdMemberNames;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Timeout of a request that etcd answers at once.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// Access to the client port of a member. Servers are verified by names, which are not looked up.
#[derive(Clone, Debug)]
pub struct EtcdGateway {
    /// Access to certificate files.
    pub host: Host,
    /// Folder with `server.crt`, `server.key` and `clients-ca.crt`. etcd's own certificate is also one of a client.
    pub certificates: String,
    /// A name in the certificate.
    pub name: String,
    /// Private address of the instance.
    pub address: IpAddr,
    pub port: u16,
    /// Names of the members.
    pub names: EtcdMemberNames,
    /// The quota in the member's configuration, for etcd 3.5, which does not say it.
    pub quota: Option<u64>,
}

/// JSON of protocol buffers writes 64-bit numbers as text, and leaves out zeros.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusReply {
    header: ReplyHeader,
    version: String,
    #[serde(rename = "dbSize")]
    database_bytes: Number,
    #[serde(rename = "dbSizeInUse")]
    database_used_bytes: Number,
    /// Negative: no quota.
    #[serde(rename = "dbSizeQuota")]
    quota_bytes: Option<String>,
    leader: Number,
    #[serde(rename = "raftTerm")]
    term: Number,
    #[serde(rename = "isLearner")]
    learner: bool,
    errors: Vec<String>,
}

/// Header of every answer: who gave it, and at which revision.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReplyHeader {
    pub(super) cluster_id: Number,
    member_id: Number,
    pub(super) revision: Number,
}

/// The list of members. It is never empty: an answer without it is none.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MembersReply {
    pub(super) header: ReplyHeader,
    pub(super) members: Vec<MemberReply>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MemberReply {
    #[serde(rename = "ID")]
    pub(super) id: Number,
    /// Empty until it has started.
    #[serde(default)]
    pub(super) name: String,
    #[serde(default, rename = "peerURLs")]
    pub(super) peer_urls: Vec<String>,
    #[serde(default, rename = "isLearner")]
    pub(super) learner: bool,
}

/// The answer to `kv/range` with `count_only`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CountReply {
    /// With the revision at which the keys were counted (etcd: `applierV3backend.Range`).
    pub(super) header: ReplyHeader,
    pub(super) count: Number,
}

/// JSON of protocol buffers writes 64-bit numbers as text, and leaves out zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Number(pub(super) u64);

impl TryFrom<String> for Number {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// The same for numbers that may be negative.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Signed(pub(super) i64);

impl TryFrom<String> for Signed {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// Why a stream ends (grpc-gateway: `ForwardResponseStream`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamError {
    pub(super) message: String,
}

impl Number {
    /// As etcd's tools write ids.
    pub(super) fn to_hex(self) -> String {
        format!("{:x}", self.0)
    }
}

impl EtcdGateway {
    /// What the local member says about itself and its cluster; without the time of its writes to the disk.
    pub async fn describe_member(&self) -> anyhow::Result<RunningMember> {
        let client = self.build_client()?;
        let said = self.request_with(&client, "maintenance/status", "{}".to_owned(), TIMEOUT);
        let status: StatusReply = said.await?;
        let own_list = r#"{"linearizable":false}"#.to_owned();
        let listed = self.request_with(&client, "cluster/member/list", own_list, TIMEOUT);
        // A learner does not answer it ("rpc not supported for learner").
        let members = match status.learner {
            true => MembersReply::default(),
            false => listed.await?,
        };
        let described = to_running_member(&status, &members);
        Ok(RunningMember {
            quota_bytes: match &status.quota_bytes {
                Some(quota) => quota.parse().ok(),
                None => self.quota,
            },
            ..described
        })
    }

    /// Access to another member, by its name in etcd. Its address is that in `/etc/hosts`. DNS is not asked: its denial would stay with the
    /// resolver of the VPC for minutes.
    pub(super) fn of_member(&self, member: &str) -> anyhow::Result<Self> {
        let name = format!("{member}.{}", self.names.domain);
        let text = self.host.read_text(HOSTS)?.unwrap_or_default();
        let address = parse_entries(&text).get(&name).copied();
        Ok(Self {
            address: address.with_context(|| format!("{name} is not in {HOSTS} yet"))?,
            name,
            ..self.clone()
        })
    }

    /// One request to the member. An error has etcd's message.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        body: String,
        timeout: Duration,
    ) -> anyhow::Result<T> {
        self.request_with(&self.build_client()?, method, body, timeout)
            .await
    }

    async fn request_with<T: DeserializeOwned>(
        &self,
        client: &reqwest::Client,
        method: &str,
        body: String,
        timeout: Duration,
    ) -> anyhow::Result<T> {
        let answer = self.send_request(client, method, body, timeout).await?;
        let read = async { anyhow::Ok(serde_json::from_slice(&answer.bytes().await?)?) };
        read.await
            .with_context(|| format!("the answer of {} to {method} cannot be read", self.name))
    }

    /// Sends a request; its answer comes bit by bit. The timeout is that of the whole answer.
    pub(crate) async fn send_request(
        &self,
        client: &reqwest::Client,
        method: &str,
        body: String,
        timeout: Duration,
    ) -> anyhow::Result<reqwest::Response> {
        let url = format!("https://{}:{}/v3/{method}", self.name, self.port);
        let answer = client.post(&url).body(body).timeout(timeout).send().await;
        let answer = answer.with_context(|| format!("etcd does not answer at {url}"))?;
        let status = answer.status();
        if !status.is_success() {
            let bytes = answer.bytes().await;
            let bytes = bytes.with_context(|| format!("{url} returned {status}"))?;
            bail!("{url} returned {status}: {}", error_message(&bytes));
        }
        Ok(answer)
    }

    /// A client for some requests: the next one reads the certificates again, because nodeup renews them.
    pub(crate) fn build_client(&self) -> anyhow::Result<reqwest::Client> {
        let files = ("server", "clients-ca");
        let client = client_builder(&self.host, &self.certificates, files)?;
        let address = SocketAddr::new(self.address, self.port);
        let client = client.resolve(&self.name, address).build();
        client.context("could not create a client for etcd's client port")
    }
}

fn to_running_member(status: &StatusReply, members: &MembersReply) -> RunningMember {
    let id = status.header.member_id;
    let own = members.members.iter().find(|one| one.id == id);
    let mut raised_alarms: Vec<RaisedAlarm> = status
        .errors
        .iter()
        .filter_map(|one| parse_alarm(one))
        .collect();
    raised_alarms.sort();
    let mut alarms: Vec<String> = raised_alarms.iter().map(|one| one.alarm.clone()).collect();
    alarms.dedup();
    let listed = members.members.iter().map(|one| ListedMember {
        id: one.id.to_hex(),
        name: one.name.clone(),
        learner: one.learner,
    });
    let mut listed: Vec<ListedMember> = listed.collect();
    listed.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    RunningMember {
        name: own.map(|one| one.name.clone()).unwrap_or_default(),
        id: id.to_hex(),
        cluster_id: status.header.cluster_id.to_hex(),
        leader: (status.leader.0 != 0).then(|| status.leader.to_hex()),
        learner: status.learner,
        term: status.term.0,
        revision: status.header.revision.0,
        version: status.version.clone(),
        database_bytes: status.database_bytes.0,
        database_used_bytes: status.database_used_bytes.0,
        quota_bytes: None,
        fsync_p99_seconds: None,
        alarms,
        raised_alarms,
        members: listed,
    }
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

/// An alarm among the errors of a status, the text of a message of protocol buffers: `memberID:8321 alarm:NOSPACE `. Zero is left out.
fn parse_alarm(error: &str) -> Option<RaisedAlarm> {
    let (before, alarm) = error.split_once("alarm:")?;
    let id = before.trim().strip_prefix("memberID:");
    let id = id.and_then(|id| id.parse().ok()).map(Number);
    Some(RaisedAlarm {
        alarm: alarm.trim().to_owned(),
        member: id.map(Number::to_hex),
    })
}

/// The smallest bound of etcd's histogram of writes to its log below which 99 % of them were, in seconds; `None` if there was none,
/// or if 99 % are only below infinity.
pub(super) fn parse_fsync_p99(metrics: &str) -> Option<f64> {
    const BUCKET: &str = "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"";
    let buckets = metrics.lines().filter_map(|line| {
        let (bound, count) = line.strip_prefix(BUCKET)?.split_once("\"}")?;
        Some((bound.parse().ok()?, count.trim().parse().ok()?))
    });
    let buckets: Vec<(f64, f64)> = buckets.collect();
    let (_, total) = *buckets.last()?;
    let (bound, _) = *buckets
        .iter()
        .find(|(_, count)| *count >= total * 0.99)
        .filter(|_| total > 0.0)?;
    bound.is_finite().then_some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of etcd 3.6.
    const STATUS: &str = r#"{"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"27","raft_term":"4"},
        "version":"3.6.5","dbSize":"20480","leader":"10276657743932975437","raftIndex":"31","raftTerm":"4","raftAppliedIndex":"31",
        "errors":["memberID:10276657743932975437 alarm:NOSPACE "],"dbSizeInUse":"16384","storageVersion":"3.6.0",
        "dbSizeQuota":"2147483648","downgradeInfo":{}}"#;
    const MEMBERS: &str = r#"{"header":{},"members":[{"ID":"1","peerURLs":["https://etcd-b.internal.x:2380"],"isLearner":true},
        {"ID":"10276657743932975437","name":"etcd-a","peerURLs":[],"clientURLs":[]}]}"#;

    #[test]
    fn ids_are_hex_as_in_etcds_tools_and_alarms_stand_alone() {
        let status = serde_json::from_str(STATUS).unwrap();
        let running = to_running_member(&status, &serde_json::from_str(MEMBERS).unwrap());
        assert_eq!(
            (running.name.as_str(), running.id.as_str()),
            ("etcd-a", "8e9e05c52164694d")
        );
        assert_eq!(running.cluster_id, "cdf818194e3a8c32");
        assert_eq!(running.leader.as_deref(), Some("8e9e05c52164694d"));
        assert_eq!((running.term, running.revision), (4, 27));
        assert_eq!(running.alarms, ["NOSPACE"]);
        assert_eq!(running.members_with_alarm("NOSPACE"), ["etcd-a"]);
        let learner = ListedMember {
            id: "1".to_owned(),
            name: String::new(),
            learner: true,
        };
        assert_eq!(running.members.first(), Some(&learner));
    }

    #[test]
    fn a_member_without_a_leader_leaves_the_field_out() {
        let status = serde_json::from_str(r#"{"header":{"member_id":"1"}}"#).unwrap();
        let running = to_running_member(&status, &MembersReply::default());
        assert_eq!(running.leader, None);
    }

    #[test]
    fn the_message_of_an_error_is_etcds() {
        let reply = br#"{"code":9,"message":"etcdserver: not leader"}"#;
        assert_eq!(error_message(reply), "etcdserver: not leader");
        assert_eq!(error_message(b"404 page not found\n"), "404 page not found");
    }

    #[test]
    fn an_alarm_names_its_member_if_etcd_knows_it() {
        let parsed = parse_alarm("memberID:10276657743932975437 alarm:CORRUPT ").unwrap();
        assert_eq!(parsed.member.as_deref(), Some("8e9e05c52164694d"));
        let parsed = parse_alarm("alarm:CORRUPT ").unwrap();
        assert_eq!((parsed.alarm.as_str(), parsed.member), ("CORRUPT", None));
        assert_eq!(parse_alarm("etcdserver: no leader"), None);
    }

    #[test]
    fn the_99th_percentile_is_a_bound_of_the_histogram() {
        let metrics = |counts: [u32; 3]| {
            let bounds = ["0.001", "0.002", "+Inf"];
            let lines = bounds.iter().zip(counts).map(|(bound, count)| {
                format!("etcd_disk_wal_fsync_duration_seconds_bucket{{le=\"{bound}\"}} {count}\n")
            });
            lines.collect::<String>()
        };
        assert_eq!(parse_fsync_p99(&metrics([99, 100, 100])), Some(0.001));
        assert_eq!(parse_fsync_p99(&metrics([98, 100, 100])), Some(0.002));
        assert_eq!(parse_fsync_p99(&metrics([1, 2, 100])), None);
        assert_eq!(parse_fsync_p99(&metrics([0, 0, 0])), None);
        assert_eq!(parse_fsync_p99(""), None);
    }
}
