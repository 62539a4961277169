//! What components run with: command lines and environments of static pods, by the pods that kubelet shows for them, and kubelet's
//! configuration.

use super::seen::Seen;
use super::{CisNode, CisObserved};
use node::components::Flags;
use serde_json::Value;

const ETCD: [&str; 2] = ["etcd-main", "etcd-events"];

const PROXY: &str = "kube-proxy";

/// How a value has to be; of one that is not set, `None`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    Is(&'static str),
    Not(&'static str),
    Set,
    Unset,
    UnsetOr(&'static str),
    /// An address that begins like this.
    UnsetOrOn(&'static str),
    /// A list with this entry.
    Has(&'static str),
    /// A list without this entry, or none.
    Lacks(&'static str),
    /// A list without this entry.
    Without(&'static str),
    /// A number.
    Least(i64),
    /// A list of these entries only.
    Only(&'static [&'static str]),
}

impl Want {
    pub(super) fn holds(self, value: Option<&str>) -> bool {
        let entries = || value.unwrap_or_default().split(',');
        match self {
            Self::Is(wanted) => value == Some(wanted),
            Self::Not(other) => value.is_some_and(|value| value != other),
            Self::Set => value.is_some_and(|value| !value.is_empty()),
            Self::Unset => value.is_none(),
            Self::UnsetOr(wanted) => value.is_none_or(|value| value == wanted),
            Self::UnsetOrOn(host) => value.is_none_or(|value| value.starts_with(host)),
            Self::Has(wanted) => entries().any(|entry| entry == wanted),
            Self::Lacks(other) => entries().all(|entry| entry != other),
            Self::Without(other) => value.is_some() && entries().all(|entry| entry != other),
            Self::Least(least) => {
                let number = value.and_then(|value| value.parse::<i64>().ok());
                number.is_some_and(|number| number >= least)
            }
            Self::Only(known) => value.is_some() && entries().all(|entry| known.contains(&entry)),
        }
    }
}

/// What is seen on each of these nodes, or why nothing is.
pub(super) fn look_at_each<'a>(
    nodes: impl Iterator<Item = &'a CisNode>,
    look: impl Fn(&'a CisNode) -> Result<Vec<Seen>, String>,
) -> Vec<Seen> {
    let seen = nodes.flat_map(|node| {
        let seen = look(node);
        seen.unwrap_or_else(|why| vec![Seen::unseen(&node.name, why)])
    });
    seen.collect()
}

impl CisObserved {
    pub(super) fn control_planes(&self) -> impl Iterator<Item = &CisNode> {
        self.nodes.iter().filter(|node| node.control_plane)
    }

    /// The objects of a list, or why they are not known.
    pub(super) fn list(&self, resource: &str) -> Result<&[Value], String> {
        match self.lists.get(resource) {
            Some(Ok(list)) => Ok(list),
            Some(Err(why)) => Err(format!("{resource}: {why}")),
            None => Err(format!("{resource} were not read")),
        }
    }

    /// The container of a component's static pod on a node.
    fn container(&self, component: &str, node: &CisNode) -> Result<&Value, String> {
        let mut pods = self.list("pods")?.iter();
        let pod = pods.find(|pod| {
            let is = |pointer: &str, wanted: &str| text(pod, pointer) == wanted;
            // Pods that are not static may have any label.
            let mirror = "/metadata/annotations/kubernetes.io~1config.mirror";
            is("/metadata/namespace", "kube-system")
                && is("/metadata/labels/k8s-app", component)
                && is("/spec/nodeName", &node.name)
                && pod.pointer(mirror).is_some()
        });
        let container = pod.and_then(|pod| pod.pointer("/spec/containers/0"));
        container.ok_or_else(|| format!("{component} is not among its static pods"))
    }

    /// A component's flags on each control plane.
    pub(super) fn flags(&self, component: &str, names: &[&str], want: Want) -> Vec<Seen> {
        look_at_each(self.control_planes(), |node| {
            let flags = flags_of(self.container(component, node)?);
            let value = |name: &str| flags.get(name).map(str::to_owned);
            Ok(judge_values(node, "--", names, value, want))
        })
    }

    /// A flag of kube-proxy on every node, where it runs at all.
    pub(super) fn proxy_flag(&self, name: &str, want: Want) -> Vec<Seen> {
        let runs = |node| self.container(PROXY, node).is_ok();
        if self.list("pods").is_ok() && !self.nodes.is_empty() && !self.nodes.iter().any(runs) {
            return vec![Seen::judged("", "kube-proxy does not run", true)];
        }
        look_at_each(self.nodes.iter(), |node| {
            let flags = flags_of(self.container(PROXY, node)?);
            let value = |name: &str| flags.get(name).map(str::to_owned);
            Ok(judge_values(node, "--", &[name], value, want))
        })
    }

    /// Environment variables of every etcd member.
    pub(super) fn etcd(&self, names: &[&str], want: Want) -> Vec<Seen> {
        let of = |member: &str| {
            look_at_each(self.control_planes(), |node| {
                let env = items(self.container(member, node)?, "/env");
                let value = |name: &str| {
                    let variable = env.iter().find(|one| text(one, "/name") == name)?;
                    variable.get("value").map(plain_text)
                };
                Ok(judge_values(node, "", names, value, want))
            })
        };
        ETCD.into_iter().flat_map(of).collect()
    }

    /// A field of the configuration that every kubelet runs with, by its JSON pointer.
    pub(super) fn kubelet(&self, field: &str, want: Want) -> Vec<Seen> {
        look_at_each(self.nodes.iter(), |node| {
            let config = node.kubelet.as_ref().map_err(Clone::clone)?;
            let name = field.trim_start_matches('/').replace('/', ".");
            let value = |_: &str| config.pointer(field).map(plain_text);
            Ok(judge_values(node, "", &[name.as_str()], value, want))
        })
    }
}

fn flags_of(container: &Value) -> Flags {
    let arguments = items(container, "/args").iter();
    let arguments = arguments.filter_map(|argument| argument.as_str().map(str::to_owned));
    Flags::from(arguments.collect::<Vec<_>>())
}

fn judge_values(
    node: &CisNode,
    prefix: &str,
    names: &[&str],
    value: impl Fn(&str) -> Option<String>,
    want: Want,
) -> Vec<Seen> {
    let judge = |name: &&str| {
        let value = value(name);
        let said = match &value {
            Some(value) => format!("{prefix}{name}={value}"),
            None => format!("{prefix}{name} is not set"),
        };
        Seen::judged(&node.name, said, want.holds(value.as_deref()))
    };
    names.iter().map(judge).collect()
}

/// A value as a flag would have it.
fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(plain_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The text at this path; empty if there is none.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// The list at this path; empty if there is none.
pub(super) fn items<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default()
}
