//! What protokube of a control plane waits for or refuses, as it left it in the state store.

use super::next::next_step;
use super::start::{CAUSES, PROTOKUBE, name_holder};
use crate::duration::words;
use aws_cloud::fleet::Instance;
use node::report::Status;
use node::waits::{Wait, Waits};
use serde::Serialize;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Roles begin side by side, and most fail or wait until the API is there. So long that is no fault, in seconds.
const BEGINNING: i64 = 120;

/// One thing of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// protokube's role: `etcd-main`.
    pub role: String,
    /// What of the role's: `member b`; empty: all of it.
    pub about: String,
    /// `failed`, or `started` of what it waits for.
    pub status: Status,
    /// Why, with its causes.
    pub message: String,
    /// Since when the role has not been well there, RFC 3339, by the machine's clock.
    pub since: String,
    /// What to do about it.
    pub next: Option<String>,
    /// How long that is, in seconds.
    #[serde(skip)]
    pub seconds: Option<i64>,
}

impl Waiting {
    fn of(wait: Wait, now: OffsetDateTime) -> Self {
        let since = OffsetDateTime::parse(&wait.since, &Rfc3339).ok();
        let stage = format!("{PROTOKUBE}/{}", wait.role);
        Self {
            next: next_step(&stage, &wait.message),
            seconds: since.map(|since| (now - since).whole_seconds()),
            status: if wait.failed {
                Status::Failed
            } else {
                Status::Started
            },
            role: wait.role,
            about: wait.about,
            message: wait.message,
            since: wait.since,
        }
    }

    /// `protokube/etcd-main`, as consoles have it.
    pub fn stage(&self) -> String {
        format!("{PROTOKUBE}/{}", self.role)
    }

    /// What it is about, and why.
    pub fn said(&self) -> String {
        if self.about.is_empty() {
            return self.message.clone();
        }
        format!("{}: {}", self.about, self.message)
    }

    /// All of it in one line: `protokube/etcd-main: member b: its log is gone (for 3m20s)`.
    pub fn line(&self) -> String {
        let time = self
            .seconds
            .map(|seconds| format!(" (for {})", words(seconds)));
        format!(
            "{}: {}{}",
            self.stage(),
            self.said(),
            time.unwrap_or_default()
        )
    }

    /// True if the machine is not as it should be for it. etcd is what all else rests on, and counts at once.
    fn is_fault(&self) -> bool {
        self.rank() == 0 || self.seconds.is_none_or(|seconds| seconds >= BEGINNING)
    }

    /// Smaller for what others wait for; roles of one etcd cluster do not wait for those of another.
    fn rank(&self) -> usize {
        let role = self.role.as_str();
        if role.starts_with("etcd-") {
            return 0;
        }
        let place = CAUSES.iter().position(|cause| *cause == role);
        place.unwrap_or(CAUSES.len())
    }

    /// What Auto Scaling does with the machine that has what it waits for.
    pub(super) fn name_holders(&mut self, machines: &BTreeMap<&str, &Instance>) {
        name_holder(&mut self.message, machines);
    }
}

/// All that a machine said, the causes first.
pub(super) fn waiting(said: Waits, now: OffsetDateTime) -> Vec<Waiting> {
    let all = said.waits.into_iter();
    let mut all: Vec<Waiting> = all.map(|wait| Waiting::of(wait, now)).collect();
    all.sort_by_key(|one| (one.rank(), one.status != Status::Failed));
    all
}

/// Those for which the machine is not as it should be, but for what may follow from others of them.
pub fn faults(all: &[Waiting]) -> impl Iterator<Item = &Waiting> {
    let faults = all.iter().filter(|one| one.is_fault());
    let first = faults.clone().map(Waiting::rank).min();
    faults.filter(move |one| Some(one.rank()) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000 + seconds).unwrap()
    }

    /// What a machine said of these roles a while ago, as it is shown.
    fn shown(roles: &[&str], seconds: i64) -> Vec<Waiting> {
        let since = at(0).format(&Rfc3339).unwrap();
        let wait = |role: &&str| Wait {
            since: since.clone(),
            ..Wait::new(role, "", Status::Failed, "no")
        };
        let waits = roles.iter().map(wait).collect();
        waiting(Waits::of("i-1", "", "", waits), at(seconds))
    }

    fn roles<'a>(all: impl Iterator<Item = &'a Waiting>) -> Vec<&'a str> {
        all.map(|one| one.role.as_str()).collect()
    }

    #[test]
    fn what_others_wait_for_comes_first_and_hides_them() {
        let faults_of = |said: &[&str]| {
            let all = shown(said, BEGINNING);
            assert_eq!(all.len(), said.len());
            roles(faults(&all)).join(" ")
        };
        let all = [
            "addons",
            "dns",
            "etcd-events",
            "etcd-main",
            "labels",
            "manifests",
        ];
        assert_eq!(faults_of(&all), "etcd-events etcd-main");
        assert_eq!(faults_of(&["addons", "dns", "manifests"]), "manifests");
        assert_eq!(faults_of(&["addons", "dns"]), "addons dns");
    }

    #[test]
    fn etcd_counts_at_once_and_other_roles_once_they_had_time_to_begin() {
        for (role, seconds, counts) in [
            ("etcd-main", 0, true),
            ("dns", BEGINNING - 1, false),
            ("ready", BEGINNING - 1, false),
            ("dns", BEGINNING, true),
        ] {
            let all = shown(&[role], seconds);
            assert_eq!(faults(&all).count() == 1, counts, "{role} {seconds}");
        }
    }
}
