//! How objects are listed for people: in which section, in which order, and under which other object.

use engine::{Id, Ref};

/// The sections of a listing, in the order in which things depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// VPC, subnets, routes, gateways.
    Network,
    /// Security groups and rules.
    SecurityGroups,
    Permissions,
    /// Load balancers and names.
    Api,
    /// Volumes of etcd, which outlive instances.
    Volumes,
    /// What instances read at boot.
    StateStore,
    /// Launch templates and Auto Scaling groups.
    Instances,
    /// The queue of the node termination handler.
    TerminationEvents,
}

impl Section {
    pub fn heading(self) -> &'static str {
        match self {
            Self::Network => "Network",
            Self::SecurityGroups => "Security groups",
            Self::Permissions => "Permissions",
            Self::Api => "API and names",
            Self::Volumes => "Volumes",
            Self::StateStore => "State store",
            Self::Instances => "Instances",
            Self::TerminationEvents => "Termination events",
        }
    }
}

/// A kind's section, and its rank there: what others depend on has a lower one. Kinds may share a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListingPosition(pub Section, pub u8);

/// The object that another one is listed as a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOf {
    pub id: Id,
    /// What such parts are called when they are counted: one, several.
    pub words: (&'static str, &'static str),
}

impl PartOf {
    /// A part of the object referred to, if that is the cluster's own.
    pub(crate) fn of_whole(whole: &Ref, one: &'static str, several: &'static str) -> Option<Self> {
        whole.id().map(|id| Self {
            id,
            words: (one, several),
        })
    }
}

/// A reference in words: the name of an object of the cluster, or what the user gave.
pub(crate) fn reference_words(to: &Ref) -> &str {
    let (Ref::Own { name, .. } | Ref::Given(name)) = to;
    name
}

/// `1 zone`, `2 zones`.
pub(crate) fn count_words(count: usize, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}
