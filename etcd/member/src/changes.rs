//! The changes of etcd between two snapshots: etcd's watch is stored in parts, with which a restore reaches moments between them.
//! `etcd_rules::backup` says what a part is, and which chain of parts goes on.

mod carry;
mod following;
mod replay;
mod role;
mod watch;

pub use following::Following;
pub use role::{ChangesMemory, ChangesPace, ChangesRole, Turn};
pub use watch::{ChangesSource, ChangesWatch, Compacted, GatewayWatch, Watched};

pub(crate) use replay::{
    Chain, ReplayInput, Replayed, describe_replayed, is_of_changes, new_part_channel, replay_parts,
    send_parts,
};
