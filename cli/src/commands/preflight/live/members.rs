//! Which nodes take part in trials: few of each kind, so that the number of trials stays small however large the cluster is.

use full::{FullSpec, Group};
use k8s_openapi::api::core::v1 as k8s;
use node::config::Role;
use node::names::INSTANCE_GROUP_TAG;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Most nodes, most control planes among them, and most workers of one instance group in one zone.
const MOST: usize = 12;
const MOST_CONTROL_PLANES: usize = 5;
const MOST_OF_ZONE: usize = 2;

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// A node that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// The name of its Node.
    pub name: String,
    /// Its instance group.
    pub group: String,
    /// Its address, at which its own services listen.
    pub address: IpAddr,
    /// The image of the container that holds the network of each pod: it is on the node already.
    pub image: String,
    /// Containers get labels of SELinux.
    pub selinux: bool,
}

/// Which nodes take part.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub members: Vec<Member>,
    /// Nodes that would take part if they could, and why they cannot.
    pub unusable: Vec<(String, String)>,
    /// How many nodes of the cluster there are.
    pub of: usize,
}

/// A node that may take part: by its name what it would be, or why it cannot.
type Candidate = (String, Result<Member, String>);

/// All control planes up to a number, and a node or two of each instance group of workers and each zone: Ready ones where there are some.
pub(super) fn choose_members(full: &FullSpec, nodes: &[k8s::Node]) -> Choice {
    let mut control_planes = Vec::new();
    let mut workers: BTreeMap<(&str, &str), Vec<Candidate>> = BTreeMap::new();
    for node in nodes {
        let label = |key: &str| {
            let labels = node.metadata.labels.as_ref();
            labels
                .and_then(|labels| labels.get(key))
                .map(String::as_str)
        };
        let group = label(INSTANCE_GROUP_TAG);
        let group = full
            .groups
            .iter()
            .find(|one| Some(one.name.as_str()) == group);
        // Of a group that is not the spec's, nobody knows what it may reach.
        let Some(group) = group else {
            continue;
        };
        let candidate = read_candidate(group, node);
        match group.role {
            Role::ControlPlane => control_planes.push(candidate),
            Role::Node | Role::Bastion => {
                let place = (group.name.as_str(), label(ZONE_LABEL).unwrap_or_default());
                workers.entry(place).or_default().push(candidate);
            }
        }
    }
    let mut chosen = best_of(control_planes, MOST_CONTROL_PLANES);
    let mut places: Vec<_> = workers
        .into_values()
        .map(|all| best_of(all, MOST_OF_ZONE).into_iter())
        .collect();
    // The first of each place before the second of any.
    for _ in 0..MOST_OF_ZONE {
        chosen.extend(places.iter_mut().filter_map(Iterator::next));
    }
    chosen.truncate(MOST);
    let mut choice = Choice {
        of: nodes.len(),
        ..Choice::default()
    };
    for (name, member) in chosen {
        match member {
            Ok(member) => choice.members.push(member),
            Err(why) => choice.unusable.push((name, why)),
        }
    }
    choice
}

/// Those that can take part come first.
fn best_of(mut all: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    all.sort_by_key(|(name, member)| (member.is_err(), name.clone()));
    all.truncate(most);
    all
}

fn read_candidate(group: &Group, node: &k8s::Node) -> Candidate {
    let read = fleet::Node::read(node);
    let member = || -> Result<Member, String> {
        if let Some(why) = &read.reason {
            return Err(format!("it is not Ready: {why}"));
        }
        let address = read.addresses.first();
        let address: Option<IpAddr> = address.and_then(|one| one.parse().ok());
        let settings = group.node.as_ref().map(|settings| &settings.containerd);
        let image = settings.and_then(|settings| settings.sandbox_image.clone());
        Ok(Member {
            name: read.name.clone(),
            group: group.name.clone(),
            address: address.ok_or("its Node has no address")?,
            image: image.ok_or("the spec names no image that it has")?,
            selinux: settings.is_some_and(|settings| settings.selinux_enabled),
        })
    };
    (read.name.clone(), member())
}
