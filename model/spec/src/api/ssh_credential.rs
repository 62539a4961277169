//! A public SSH key: `kind: SSHCredential`.

use super::fields::spec;

spec! {
    /// A public SSH key with which users log in to instances.
    pub struct SSHCredentialSpec {
        /// The key as a line of `authorized_keys`, such as `ssh-ed25519 AAAA...`.
        pub public_key: String,
    }
}
