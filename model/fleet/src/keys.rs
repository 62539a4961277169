//! Which instances have which keys of a keyset, and what a step of a rotation would break: an instance has the keys of the NodeConfig that it
//! was launched with.

use node::config::NodeConfig;
use node::pki::{Keyset, SERVICE_ACCOUNT};
use time::{Duration, OffsetDateTime};

/// How long pods may have tokens of a former control plane. kubelet renews each after 80 percent of its life or after 24 hours, whichever is
/// sooner (kubernetes.io/docs/tasks/configure-pod-container/configure-service-account); pods with a role of AWS have tokens of a day. One hour
/// more, because a former control plane may have signed while the new one was started.
const TOKEN_AGE: Duration = Duration::hours(25);

/// An instance, or the next one of a group.
#[derive(Clone, Debug)]
pub struct KeyHolder {
    /// `i-...`, or the name of an Auto Scaling group.
    pub name: String,
    /// Its instance group, if that is known.
    pub group: Option<String>,
    /// What it was launched with; `None`: not known.
    pub config: Option<NodeConfig>,
    /// When it was launched, in seconds since 1970. `None` for the next one of a group.
    pub launched: Option<i64>,
    /// True for what an Auto Scaling group launches next.
    pub is_next: bool,
}

/// A step of a rotation that needs the instances to be ready for it.
#[derive(Clone, Copy, Debug)]
pub enum KeyStep<'a> {
    /// This key begins to sign.
    Promote(&'a str),
    /// These keys leave the trust bundles.
    Distrust(&'a [String]),
}

/// The instances that have a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyUsers {
    /// Those that trust it.
    pub trusted_by: Vec<String>,
    /// Those that have certificates of it or sign with it.
    pub signed_for: Vec<String>,
    /// Those of which it is not known.
    pub unknown: Vec<String>,
}

impl KeyUsers {
    /// The users of a key. What groups launch next does not count.
    pub fn find(keyset: &Keyset, id: &str, holders: &[KeyHolder]) -> Self {
        let mut users = Self::default();
        for holder in holders.iter().filter(|holder| !holder.is_next) {
            let Some(config) = &holder.config else {
                users.unknown.push(holder.name.clone());
                continue;
            };
            let Some(held) = config.held_ids(keyset) else {
                continue;
            };
            if held.trusted.iter().any(|one| one == id) {
                users.trusted_by.push(holder.name.clone());
            }
            if held.primary == id {
                users.signed_for.push(holder.name.clone());
            }
        }
        users
    }
}

/// Why a step must not be made yet: one line for each instance that could no longer talk to the others. Empty: nothing is in its way.
pub fn find_hindrances(
    keyset: &Keyset,
    step: KeyStep<'_>,
    holders: &[KeyHolder],
    now: OffsetDateTime,
) -> Vec<String> {
    let mut lines: Vec<String> = holders
        .iter()
        .filter_map(|holder| hindrance(keyset, step, holder))
        .collect();
    if matches!(step, KeyStep::Distrust(_)) && keyset.name == SERVICE_ACCOUNT {
        lines.extend(young_tokens(keyset, holders, now));
    }
    lines
}

fn hindrance(keyset: &Keyset, step: KeyStep<'_>, holder: &KeyHolder) -> Option<String> {
    let who = describe(holder);
    let Some(config) = &holder.config else {
        return Some(format!("{who}: its NodeConfig is not known"));
    };
    let held = config.held_ids(keyset)?;
    let what = match step {
        KeyStep::Promote(id) if held.trusted.iter().any(|one| one == id) => return None,
        KeyStep::Promote(_) => "does not trust it yet",
        KeyStep::Distrust(ids) if ids.contains(&held.primary) => "still uses what it signs",
        KeyStep::Distrust(_) => return None,
    };
    Some(format!("{who} {what}"))
}

fn describe(holder: &KeyHolder) -> String {
    let name = &holder.name;
    match (&holder.group, holder.is_next) {
        (_, true) => format!("the next instance of {name}"),
        (Some(group), false) => format!("{name} of {group}"),
        (None, false) => name.clone(),
    }
}

/// Pods have tokens of the former key until kubelet has renewed them.
fn young_tokens(keyset: &Keyset, holders: &[KeyHolder], now: OffsetDateTime) -> Option<String> {
    let signs = |holder: &&KeyHolder| {
        let config = holder.config.as_ref();
        config.is_some_and(|config| config.held_ids(keyset).is_some())
    };
    let signers = holders.iter().filter(signs);
    let youngest = signers.max_by_key(|holder| holder.launched)?;
    let since = OffsetDateTime::from_unix_timestamp(youngest.launched?).ok()?;
    let left = since + TOKEN_AGE - now;
    left.is_positive().then(|| {
        format!(
            "{} was launched less than {} hours ago: pods may have tokens of a former control plane for {} more hours",
            describe(youngest),
            TOKEN_AGE.whole_hours(),
            left.whole_hours() + 1
        )
    })
}
