//! What protokube of a control plane waits for or refuses, from the state store: ordered by cause, with a next step.

use crate::Instance;
use node::duration::duration_text;
use node::next_step::next_step;
use node::report::{PROTOKUBE, Status};
use node::waits::{Wait, Waits};
use serde::Serialize;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// protokube's roles that lead to an API server, each needed by the next ones.
pub(crate) const API_SERVER_ROLES: [&str; 4] = ["etcd-main", "etcd-events", "health", "manifests"];

/// Seconds in which a role other than etcd's may fail without a fault: roles start concurrently, and most of them fail
/// or wait until the API answers.
const GRACE_SECONDS: i64 = 120;

/// One thing that a role of protokube waits for or refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleWait {
    /// The role: `etcd-main`.
    pub role: String,
    /// The part of the role, for example `member b`; empty for the role as a whole.
    pub about: String,
    /// `failed` if the role failed or refused, `started` if it waits.
    pub status: Status,
    /// Why, with its causes.
    pub message: String,
    /// Since when, RFC 3339, by the instance's clock. The message may have changed since.
    pub since: String,
    /// What to do about it.
    pub next: Option<String>,
    /// Seconds since then; `None` if `since` cannot be read.
    #[serde(skip)]
    pub seconds: Option<i64>,
}

impl RoleWait {
    fn from_wait(wait: Wait, now: OffsetDateTime) -> Self {
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

    /// The boot stage of the role: `protokube/etcd-main`.
    pub fn stage(&self) -> String {
        format!("{PROTOKUBE}/{}", self.role)
    }

    /// What it is about, and why: `member b: its log is gone`.
    pub fn text(&self) -> String {
        if self.about.is_empty() {
            return self.message.clone();
        }
        format!("{}: {}", self.about, self.message)
    }

    /// All of it in one line: `protokube/etcd-main: member b: its log is gone (for 3m20s)`.
    pub fn one_line(&self) -> String {
        let time = self
            .seconds
            .map(|seconds| format!(" (for {})", duration_text(seconds)));
        let time = time.unwrap_or_default();
        format!("{}: {}{time}", self.stage(), self.text())
    }

    /// If it waits for a volume that another of these instances has: adds what Auto Scaling does with that instance.
    pub(crate) fn append_holder(&mut self, instances: &BTreeMap<&str, &Instance>) {
        append_holder(&mut self.message, instances);
    }

    /// True if the control plane is unhealthy for it: at once for etcd, on which all else depends, after
    /// [`GRACE_SECONDS`] for any other role.
    fn is_unhealthy(&self) -> bool {
        self.rank() == 0 || self.seconds.is_none_or(|seconds| seconds >= GRACE_SECONDS)
    }

    /// Smaller for roles on which others depend. The roles of both etcd clusters have the same rank: they do not
    /// depend on each other.
    fn rank(&self) -> usize {
        let role = self.role.as_str();
        if role.starts_with("etcd-") {
            return 0;
        }
        let place = API_SERVER_ROLES.iter().position(|cause| *cause == role);
        place.unwrap_or(API_SERVER_ROLES.len())
    }
}

/// What a control plane reported, causes first.
pub fn role_waits(reported: Waits, now: OffsetDateTime) -> Vec<RoleWait> {
    let waits = reported.waits.into_iter();
    let mut all: Vec<RoleWait> = waits.map(|wait| RoleWait::from_wait(wait, now)).collect();
    all.sort_by_key(|one| (one.rank(), one.status != Status::Failed));
    all
}

/// The waits for which a control plane is unhealthy, without those that may follow from others of them.
pub fn unhealthy_waits(all: &[RoleWait]) -> impl Iterator<Item = &RoleWait> {
    let unhealthy = all.iter().filter(|one| one.is_unhealthy());
    let first = unhealthy.clone().map(RoleWait::rank).min();
    unhealthy.filter(move |one| Some(one.rank()) == first)
}

/// Completes a text that says to which instance a volume is `attached to` with what Auto Scaling does with that
/// instance.
pub(crate) fn append_holder(text: &mut String, instances: &BTreeMap<&str, &Instance>) {
    let Some((_, after)) = text.split_once("attached to ") else {
        return;
    };
    let id: String = after
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
        .collect();
    if let Some(lifecycle) = instances.get(id.as_str()).and_then(|of| lifecycle_text(of)) {
        text.push_str(&lifecycle);
    }
}

/// What Auto Scaling does with an instance that is not in service. `Terminating:Wait` lasts until the group's lifecycle
/// hook is completed or times out (<https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html>); the
/// hooks that kctl creates time out after 300 seconds.
fn lifecycle_text(instance: &Instance) -> Option<String> {
    let lifecycle = instance.lifecycle.as_deref()?;
    if lifecycle == "InService" {
        return None;
    }
    let group = instance.scaling_group.as_deref().unwrap_or_default();
    let until = if lifecycle == "Terminating:Wait" {
        " until the group's lifecycle hook is completed or times out, after 300 seconds for hooks of kctl"
    } else {
        ""
    };
    let id = &instance.id;
    Some(format!(
        " ({id} is {lifecycle} in the Auto Scaling group {group}{until})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000 + seconds).unwrap()
    }

    /// The waits of these roles, so many seconds after all of them failed.
    fn waits_after(roles: &[&str], seconds: i64) -> Vec<RoleWait> {
        let since = at(0).format(&Rfc3339).unwrap();
        let wait = |role: &&str| Wait {
            since: since.clone(),
            ..Wait::new(role, "", Status::Failed, "no")
        };
        let waits = roles.iter().map(wait).collect();
        role_waits(Waits::new("i-1", "", "", waits), at(seconds))
    }

    #[test]
    fn roles_that_others_depend_on_come_first_and_hide_them() {
        let unhealthy = |roles: &[&str]| {
            let all = waits_after(roles, GRACE_SECONDS);
            assert_eq!(all.len(), roles.len());
            let roles: Vec<&str> = unhealthy_waits(&all).map(|one| one.role.as_str()).collect();
            roles.join(" ")
        };
        let all = [
            "addons",
            "dns",
            "etcd-events",
            "etcd-main",
            "labels",
            "manifests",
        ];
        assert_eq!(unhealthy(&all), "etcd-events etcd-main");
        assert_eq!(unhealthy(&["addons", "dns", "manifests"]), "manifests");
        assert_eq!(unhealthy(&["addons", "dns"]), "addons dns");
    }

    #[test]
    fn etcd_counts_at_once_and_other_roles_after_the_grace_period() {
        for (role, seconds, counts) in [
            ("etcd-main", 0, true),
            ("dns", GRACE_SECONDS - 1, false),
            ("ready", GRACE_SECONDS - 1, false),
            ("dns", GRACE_SECONDS, true),
        ] {
            let all = waits_after(&[role], seconds);
            assert_eq!(
                unhealthy_waits(&all).count() == 1,
                counts,
                "{role} {seconds}"
            );
        }
    }
}
