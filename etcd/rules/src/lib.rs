//! The rules of etcd clusters: which volume an instance takes, what the record in the state store says, and the next step that follows
//! from both; backups; what is wrong by what the members report. protokube carries the steps out. No I/O, no clock, no randomness.

mod advice;
pub mod backup;
mod choose;
mod command;
mod content;
mod decide;
mod ending;
#[cfg(test)]
mod findings_test;
mod first_look;
mod forget;
#[cfg(test)]
mod forget_test;
mod formed;
mod founding;
#[cfg(test)]
mod laws_test;
mod leave;
mod live;
mod log;
mod log_end;
mod log_position;
mod manifest;
mod member_list;
#[cfg(test)]
mod member_list_test;
mod member_status;
mod own_member;
mod problems;
mod record;
mod recover;
#[cfg(test)]
mod recover_test;
mod replace;
#[cfg(test)]
mod replace_test;
mod restore;
#[cfg(test)]
mod restore_test;
mod retired;
mod revisions;
mod step;
mod successors;
mod table;
mod upgrade;
mod upkeep;
mod upkeep_claim;
mod version_gate;
#[cfg(test)]
mod version_gate_test;
mod volume_owner;

pub use advice::describe_restore;
pub use choose::{
    Choice, Holder, SeenVolume, VolumeRequest, all_members, choose_volume, device_name,
    named_volume, unseen_volumes, volume_tag,
};
pub use command::{
    COMMAND_FORMAT, COMMAND_KEPT, COMMAND_LIMIT, COMMANDS_PREFIX, CommandState, CommandStep,
    EtcdCommand, LOST_CLAIM, Verb, command_id, command_key,
};
pub use content::{
    EtcdLog, FileSystemContent, JoiningMember, LOG_FOLDER, LastSeen, MARKER, Marker, VolumeContent,
    data_folder, manifest_on_volume,
};
pub use decide::decide_step;
pub use ending::find_ending_risk;
pub use first_look::{FirstLook, may_open, may_reopen};
pub use forget::{forget_member, found_anew};
pub use formed::{foreign_cluster, mark_formed};
pub use leave::set_leaving;
pub use live::{LiveCluster, LiveMember, MemberChange};
pub use log::{LOG_HEAD, LogIdentity, NotALog, log_identity};
pub use log_end::{LastEntry, LogEnd, last_entry_of, read_log_end};
pub use log_position::{LogPosition, read_log_position};
pub use manifest::{ManifestError, as_existing, has_founded, manifest_version};
pub use member_list::{
    ListedPeer, MemberList, MembershipLog, describe_difference, parse_member_list,
};
pub use member_status::{
    ListedMember, MEMBER_STATUS_FORMAT, MEMBER_STATUS_LIMIT, MemberStatus, RaisedAlarm,
    RunningMember, member_name_matches, member_status_key, member_status_prefix,
    read_member_status,
};
pub use own_member::{OwnMember, Peers};
pub use problems::{ReportedMember, describe_members, find_etcd_problems, find_slow_disks};
pub use record::{
    FormationRecord, FormedClusters, Generation, Leaving, MemberSource, NextGeneration,
    RecordedMember, RefusedRestore, Replacing, RestoredChanges, RestoredSnapshot, RetiredCluster,
    Source, backups_prefix, formed_key, formed_prefix, kept_backups_key, record_key,
};
pub use recover::{
    RecoveryTerms, begin_recovery, can_bump_revisions, end_recovery, find_newer, mark_stopped,
};
pub use replace::has_lost_log;
pub use restore::{begin_restore, call_off_restore};
pub use retired::must_stay_stopped;
pub use revisions::{REVISION_BUMP, RevisionBump, SaidRevision, choose_bump};
pub use step::FormationStep;
pub use successors::read_replaced;
pub use upgrade::find_upgrade_obstacle;
pub use upkeep::{
    CORRUPT, NO_SPACE, OtherMember, UpkeepStep, UpkeepView, decide_upkeep, needs_upkeep,
};
pub use upkeep_claim::{UPKEEP_CLAIM_LIMIT, UpkeepClaim, upkeep_claim_key};
pub use version_gate::{Unready, find_refusal, find_unready, keeps_membership, mark_version};
pub use volume_owner::can_resume;
