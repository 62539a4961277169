//! Which problems an operator has chosen to ignore.

use super::{Finding, FindingKind, Health};
use std::str::FromStr;

/// Problems to ignore: a kind of object, and perhaps the name of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredProblem {
    pub kind: FindingKind,
    /// As in the report. A `*` at its end stands for any text; `None`: every object of the kind.
    pub name: Option<String>,
}

/// Why a text names no problem.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotIgnorable {
    #[error("{0:?} is no kind of object: InstanceGroup, Machine, Node, Pod, etcd")]
    Kind(String),
    #[error("an API that does not answer cannot be ignored: nothing is known of the cluster then")]
    Api,
}

impl FromStr for IgnoredProblem {
    type Err = NotIgnorable;

    /// Reads `KIND` or `KIND/NAME` as the report shows it, in any case.
    fn from_str(text: &str) -> Result<Self, NotIgnorable> {
        let (word, name) = match text.split_once('/') {
            Some((word, name)) => (word, Some(name.to_owned())),
            None => (text, None),
        };
        let kind = match word.to_ascii_lowercase().as_str() {
            "instancegroup" | "ig" => FindingKind::InstanceGroup,
            "machine" | "instance" => FindingKind::Instance,
            "node" => FindingKind::Node,
            "pod" => FindingKind::Pod,
            "etcd" => FindingKind::Etcd,
            "api" => return Err(NotIgnorable::Api),
            _ => return Err(NotIgnorable::Kind(word.to_owned())),
        };
        Ok(Self { kind, name })
    }
}

impl IgnoredProblem {
    fn matches(&self, finding: &Finding) -> bool {
        let has_name = |name: &String| match name.strip_suffix('*') {
            Some(start) => finding.name.starts_with(start),
            None => finding.name == *name,
        };
        self.kind == finding.kind && self.name.as_ref().is_none_or(has_name)
    }
}

impl Health {
    /// Moves problems that are ignored from `findings` to `ignored`.
    #[must_use]
    pub fn ignore(mut self, problems: &[IgnoredProblem]) -> Self {
        let is_ignored = |finding: &Finding| problems.iter().any(|one| one.matches(finding));
        let (ignored, findings) = self.findings.into_iter().partition(is_ignored);
        self.findings = findings;
        self.ignored = ignored;
        self.healthy = self.findings.is_empty();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_named_as_the_report_shows_them() {
        let finding = |kind, name: &str| Finding {
            kind,
            name: name.to_owned(),
            message: String::new(),
            next: None,
        };
        let pod = finding(FindingKind::Pod, "kube-system/coredns-7d9f");
        let group = finding(FindingKind::InstanceGroup, "nodes");
        for (text, of_pod, of_group) in [
            ("Pod", true, false),
            ("pod/kube-system/coredns-*", true, false),
            ("pod/kube-system/coredns", false, false),
            ("Pod/kube-system/coredns-7d9f", true, false),
            ("IG/nodes", false, true),
            ("InstanceGroup", false, true),
            ("Machine/*", false, false),
        ] {
            let ignored: IgnoredProblem = text.parse().unwrap();
            let matched = (ignored.matches(&pod), ignored.matches(&group));
            assert_eq!(matched, (of_pod, of_group), "{text}");
        }
        assert_eq!("api".parse::<IgnoredProblem>(), Err(NotIgnorable::Api));
        assert!("deployment/web".parse::<IgnoredProblem>().is_err());
    }
}
