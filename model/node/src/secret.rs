//! Texts that must not be shown, such as private keys.

mod stored;

pub use stored::{
    CILIUM_PASSWORD, DOCKER_CONFIG, ENCRYPTION_CONFIG, KEPT_ENCRYPTION_CONFIG, STORED,
    check_key_lengths, check_stored, cilium_key_id, cilium_key_length, lost_encryption_keys,
    read_cilium_key, read_stored, stored_path, write_stored,
};

use serde::{Deserialize, Serialize as _, Serializer};
use std::fmt;

/// Secret text. `Debug` hides it, and there is no `Display` or `Serialize`: only [`Secret::reveal`] and [`serialize_revealed`]
/// return it, so that a search for "reveal" finds every place where secrets leave the model.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A secret with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text in the clear.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Serializes a secret in the clear, for objects that hold secrets. Must be named at each field.
pub fn serialize_revealed<S: Serializer>(
    secret: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::reveal).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_never_shows_the_text() {
        let shown = format!(
            "{:?} {:#?}",
            Secret::new("swordfish"),
            Some(Secret::new("swordfish"))
        );
        assert!(!shown.contains("swordfish"), "{shown}");
    }
}
