//! Decides whether a member may start under another minor of etcd than the one that ran with its data. etcd goes up one minor at a
//! time, one member after the other, while all others are well (<https://etcd.io/docs/v3.6/upgrades/upgrade_3_6/>,
//! <https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/>). Nothing is shown to kubelet before this decision, and the step that follows it
//! proves a copy of the data with the new etcd.

use super::content::Marker;
use super::member_status::RunningMember;
use super::own_member::{Formed, OwnMember};
use super::step::FormationStep;
/// The step instead of a start, if the data of the member was written under another minor; `None` if it may start.
pub(super) fn gate_version(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    marker: &Marker,
) -> Option<FormationStep> {
    let from = other_minor(own, marker)?;
    if let Some(why) = find_refusal(from, own.version) {
        return Some(FormationStep::Refuse(format!(
            "etcd {from} ran with the data of {own} on {}, and this instance has etcd {}, so it is not started: {why}",
            own.volume, own.version
        )));
    }
    Some(match await_others(own, formed) {
        None => FormationStep::Upgrade {
            marker: Marker {
                etcd_version: Some(own.version.to_owned()),
                ..marker.clone()
            },
            compare_members: is_from_v2_to_v3_store(from),
        },
        Some(why) => FormationStep::Wait(format!(
            "{own} goes from etcd {from} to {} when all other members are well: {why}",
            own.version
        )),
    })
}

/// The version that ran with the data, if it is of another minor than this instance's. What kubelet already sees passed before. A
/// release of kctl without the field in the marker left the version in its manifest; if that names none, nothing is known.
pub(super) fn other_minor<'a>(own: &OwnMember<'a>, marker: &'a Marker) -> Option<&'a str> {
    let from = marker.etcd_version.as_deref().or(own.manifest_version)?;
    let (old, new) = (read_version(from)?, read_version(own.version)?);
    ((old.0, old.1) != (new.0, new.1) && !own.shown).then_some(from)
}

/// The marker once the member serves under this version; `None` if it says so already.
pub fn mark_version(marker: &Marker, version: &str) -> Option<Marker> {
    let known = marker.etcd_version.as_deref();
    // Another minor is written before its first start.
    let is_same_minor = known.is_none_or(|known| minor_of(known) == minor_of(version));
    (marker.member_id.is_some() && known != Some(version) && is_same_minor).then(|| Marker {
        etcd_version: Some(version.to_owned()),
        ..marker.clone()
    })
}

/// True if the list of members of this version is kept as promised. Releases of etcd 3.5 before 3.5.26 may lose promotions (etcd
/// issues 19557 and 20793) and bring back removed members (issue 20967; etcd's blog, "Avoiding Zombie Cluster Members When Upgrading
/// to etcd v3.6", which requires 3.5.26 before 3.6).
pub fn keeps_membership(version: &str) -> bool {
    read_version(version).is_some_and(|version| version >= (3, 5, 26))
}

/// Releases that do not go on to the next minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unready {
    /// Why not.
    pub why: &'static str,
    /// The releases that do: `3.5.26 or newer of 3.5`.
    pub ready: &'static str,
}

/// etcd's blog, "Avoiding Zombie Cluster Members When Upgrading to etcd v3.6".
const FORGETFUL: Unready = Unready {
    why: "releases of etcd before 3.5.26 may have forgotten who is a member, and 3.6 would believe them",
    ready: "3.5.26 or newer of 3.5",
};

/// <https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/>, "Update 3.6".
const INCOMPATIBLE: Unready = Unready {
    why: "releases of etcd 3.6 before 3.6.11 may not work together with 3.7",
    ready: "3.6.11 or newer of 3.6",
};

/// Why a member of this release does not go on to the next minor; `None` if it does, or if it is no version.
pub fn find_unready(version: &str) -> Option<Unready> {
    match read_version(version)? {
        (3, 6, ..=10) => Some(INCOMPATIBLE),
        _ => (!keeps_membership(version)).then_some(FORGETFUL),
    }
}

/// Why etcd cannot go from one version to another minor, and what to do; `None` if it can.
pub fn find_refusal(from: &str, to: &str) -> Option<String> {
    let (old, new) = (read_version(from)?, read_version(to)?);
    let next = (old.0, old.1 + 1);
    let change = "run `kctl update cluster --yes` and replace this control plane";
    if (new.0, new.1) < (old.0, old.1) {
        // "cluster cannot be downgraded" (etcd: `serverversion.MustDetectDowngrade`).
        return Some(format!(
            "kctl takes etcd to no older minor. Set spec.etcdClusters[].version to {from}, {change}"
        ));
    }
    if (new.0, new.1) > next {
        return Some(format!(
            "etcd goes up one minor at a time. Set spec.etcdClusters[].version to a version of {}.{}, {change}",
            next.0, next.1
        ));
    }
    if (new.0, new.1) == next
        && let Some(Unready { why, ready }) = find_unready(from)
    {
        return Some(format!(
            "{why}. Set spec.etcdClusters[].version to {ready}, {change}"
        ));
    }
    None
}

