//! Control planes and their members of etcd, as they say themselves at this moment; reports in the state store may be a minute old.

use super::super::cluster::CONTROL_PLANES;
use anyhow::{Context, Result, ensure};
use lab::aws_state::InstanceState;
use lab::scenario::Lab;
use serde::Deserialize;
use serde_json::{Deserializer, Value};
use std::collections::BTreeSet;

/// Client ports of `main` and `events`, and the folders of their certificates.
const ETCDS: [(u16, &str); 2] = [
    (4001, "/srv/kubernetes/etcd"),
    (4002, "/srv/kubernetes/etcd-events"),
];

/// A control plane that AWS says is running.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    pub id: String,
    /// Name of its Auto Scaling group.
    pub group: &'static str,
    /// Its member of each etcd cluster, without a prefix.
    pub member: &'static str,
}

/// A member of etcd, asked itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub id: String,
    /// Empty: it knows none.
    pub leader: String,
    /// Ids of the members that it lists and that vote.
    voters: BTreeSet<String>,
    /// How many it lists.
    listed: usize,
}

/// What a control plane says of itself.
struct HostAnswer {
    boot: String,
    /// Of `main` and `events`.
    members: Vec<Member>,
}

#[derive(Debug, Default, Deserialize)]
struct Answer {
    header: Option<Header>,
    #[serde(default)]
    leader: String,
    #[serde(default)]
    members: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
struct Header {
    member_id: String,
}

#[derive(Debug, Deserialize)]
struct Listed {
    #[serde(rename = "ID")]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default, rename = "isLearner")]
    is_learner: bool,
}

/// The control planes that run, and whose hosts are on, which AWS does not see.
pub fn running(lab: &Lab) -> Result<Vec<ControlPlane>> {
    let mut found = Vec::new();
    for (group, member) in CONTROL_PLANES.into_iter().zip(["a", "b", "c"]) {
        for instance in lab.group_instances(group)? {
            if instance.state == InstanceState::Running && lab.is_on(&instance.id).unwrap_or(false)
            {
                found.push(ControlPlane {
                    id: instance.id,
                    group,
                    member,
                });
            }
        }
    }
    Ok(found)
}

/// Fails unless all three control planes run in their current boot as Ready nodes, and have the three voters of each etcd cluster,
/// which have one leader, and unless all other nodes are Ready.
pub fn members_are_back(lab: &Lab) -> Result<()> {
    let hosts = running(lab)?;
    ensure!(hosts.len() == 3, "only {hosts:?} run");
    let ask = |host: &ControlPlane| Ok((host.id.clone(), ask_host(lab, &host.id)?));
    let said: Vec<(String, HostAnswer)> = hosts.iter().map(ask).collect::<Result<_>>()?;
    for position in 0..ETCDS.len() {
        let of: Vec<&Member> = said.iter().map(|(_, one)| &one.members[position]).collect();
        let ids: BTreeSet<String> = of.iter().map(|one| one.id.clone()).collect();
        let led = of
            .iter()
            .all(|one| ids.contains(&one.leader) && one.leader == of[0].leader);
        let listed = of.iter().all(|one| one.voters == ids && one.listed == 3);
        ensure!(ids.len() == 3 && led && listed, "{of:?}");
    }
    nodes_are_ready(lab, &said)
}

fn nodes_are_ready(lab: &Lab, hosts: &[(String, HostAnswer)]) -> Result<()> {
    let nodes = lab.get_objects(&["nodes"])?;
    let nodes = nodes["items"].as_array().context("nodes")?;
    for node in nodes {
        let conditions = node["status"]["conditions"]
            .as_array()
            .context("conditions")?;
        let ready = conditions.iter().find(|one| one["type"] == "Ready");
        let is = ready.is_some_and(|ready| ready["status"] == "True");
        ensure!(is, "{}: {ready:?}", node["metadata"]["name"]);
    }
    for (id, HostAnswer { boot, .. }) in hosts {
        let own = nodes
            .iter()
            .find(|node| node["metadata"]["name"] == id.as_str());
        let known = own.map_or(&Value::Null, |node| &node["status"]["nodeInfo"]["bootID"]);
        ensure!(
            known == boot.as_str(),
            "the API knows boot {known} of {id}, it is {boot}"
        );
    }
    Ok(())
}

/// The boot of a host whose protokube runs, and its members.
fn ask_host(lab: &Lab, host: &str) -> Result<HostAnswer> {
    let mut script =
        "systemctl is-active protokube >/dev/null; cat /proc/sys/kernel/random/boot_id".to_owned();
    for (port, pki) in ETCDS {
        let url = format!("https://127.0.0.1:{port}/v3");
        script += &format!(
            "; curl -sS --fail --max-time 5 --cacert {pki}/clients-ca.crt --cert {pki}/server.crt --key {pki}/server.key \
             -d '{{}}' {url}/maintenance/status {url}/cluster/member/list"
        );
    }
    let said = lab.run_script(host, &script)?;
    let (boot, answers) = said.split_once('\n').with_context(|| said.clone())?;
    let answers = Deserializer::from_str(answers).into_iter::<Answer>();
    let answers: Vec<Answer> = answers
        .collect::<Result<_, _>>()
        .with_context(|| said.clone())?;
    ensure!(answers.len() == 2 * ETCDS.len(), "{host} says {said}");
    let members = answers.chunks(2).map(to_member);
    Ok(HostAnswer {
        boot: boot.to_owned(),
        members: members.collect::<Result<_>>()?,
    })
}

/// From a member's status and its list of members.
fn to_member(answers: &[Answer]) -> Result<Member> {
    let (status, list) = (&answers[0], &answers[1]);
    let header = status.header.as_ref().context("a header")?;
    let voters = list
        .members
        .iter()
        .filter(|one| !one.name.is_empty() && !one.is_learner);
    Ok(Member {
        id: header.member_id.clone(),
        leader: status.leader.clone(),
        voters: voters.map(|one| one.id.clone()).collect(),
        listed: list.members.len(),
    })
}

/// The member of `main` on a host.
pub fn ask_member(lab: &Lab, host: &str) -> Result<Member> {
    let mut members = ask_host(lab, host)?.members;
    Ok(members.remove(0))
}

/// The control plane whose member leads `main`.
pub fn find_leader(lab: &Lab) -> Result<ControlPlane> {
    for host in running(lab)? {
        if ask_member(lab, &host.id).is_ok_and(|one| one.id == one.leader) {
            return Ok(host);
        }
    }
    anyhow::bail!("no member leads")
}
