//! Asks the other members of an etcd cluster for the list of members, and changes it. Every answer needs a quorum.

use super::gateway::{EtcdGateway, MemberReply, MembersReply, TIMEOUT};
use super::maintenance::EtcdMaintenance;
use anyhow::{Context, bail};
use etcd_rules::{LiveCluster, LiveMember, MemberChange, Peers};
use futures::future::{join_all, select_all};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::future::Future;

/// The members of an etcd cluster together, as a trait that tests replace.
pub trait EtcdQuorum: Send + Sync + 'static {
    /// The members, as the leader confirms them. Any of `members`, by their short names, may be asked.
    fn list_live_members(
        &self,
        members: &[String],
    ) -> impl Future<Output = anyhow::Result<LiveCluster>> + Send;

    /// What each of these members, by short name, says about itself, or why it does not. This needs no quorum.
    fn describe_members(&self, members: &[String]) -> impl Future<Output = Peers> + Send;

    /// Changes the list of members, or the leader. Returns the id of an added member.
    fn change_members(
        &self,
        members: &[String],
        change: &MemberChange,
    ) -> impl Future<Output = anyhow::Result<Option<String>>> + Send;
}

#[derive(Debug, Deserialize)]
struct AddReply {
    member: MemberReply,
}

impl EtcdQuorum for EtcdGateway {
    async fn list_live_members(&self, members: &[String]) -> anyhow::Result<LiveCluster> {
        self.find_member(members).await.map(|(_, live)| live)
    }

    async fn describe_members(&self, members: &[String]) -> Peers {
        let asked = members.iter().map(|member| async move {
            let described = async { self.of_short_name(member)?.describe_member().await };
            let said = described.await.map_err(|error| format!("{error:#}"));
            (member.clone(), said)
        });
        join_all(asked).await.into_iter().collect()
    }

    async fn change_members(
        &self,
        members: &[String],
        change: &MemberChange,
    ) -> anyhow::Result<Option<String>> {
        if let MemberChange::MoveLeader { from, to } = change {
            self.of_short_name(from)?.move_leader(to).await?;
            return Ok(None);
        }
        let (gateway, _) = self.find_member(members).await?;
        let (method, body) = to_request(change)?;
        if matches!(change, MemberChange::AddLearner { .. }) {
            let added: AddReply = gateway.request(method, body, TIMEOUT).await?;
            return Ok(Some(added.member.id.to_hex()));
        }
        // It is the new list of members, which is read anew anyway.
        let IgnoredAny = gateway.request(method, body, TIMEOUT).await?;
        Ok(None)
    }
}

impl EtcdGateway {
    /// Access to a member, by its short name.
    fn of_short_name(&self, member: &str) -> anyhow::Result<Self> {
        self.of_member(&self.names.member_name(member))
    }

    /// The member that answers first for a quorum, and its list. The error has every member's reason.
    async fn find_member(&self, members: &[String]) -> anyhow::Result<(Self, LiveCluster)> {
        let mut reasons = Vec::new();
        let asked = members.iter().map(|member| {
            let listed = async move {
                let gateway = self.of_short_name(member)?;
                let body = r#"{"linearizable":true}"#.to_owned();
                let listed = gateway.request("cluster/member/list", body, TIMEOUT);
                let live = to_live_cluster(listed.await?)?;
                anyhow::Ok((gateway, live))
            };
            Box::pin(listed)
        });
        let mut asked: Vec<_> = asked.collect();
        while !asked.is_empty() {
            let (answer, _, others) = select_all(asked).await;
            match answer {
                Ok(found) => return Ok(found),
                Err(error) => reasons.push(format!("{error:#}")),
            }
            asked = others;
        }
        bail!("no member answers for a quorum: {}", reasons.join("; "))
    }
}

fn to_live_cluster(reply: MembersReply) -> anyhow::Result<LiveCluster> {
    let member = |one: MemberReply| LiveMember {
        id: one.id.to_hex(),
        name: one.name,
        peer_urls: one.peer_urls,
        learner: one.learner,
    };
    if reply.header.cluster_id.0 == 0 {
        bail!("the list of members does not say of which cluster it is");
    }
    Ok(LiveCluster {
        cluster_id: reply.header.cluster_id.to_hex(),
        members: reply.members.into_iter().map(member).collect(),
    })
}

/// Method and body of a request (etcd: `rpc.proto`, service `Cluster`).
fn to_request(change: &MemberChange) -> anyhow::Result<(&'static str, String)> {
    let decimal = |id: &str| -> anyhow::Result<String> {
        let number = u64::from_str_radix(id, 16);
        let number = number.with_context(|| format!("{id} is not the id of a member"))?;
        Ok(number.to_string())
    };
    let with_id = |id: &str| anyhow::Ok(serde_json::json!({"ID": decimal(id)?}).to_string());
    Ok(match change {
        MemberChange::Remove { id, .. } => ("cluster/member/remove", with_id(id)?),
        MemberChange::MoveLeader { .. } => bail!("the leader is moved by its own request"),
        MemberChange::Promote { id } => ("cluster/member/promote", with_id(id)?),
        MemberChange::EndJoin { id, peer_url } => {
            let body = serde_json::json!({"ID": decimal(id)?, "peerURLs": [peer_url]});
            ("cluster/member/update", body.to_string())
        }
        MemberChange::AddLearner { peer_urls } => {
            let body = serde_json::json!({"peerURLs": peer_urls, "isLearner": true});
            ("cluster/member/add", body.to_string())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hex_here_and_decimal_text_in_requests() {
        // Response of etcd 3.6 with a learner that has not started.
        let text = r#"{"header":{"cluster_id":"14841639068965178418","member_id":"1","raft_term":"2"},"members":[
            {"ID":"10276657743932975437","name":"etcd-a","peerURLs":["https://etcd-a.internal.x:2380"],"clientURLs":["https://a:4001"]},
            {"ID":"11","peerURLs":["https://etcd-b.internal.x:2380"],"isLearner":true}]}"#;
        let live = to_live_cluster(serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(live.cluster_id, "cdf818194e3a8c32");
        assert_eq!(live.members[0].id, "8e9e05c52164694d");
        assert!(live.members[1].learner && live.members[1].name.is_empty());
        let id = live.members[0].id.clone();
        let (method, body) = to_request(&MemberChange::Remove {
            member: "a".into(),
            id,
        })
        .unwrap();
        assert_eq!(
            (method, body.as_str()),
            ("cluster/member/remove", r#"{"ID":"10276657743932975437"}"#)
        );
        assert!(to_request(&MemberChange::Promote { id: "x".into() }).is_err());
    }
}
