//! Whether an instance has become a node, and which instances need not.

use crate::{Instance, Node};
use node::config::Role;
use serde::Serialize;

/// Whether an instance is a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Membership {
    /// Its Node is Ready.
    Ready,
    /// Its Node is not Ready.
    NotReady,
    /// It has no Node.
    NotJoined,
    /// The API could not be asked.
    Unknown,
    /// It has no Node and needs none: a bastion.
    #[serde(rename = "never")]
    Bastion,
    /// It has no Node and needs none: a member of a warm pool.
    #[serde(rename = "never")]
    WarmPool,
    /// It has no Node and will get none: it is being terminated.
    #[serde(rename = "never")]
    Leaving,
}

impl Membership {
    /// The column `NODE` of tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::NotReady => "NotReady",
            Self::NotJoined => "not joined",
            Self::Unknown => "unknown",
            Self::WarmPool => "warmed",
            Self::Bastion | Self::Leaving => "",
        }
    }

    /// True if the instance should be a node and is not known to be one.
    pub fn is_missing(self) -> bool {
        matches!(self, Self::NotJoined | Self::Unknown)
    }
}

/// The membership of an instance of that role. `nodes` are all Nodes; `None` if the API could not be asked.
pub(crate) fn membership(
    instance: &Instance,
    role: Option<Role>,
    nodes: Option<&[Node]>,
) -> Membership {
    let node = nodes.and_then(|nodes| nodes.iter().find(|node| node.is_on(instance)));
    match node {
        Some(node) if node.ready => Membership::Ready,
        Some(_) => Membership::NotReady,
        None if role == Some(Role::Bastion) => Membership::Bastion,
        None if instance.is_in_warm_pool() => Membership::WarmPool,
        None if instance.is_leaving() => Membership::Leaving,
        None if nodes.is_none() => Membership::Unknown,
        None => Membership::NotJoined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(state: &str, lifecycle: &str) -> Instance {
        Instance {
            id: "i-1".to_owned(),
            state: state.to_owned(),
            lifecycle: Some(lifecycle.to_owned()),
            ..Instance::default()
        }
    }

    fn node(ready: bool) -> Node {
        Node {
            name: "i-1".to_owned(),
            ready,
            ..Node::default()
        }
    }

    #[test]
    fn an_instance_with_a_node_has_joined_whatever_becomes_of_it() {
        let leaving = instance("shutting-down", "Terminating");
        for (ready, expected) in [(true, Membership::Ready), (false, Membership::NotReady)] {
            let nodes = [node(ready)];
            let found = membership(&leaving, Some(Role::Node), Some(&nodes));
            assert_eq!(found, expected);
            assert!(!found.is_missing());
        }
    }

    #[test]
    fn instances_without_a_node_are_missing_unless_they_need_none() {
        let worker = Some(Role::Node);
        for (state, lifecycle, role, expected) in [
            ("running", "InService", worker, Membership::NotJoined),
            ("running", "InService", None, Membership::NotJoined),
            (
                "running",
                "InService",
                Some(Role::Bastion),
                Membership::Bastion,
            ),
            ("stopped", "Warmed:Stopped", worker, Membership::WarmPool),
            (
                "running",
                "Warmed:Terminating:Wait",
                worker,
                Membership::WarmPool,
            ),
            ("running", "Terminating:Wait", worker, Membership::Leaving),
            ("shutting-down", "InService", worker, Membership::Leaving),
        ] {
            let instance = instance(state, lifecycle);
            assert_eq!(membership(&instance, role, Some(&[])), expected);
            let without_api = membership(&instance, role, None);
            if expected == Membership::NotJoined {
                assert_eq!(without_api, Membership::Unknown);
                assert!(expected.is_missing() && without_api.is_missing());
            } else {
                assert_eq!(without_api, expected);
                assert!(!expected.is_missing());
            }
        }
    }

    #[test]
    fn instances_that_need_no_node_have_one_word_in_json() {
        for one in [
            Membership::Bastion,
            Membership::WarmPool,
            Membership::Leaving,
        ] {
            assert_eq!(serde_json::to_value(one).unwrap(), "never");
        }
        let not_joined = serde_json::to_value(Membership::NotJoined).unwrap();
        assert_eq!(not_joined, "not-joined");
    }
}
