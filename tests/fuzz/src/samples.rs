//! Valid specs to begin with, and what goes with them.

use cloud::facts::Facts;
use spec::catalog::Catalog;
use std::sync::OnceLock;
pub use test_support::made_up_agents as agents;

/// Of the repository's tests.
pub const SPECS: [&str; 5] = [
    include_str!("../../../model/spec/tests/specs/minimal.yaml"),
    include_str!("../../../model/spec/tests/specs/private.yaml"),
    test_support::CLUSTER,
    include_str!("../../../model/spec/tests/all/fields/base.yaml"),
    include_str!("../../../model/spec/tests/all/expand/samples/custom.yaml"),
];

/// An SSH key.
pub const KEY: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQC7VJTUt9Us8cKj jo@example.com";

/// A certificate, as far as configurations look at it.
pub const CERTIFICATES: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

/// Nobody was asked.
pub fn facts() -> Facts {
    Facts {
        account: "123456789012".into(),
        partition: "aws".into(),
        stand_in: true,
        ..Facts::default()
    }
}

/// Reading it takes longer than a run of a target.
pub fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| Catalog::embedded().expect("the catalog"))
}
