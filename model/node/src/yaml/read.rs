//! Parses YAML within limits that kctl's own texts never reach.

use serde::de::DeserializeOwned;
use serde_saphyr::Budget;
use serde_saphyr::options::AliasLimits;

/// Limit of a file, bytes: 200 times kOps' largest fixture with user data in every group.
pub const MAX_BYTES: usize = 4 << 20;
/// Limit of nesting; the spec needs less than 12. A level takes 50 KB of stack in an unoptimised build, and threads have 2 MB.
pub const MAX_DEPTH: usize = 32;
/// Limit of keys, values and elements after expansion of aliases.
const MAX_NODES: usize = 100_000;
/// Limit of documents in a file: 40 times as many as in any test.
const MAX_DOCUMENTS: usize = 4096;
/// Limit of nodes copied by aliases.
const MAX_ALIASED: usize = 20_000;

/// Parses YAML other than the spec (configurations of instances, keysets, manifests) within the same limits.
pub fn read_as<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: read_limits(),
        alias_limits: alias_limits(),
        // A snippet could show a secret.
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// Limits of a text for the parser.
pub fn read_limits() -> Option<Budget> {
    serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        max_nodes: MAX_NODES,
        max_documents: MAX_DOCUMENTS,
        max_events: 2 * MAX_NODES,
        max_recorded_anchor_events: MAX_ALIASED,
        max_total_scalar_bytes: 2 * MAX_BYTES,
    }
}

/// Limits of aliases for the parser.
pub fn alias_limits() -> AliasLimits {
    serde_saphyr::alias_limits! {
        max_total_replayed_events: MAX_ALIASED,
        max_replay_stack_depth: 16,
    }
}
