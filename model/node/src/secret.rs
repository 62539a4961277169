//! Text that must not be shown: private keys and what contains them.

mod stored;

pub use stored::{
    DOCKER_CONFIG, ENCRYPTION_CONFIG, STORED, check_stored, read_stored, stored_path, write_stored,
};

use serde::{Deserialize, Serialize as _, Serializer};
use std::fmt;

/// Secret text. `Debug` hides it, there is no `Display` and no `Serialize`: only [`Secret::reveal`] and
/// [`revealed`] show it, so that a search for that word finds every place where secrets leave the model.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Writes a secret into a file that holds secrets: named at the field, never by default.
pub fn revealed<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
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
