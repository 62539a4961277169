//! What a member does next.

use super::content::{JoiningMember, Marker};
use super::live::MemberChange;
use super::log::LogIdentity;
use super::own_member::OwnMember;
use super::record::{FormationRecord, NextGeneration, RestoredSnapshot};
use node::components::EtcdStart;

/// The next step for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormationStep {
    /// Write this record, provided that the stored one has not changed since it was read.
    Record(FormationRecord),
    /// Make a file system; the volume was blank.
    Format,
    /// Write the marker, and create the data folder if the member starts for the first time.
    Mark {
        marker: Marker,
        /// True if the data folder must be created.
        new: bool,
    },
    /// Move the lost data aside on its volume, and prepare the volume for a new member with this marker.
    SetAside { marker: Marker },
    /// Write this marker, and let kubelet start the member with an empty data folder, to join its cluster for the first time.
    Join {
        marker: Marker,
        /// What the marker says of it.
        joins: JoiningMember,
    },
    /// Let kubelet start the member.
    Start(EtcdStart),
    /// Stop the member and hide it from kubelet; once it is stopped, write this marker, and record that with [`super::mark_stopped`].
    Stop {
        /// The marker of the volume's data; `None` if the volume holds no data of a member, or has errors.
        marker: Option<Marker>,
        /// True if the file system has errors: nobody knows how far the log reaches, and nothing is written.
        damaged: bool,
    },
    /// Make sure that this instance can restore the member's data, then write this record like [`Self::Record`].
    PrepareRestore(FormationRecord),
    /// Stop the member. Restore the source of this generation as the log of a new cluster beside its data, if [`super::find_newer`] finds
    /// nothing, and record that with [`super::end_recovery`].
    Restore(NextGeneration),
    /// Move the old data aside, put the restored data in its place, and write this marker.
    UseRestored {
        marker: Marker,
        /// The ids of the restored log.
        restored: LogIdentity,
        /// What was restored in the place of the member's data.
        snapshot: Option<RestoredSnapshot>,
    },
    /// The data is of the etcd minor before: prove a copy of it with this instance's etcd, keep another copy, and write this marker.
    Upgrade {
        marker: Marker,
        /// True if the lists of members in etcd's v2 and v3 store must be equal, because another one is believed from now on.
        compare_members: bool,
    },
    /// Let kubelet start the member, as one of an existing cluster, and report what the removal of another one waits for.
    Continue { waits: String },
    /// Change the list of members. The id of an added one goes into the record at once. One that shall vote has to run.
    Change(MemberChange),
    /// Wait for other members or volumes; the text is the reason.
    Wait(String),
    /// Hide the member's manifest from kubelet. Nobody has to act; the text is the reason.
    Withdraw(String),
    /// Do not run the data on the volume and hide its manifest from kubelet. An operator must act; the text says why and how.
    Refuse(String),
    /// Record and volume contradict each other. A running member continues, and nothing new begins. An operator must act; the text
    /// says why and how.
    Ask(String),
}

impl FormationStep {
    /// True if the step writes to the file system of the volume, which must be mounted.
    pub fn writes_to_volume(&self) -> bool {
        matches!(
            self,
            Self::Mark { .. }
                | Self::SetAside { .. }
                | Self::Join { .. }
                | Self::Start(_)
                | Self::Restore(_)
                | Self::UseRestored { .. }
        )
    }
}

/// What EC2 says once may be old.
pub(super) fn wait_for_second_answer(own: &OwnMember<'_>, volume: &str) -> FormationStep {
    FormationStep::Wait(format!(
        "EC2 says that {volume}, the volume of {own}, does not exist; EC2 is asked again in a minute"
    ))
}
