//! The rules of a drain: which pods leave a Node, what would keep them there, and how the Node is changed. `kctl rolling-update`
//! drains by them, and protokube does before AWS ends an instance. Plain data and pure functions.

mod eviction;
mod node_patch;

pub use eviction::{
    Drain, Loss, NeverEvicted, drain_of, drained_since, loss_of, never_evicted, pod_name,
};
pub use node_patch::{EXCLUDE_LABEL, cordon_patch, label_of, merge_patches};
