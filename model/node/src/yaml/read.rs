//! YAML text to types, within limits that nothing that kctl writes reaches.

use serde::de::DeserializeOwned;
use serde_saphyr::Budget;
use serde_saphyr::options::AliasLimits;

/// Bytes of a file at most: 200 times kOps' largest fixture with user data in every group.
pub const MAX_BYTES: usize = 4 << 20;
/// Nesting at most; the spec's own is below 12. Each level takes 50 KB of stack in an unoptimised build, and threads have 2 MB.
pub const MAX_DEPTH: usize = 32;
/// Keys, values and elements at most, aliases expanded.
const MAX_NODES: usize = 100_000;
/// Objects of a file at most: 40 times as many groups as any test has.
const MAX_DOCUMENTS: usize = 4096;
/// Copies made of anchored parts at most.
const MAX_ALIASED: usize = 20_000;

/// Reads YAML that is no spec (configurations of machines, keysets, manifests) as a type, within the same limits.
pub fn read_as<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: limits(),
        alias_limits: aliases(),
        // A line of the file may be a secret's.
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// What a text may hold.
pub fn limits() -> Option<Budget> {
    serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        max_nodes: MAX_NODES,
        max_documents: MAX_DOCUMENTS,
        max_events: 2 * MAX_NODES,
        max_recorded_anchor_events: MAX_ALIASED,
        max_total_scalar_bytes: 2 * MAX_BYTES,
    }
}

/// How often parts of it may be repeated.
pub fn aliases() -> AliasLimits {
    serde_saphyr::alias_limits! {
        max_total_replayed_events: MAX_ALIASED,
        max_replay_stack_depth: 16,
    }
}
