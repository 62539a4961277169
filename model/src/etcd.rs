//! How an etcd cluster comes to be and stays one: which volume a machine takes, what the record in the state store
//! says, and what a machine does with both. Decisions only; protokube carries them out.

mod choose;
mod content;
mod decide;
#[cfg(test)]
mod laws_test;
mod manifest;
mod record;

pub use choose::{
    Choice, Holder, Place, SeenVolume, choose, device_name, named_volume, volume_tag,
};
pub use content::{Content, Inside, MARKER, Marker, data_folder, manifest_on_volume};
pub use decide::{Own, Step, decide, formed, stray};
pub use manifest::{ManifestError, as_existing, has_founded};
pub use record::{Error, FORMAT, Record, RecordedMember, State, record_key};
