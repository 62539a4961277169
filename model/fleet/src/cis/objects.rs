//! What the objects of the API say: who may do what, which pods are taken, and how namespaces are set up.

use super::components::{items, text};
use super::seen::Seen;
use super::{CisObserved, PodAdmission};
use serde_json::Value;
use std::collections::BTreeSet;

/// Namespaces of Kubernetes itself.
fn is_own(namespace: &str) -> bool {
    namespace.starts_with("kube-")
}

/// Roles and bindings that every API server makes.
fn is_default(object: &Value) -> bool {
    text(object, "/metadata/labels/kubernetes.io~1bootstrapping") == "rbac-defaults"
}

/// `NAMESPACE/NAME`, or the name of what is in no namespace.
fn full_name(object: &Value) -> String {
    let name = text(object, "/metadata/name");
    match text(object, "/metadata/namespace") {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

impl CisObserved {
    /// The objects of a list for which there is something to say; if there are none, `none` is right.
    fn judge_objects(
        &self,
        resource: &str,
        none: &str,
        say: impl Fn(&Value) -> Option<String>,
    ) -> Vec<Seen> {
        let list = match self.list(resource) {
            Ok(list) => list,
            Err(why) => return vec![Seen::unseen("", why)],
        };
        let found = list
            .iter()
            .filter_map(|object| Some(Seen::judged(&full_name(object), say(object)?, false)));
        or_right(found.collect(), none)
    }

    /// Whom roles let do one of these with one of these resources, besides what Kubernetes sets up itself.
    pub(super) fn who_may(&self, verbs: &[&str], resources: &[&str]) -> Vec<Seen> {
        let has = |rule: &Value, field: &str, wanted: &[&str]| {
            let mut entries = items(rule, field).iter().filter_map(Value::as_str);
            entries.any(|entry| entry == "*" || wanted.contains(&"*") || wanted.contains(&entry))
        };
        let allows = |role: &&Value| {
            let mut rules = items(role, "/rules").iter();
            rules.any(|rule| has(rule, "/verbs", verbs) && has(rule, "/resources", resources))
        };
        let names = |resource: &str| -> Result<BTreeSet<String>, String> {
            let roles = self.list(resource)?.iter();
            Ok(roles.filter(allows).map(full_name).collect())
        };
        let (cluster_roles, roles) = match (names("clusterroles"), names("roles")) {
            (Ok(cluster_roles), Ok(roles)) => (cluster_roles, roles),
            (Err(why), _) | (_, Err(why)) => return vec![Seen::unseen("", why)],
        };
        let mut seen = Vec::new();
        for resource in ["clusterrolebindings", "rolebindings"] {
            let bindings = match self.list(resource) {
                Ok(bindings) => bindings,
                Err(why) => return vec![Seen::unseen("", why)],
            };
            for binding in bindings.iter().filter(|binding| !is_default(binding)) {
                let name = text(binding, "/roleRef/name");
                let bound = match text(binding, "/roleRef/kind") {
                    "Role" => {
                        let namespace = text(binding, "/metadata/namespace");
                        roles.contains(&format!("{namespace}/{name}"))
                    }
                    _ => cluster_roles.contains(name),
                };
                if bound {
                    seen.extend(judge_subjects(binding));
                }
            }
        }
        or_right(seen, "nobody but by the roles of Kubernetes itself")
    }

    pub(super) fn cluster_admins(&self) -> Vec<Seen> {
        let list = match self.list("clusterrolebindings") {
            Ok(list) => list,
            Err(why) => return vec![Seen::unseen("", why)],
        };
        let bound = list.iter().filter(|binding| {
            !is_default(binding) && text(binding, "/roleRef/name") == "cluster-admin"
        });
        or_right(
            bound.flat_map(judge_subjects).collect(),
            "only the binding of Kubernetes itself, to system:masters",
        )
    }

    pub(super) fn wildcards(&self) -> Vec<Seen> {
        let say = |role: &Value| {
            let mut rules = items(role, "/rules").iter();
            let wild = rules.any(|rule| {
                let fields = ["/verbs", "/resources", "/apiGroups"];
                let mut entries = fields.iter().flat_map(|field| items(rule, field));
                entries.any(|entry| entry == "*")
            });
            (wild && !is_default(role)).then(|| "has *".to_owned())
        };
        let mut seen = self.judge_objects("clusterroles", "no ClusterRole has *", say);
        seen.extend(self.judge_objects("roles", "no Role has *", say));
        seen
    }

    pub(super) fn default_accounts(&self) -> Vec<Seen> {
        self.judge_objects("serviceaccounts", "none gives tokens", |account| {
            let off = account.pointer("/automountServiceAccountToken") == Some(&Value::Bool(false));
            let default = text(account, "/metadata/name") == "default";
            (default && !off).then(|| "automountServiceAccountToken is not false".to_owned())
        })
    }

    /// Whether every namespace but those of Kubernetes itself takes no pods below a Pod Security Standard.
    pub(super) fn admits_only(&self, standard: &PodAdmission) -> Vec<Seen> {
        let own = self.admission.iter().filter(|(name, _)| !is_own(name));
        own.map(|(namespace, admission)| match admission {
            PodAdmission::Everything => Seen::judged(namespace, "takes every pod", false),
            PodAdmission::Restricted => Seen::judged(namespace, "enforces restricted", true),
            PodAdmission::Baseline => {
                let right = *standard == PodAdmission::Baseline;
                Seen::judged(namespace, "enforces baseline", right)
            }
            PodAdmission::NotKnown(why) => Seen::unseen(namespace, why),
        })
        .collect()
    }

    pub(super) fn network_policies(&self) -> Vec<Seen> {
        let policies = match self.list("networkpolicies") {
            Ok(policies) => policies,
            Err(why) => return vec![Seen::unseen("", why)],
        };
        let with: BTreeSet<&str> = policies
            .iter()
            .map(|policy| text(policy, "/metadata/namespace"))
            .collect();
        self.judge_objects("namespaces", "every namespace has one", |namespace| {
            let name = text(namespace, "/metadata/name");
            (!is_own(name) && !with.contains(name)).then(|| "has no NetworkPolicy".to_owned())
        })
    }
}

fn or_right(found: Vec<Seen>, none: &str) -> Vec<Seen> {
    if found.is_empty() {
        return vec![Seen::judged("", none, true)];
    }
    found
}

/// The subjects of a binding that is for somebody to judge.
fn judge_subjects(binding: &Value) -> Vec<Seen> {
    let subjects = items(binding, "/subjects").iter();
    let name = full_name(binding);
    let say = |subject: &Value| {
        let kind = text(subject, "/kind");
        let who = match text(subject, "/namespace") {
            "" => text(subject, "/name").to_owned(),
            namespace => format!("{namespace}/{}", text(subject, "/name")),
        };
        Seen::judged(&format!("binding {name}"), format!("{kind} {who}"), false)
    };
    subjects.map(say).collect()
}