/// Major and minor; `None` if it is no version.
pub(super) fn minor_of(version: &str) -> Option<(u32, u32)> {
    read_version(version).map(|(major, minor, _)| (major, minor))
}

/// Major, minor and patch.
pub(super) fn read_version(version: &str) -> Option<(u32, u32, u32)> {
    let mut parts = version.splitn(3, '.');
    let (major, minor, patch) = (parts.next()?, parts.next()?, parts.next()?);
    let end = patch.find(|one: char| !one.is_ascii_digit());
    let patch = end.and_then(|end| patch.get(..end)).unwrap_or(patch);
    Some((
        major.parse().ok()?,
        minor.parse().ok()?,
        patch.parse().ok()?,
    ))
}

/// Until 3.5, etcd believes the list of members in its v2 store, from 3.6 on the one in its v3 store.
fn is_from_v2_to_v3_store(from: &str) -> bool {
    read_version(from).is_some_and(|version| version < (3, 6, 0))
}

/// What an upgrade waits for; `None`: nothing.
fn await_others(own: &OwnMember<'_>, formed: &Formed<'_>) -> Option<String> {
    let record = formed.record;
    if let Some(other) = &record.replacing {
        return Some(format!(
            "member {} is being replaced or added",
            other.member
        ));
    }
    let others = || record.members.keys().filter(|name| *name != own.member);
    others().next()?;
    match own.live {
        Err(why) => return Some(why.to_owned()),
        Ok(live) if live.cluster_id != formed.cluster_id => {
            return Some(format!(
                "the members that answer belong to etcd cluster {}, and not to {}",
                live.cluster_id, formed.cluster_id
            ));
        }
        Ok(live) => {
            if let Some(learner) = live.members.iter().find(|one| one.learner) {
                return Some(format!(
                    "member {} ({}) does not vote yet",
                    learner.name, learner.id
                ));
            }
        }
    }
    let mut problems = others().filter_map(|name| match own.peers.get(name) {
        None => Some(format!("member {name} was not asked")),
        Some(Err(why)) => Some(format!(
            "member {name} does not answer ({why}). Bring its control plane back; if it is lost for good, `kctl etcd recover`"
        )),
        Some(Ok(peer)) => find_problem(peer, own.version).map(|why| format!("member {name} {why}")),
    });
    problems.next()
}

/// What is wrong with another member, for an upgrade to this version.
fn find_problem(peer: &RunningMember, version: &str) -> Option<String> {
    if peer.leader.is_none() {
        return Some("knows no leader".to_owned());
    }
    if peer.learner {
        return Some("does not vote yet".to_owned());
    }
    if peer.alarms.iter().any(|alarm| alarm == "CORRUPT") {
        return Some("reports that the data of the members differs (CORRUPT)".to_owned());
    }
    let (Some(runs), Some(wanted)) = (minor_of(&peer.version), minor_of(version)) else {
        return Some(format!("runs etcd {}, which is no version", peer.version));
    };
    let is_near = runs.0 == wanted.0 && runs.1.abs_diff(wanted.1) <= 1;
    // One that is there already needs only to know its members.
    let unready = find_unready(&peer.version);
    let unready = unready.filter(|one| runs != wanted || *one == FORGETFUL);
    let version = match unready {
        Some(unready) if is_near => unready.ready,
        None if is_near => return None,
        _ => "the minor after it",
    };
    Some(format!(
        "runs etcd {}: set spec.etcdClusters[].version to {version}, run `kctl update cluster --yes`, and replace its and this control plane",
        peer.version
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_change_from_etcd_3_5_26_on() {
        for (version, keeps) in [
            ("3.4.30", false),
            ("3.5.20", false),
            ("3.5.26", true),
            ("3.5.31", true),
            ("3.6.0", true),
            ("3.6.12-rc.1", true),
            ("", false),
        ] {
            assert_eq!(keeps_membership(version), keeps, "{version}");
        }
    }

    proptest! {
        #[test]
        fn etcd_goes_up_one_minor_from_a_release_that_its_authors_name(
            old in (3_u32..9, 0_u32..40), new in (3_u32..9, 0_u32..40),
        ) {
            let version = |(minor, patch): (u32, u32)| format!("3.{minor}.{patch}");
            let refusal = find_refusal(&version(old), &version(new));
            let is_named = old >= (5, 26) && !(old.0 == 6 && old.1 < 11);
            let goes = new.0 == old.0 || new.0 == old.0 + 1 && is_named;
            prop_assert_eq!(refusal.is_none(), goes, "{:?}", refusal);
        }
    }
}
