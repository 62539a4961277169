//! How an etcd cluster comes to be and stays one: which volume a machine takes, what the record in the state store
//! says, and what a machine does with both. Decisions only; protokube carries them out.

mod choose;
mod content;
mod decide;
mod formed;
#[cfg(test)]
mod laws_test;
mod log;
mod manifest;
mod record;
mod whose;

pub use choose::{
    Choice, Holder, Place, SeenVolume, choose, device_name, named_volume, unseen, volume_tag,
};
pub use content::{
    Content, Inside, Log, MARKER, Marker, data_folder, log_folder, manifest_on_volume,
};
pub use decide::{Own, Step, decide};
pub use formed::{formed, stray};
pub use log::{LOG_HEAD, LogIdentity, NotALog, log_identity};
pub use manifest::{ManifestError, as_existing, has_founded};
pub use record::{
    Error, FORMAT, Record, RecordedMember, State, Unknown, backups_prefix, formed_key,
    formed_prefix, record_key,
};
pub use whose::resumes;
