//! A public SSH key: `kind: SSHCredential`.

use super::fields::spec;

spec! {
    /// A public SSH key that may log in to instances.
    pub struct SSHCredentialSpec {
        /// The key in authorized_keys form.
        pub public_key: String,
    }
}
