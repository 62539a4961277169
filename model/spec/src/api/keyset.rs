//! A set of keys with one purpose: `kind: Keyset`, as in `pki/private/KEYSET/keyset.yaml`.

use super::enums::KeysetType;
use super::fields::spec;
use node::secret::{self, Secret};

spec! {
    /// All keys of the set.
    pub struct KeysetSpec {
        /// What its items are.
        #[serde(rename = "type")]
        pub type_: Option<KeysetType>,
        /// Id of the key that signs.
        pub primary_id: Option<String>,
        /// All keys, oldest first.
        pub keys: Vec<KeysetItem>,
    }

    /// One key of a set.
    pub struct KeysetItem {
        /// Its id: a number made of the time of creation.
        pub id: String,
        /// When it was distrusted, RFC 3339.
        pub distrust_timestamp: Option<String>,
        /// Base64 of the PEM certificate or public key.
        pub public_material: Option<String>,
        /// Base64 of the PEM private key. Secret.
        #[serde(serialize_with = "secret::serialize_revealed")]
        pub private_material: Option<Secret>,
    }
}
