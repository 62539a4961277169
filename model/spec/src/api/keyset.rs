//! A set of keys with one purpose: `kind: Keyset`, as in `pki/private/KEYSET/keyset.yaml`.

use super::enums::KeysetType;
use super::fields::spec;
use node::secret::{self, Secret};

spec! {
    /// The keys of one purpose, such as a certificate authority, as the state store has them.
    pub struct KeysetSpec {
        /// What the keys are: `Keypair`, certificates with their keys, or `Secret`.
        #[serde(rename = "type")]
        pub type_: Option<KeysetType>,
        /// ID of the key that signs.
        pub primary_id: Option<String>,
        /// The keys, the oldest first.
        pub keys: Vec<KeysetItem>,
    }

    /// One key.
    pub struct KeysetItem {
        /// ID of the key: a number made of the time when it was created.
        pub id: String,
        /// When the key ceased to be trusted, in RFC 3339. Default it is trusted.
        pub distrust_timestamp: Option<String>,
        /// Certificate or public key: base64 of its PEM form.
        pub public_material: Option<String>,
        /// Private key: base64 of its PEM form. It is secret.
        #[serde(serialize_with = "secret::serialize_revealed")]
        pub private_material: Option<Secret>,
    }
}
