//! New clusters: the spec that `kctl create cluster` writes for its options.

mod etcd;
mod machine_type;

pub use etcd::etcd_clusters;
pub use machine_type::default_machine_type;
