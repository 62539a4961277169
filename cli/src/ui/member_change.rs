//! What an update does with a member of etcd before its plan.

use serde::Serialize;

/// A member that leaves, or does not leave after all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberChange {
    /// The etcd cluster: `main`.
    pub etcd: String,
    /// Its name: `d`.
    pub member: String,
    /// What happens to it.
    pub action: MemberAction,
    /// Id of the volume with its data, which is kept, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
}

/// What happens to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MemberAction {
    /// It is removed.
    Remove,
    /// It was to be removed, and stays.
    Keep,
    /// It was removed, or its removal has begun, and it may join as a new member.
    Add,
}

impl MemberChange {
    /// For a plan: `- etcd_member/main/d  (...)`.
    pub fn line(&self) -> String {
        let (sign, what) = match self.action {
            MemberAction::Remove => (
                '-',
                format!(
                    "removed before anything else changes, one at a time; {} keeps its data",
                    self.volume.as_deref().unwrap_or("its volume")
                ),
            ),
            MemberAction::Keep => (
                '=',
                "its removal has not begun, and is withdrawn".to_owned(),
            ),
            MemberAction::Add => ('+', "removed before, and joins as a new member".to_owned()),
        };
        format!("{sign} etcd_member/{}/{}  ({what})", self.etcd, self.member)
    }
}
