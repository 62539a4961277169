//! Decides the next step for the volume that an instance holds, from the record and the volume's content. After each step everything is
//! observed again, so an instance that dies between two steps continues where it was. What is done stands in tables, of which the first
//! row that fits decides; `docs/control-plane.md` shows them.

use super::content::VolumeContent;
use super::formed::FORMED;
use super::founding::{FORMING, Forming, WITHOUT_RECORD};
use super::leave::decide_removed;
use super::own_member::{Formed, OwnMember};
use super::record::FormationRecord;
use super::recover::{NEXT, stop_damaged};
use super::replace::begin_replacement;
use super::retired::{is_given_up, may_begin};
use super::step::FormationStep;
use super::table::Row;
use super::volume_owner::describe_content;

type WhateverRecorded =
    fn(&OwnMember<'_>, Option<&FormationRecord>, &VolumeContent) -> Option<FormationStep>;

/// Whatever the record says.
const DAMAGED: [Row<WhateverRecorded>; 2] = [
    Row {
        when: "a file system with errors, while `next` on another member is ready",
        then: "stop, and say so in the record; what the log had is not known",
        step: |own, record, content| match content {
            VolumeContent::Damaged(_) => stop_damaged(own, record?, content),
            _ => None,
        },
    },
    Row {
        when: "a file system with errors",
        then: "refuse",
        step: |own, _, content| match content {
            VolumeContent::Damaged(why) => Some(FormationStep::Refuse(format!(
                "the file system of {}, with {own}, has errors: {why}",
                own.volume
            ))),
            _ => None,
        },
    },
];

type WithoutMember = fn(&OwnMember<'_>, &FormationRecord, &VolumeContent) -> Option<FormationStep>;

/// The record has no member of this name.
const WITHOUT_MEMBER: [Row<WithoutMember>; 5] = [
    Row {
        when: "anything, and the record has the name in `leaving`",
        then: "hide the manifest: the member [was removed](#removal-of-members)",
        step: |own, record, content| {
            let has_left = record.has_left(own.member);
            has_left.then(|| decide_removed(own, record, content))
        },
    },
    Row {
        when: "this member's data of an etcd cluster that was given up, and kubelet sees its manifest",
        then: "hide the manifest",
        step: |own, record, content| {
            let is_given_up = own.shown && is_given_up(own, record, content);
            is_given_up.then(|| {
                FormationStep::Withdraw(format!(
                    "the data of member {} on {} is of an etcd cluster that was given up",
                    own.member, own.volume
                ))
            })
        },
    },
    Row {
        when: "anything, and the record has `next`",
        then: "wait: the member joins afterwards",
        step: |own, record, _| {
            let next = record.next.as_ref()?;
            Some(FormationStep::Wait(format!(
                "etcd {} is being recovered from member {}; member {} joins afterwards",
                own.etcd, next.from, own.member
            )))
        },
    },
    Row {
        when: "blank, an empty file system, prepared for a member that never ran, this member's data of a cluster that was given up, or data of a \
               member of this name that was retired",
        then: "[add the member](#replacement-and-addition-of-members) once the cluster exists",
        step: |own, record, content| {
            may_begin(own, record, content).then(|| match record.cluster_id() {
                Some(cluster_id) => begin_replacement(own, record, cluster_id, content),
                None => FormationStep::Wait(format!(
                    "etcd {} is being formed without member {}, which joins afterwards",
                    own.etcd, own.member
                )),
            })
        },
    },
    Row {
        when: "anything else",
        then: "leave running what runs, start nothing",
        step: |own, _, content| {
            Some(FormationStep::Ask(format!(
                "etcd {} is recorded without member {}, and {} {}: nothing on it is changed. A member is added on a blank volume; to add this \
                 one anew, wipe {} with wipefs and blkdiscard; otherwise remove member {} from the spec",
                own.etcd,
                own.member,
                own.volume,
                describe_content(content),
                own.volume,
                own.member
            )))
        },
    },
];

/// Decides the next step for a member.
pub fn decide_step(
    own: &OwnMember<'_>,
    record: Option<&FormationRecord>,
    content: &VolumeContent,
) -> FormationStep {
    let mut damaged = DAMAGED.iter();
    let step = damaged.find_map(|row| (row.step)(own, record, content));
    let step = step.or_else(|| decide_by_record(own, record, content));
    // The last row of each table fits always.
    step.unwrap_or_else(|| FormationStep::Ask("no rule fits: this is a defect".to_owned()))
}

fn decide_by_record(
    own: &OwnMember<'_>,
    record: Option<&FormationRecord>,
    content: &VolumeContent,
) -> Option<FormationStep> {
    let Some(record) = record else {
        let mut rows = WITHOUT_RECORD.iter();
        return rows.find_map(|row| (row.step)(own, content));
    };
    let Some(recorded) = record.members.get(own.member) else {
        let mut rows = WITHOUT_MEMBER.iter();
        return rows.find_map(|row| (row.step)(own, record, content));
    };
    let Some(cluster_id) = record.cluster_id() else {
        let forming = Forming { record, recorded };
        let mut rows = FORMING.iter();
        return rows.find_map(|row| (row.step)(own, &forming, content));
    };
    let formed = Formed {
        record,
        recorded,
        cluster_id,
        token: &record.generation.token,
    };
    match &record.next {
        Some(next) => {
            let mut rows = NEXT.iter();
            rows.find_map(|row| (row.step)(own, (&formed, next), content))
        }
        None => {
            let mut rows = FORMED.iter();
            rows.find_map(|row| (row.step)(own, &formed, content))
        }
    }
}

/// All tables as they stand in `docs/control-plane.md`: Markdown.
#[cfg(test)]
fn print_tables() -> String {
    fn rows<F>(of: &[Row<F>]) -> String {
        let lines = of
            .iter()
            .map(|row| format!("| {} | {} |\n", row.when, row.then));
        lines.collect()
    }
    [
        ("Whatever the record says", rows(&DAMAGED)),
        ("No record", rows(&WITHOUT_RECORD)),
        (
            "A record without a member of this name",
            rows(&WITHOUT_MEMBER),
        ),
        ("A record without `clusterId`", rows(&FORMING)),
        ("A record with `next`", rows(&NEXT)),
        ("A record of an etcd cluster that exists", rows(&FORMED)),
    ]
    .map(|(title, rows)| format!("{title}:\n\n| the volume | then |\n|---|---|\n{rows}"))
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_tables_by_which_a_member_decides() {
        let page = include_str!("../../../docs/control-plane.md");
        let tables = print_tables();
        assert!(
            page.contains(&tables),
            "docs/control-plane.md lacks:\n{tables}"
        );
    }
}
