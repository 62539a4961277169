//! The members of an etcd cluster as etcd itself lists them, and how the list is changed.

/// The members of an etcd cluster, as a quorum of it confirms them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCluster {
    /// etcd's id of the cluster, hex.
    pub cluster_id: String,
    pub members: Vec<LiveMember>,
}

/// A member in the live list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveMember {
    /// etcd's id of the member, hex.
    pub id: String,
    /// Name; empty until the member has started once.
    pub name: String,
    pub peer_urls: Vec<String>,
    /// True if it does not vote yet.
    pub learner: bool,
}

/// A change of the live list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// Removes the member with this id (hex) for ever.
    Remove {
        /// Short name: `a`.
        member: String,
        id: String,
    },
    /// Makes the member with the id `to` the leader. Only the leader, `from` by its short name, can do that.
    MoveLeader { from: String, to: String },
    /// Adds a learner with these peer URLs. Its new id is recorded before it starts.
    AddLearner { peer_urls: Vec<String> },
    /// Leaves the new member this peer URL only. From then on its manifest cannot start another log under its id.
    EndJoin { id: String, peer_url: String },
    /// Lets the learner with this id vote. etcd refuses until it has the leader's log.
    Promote { id: String },
}
