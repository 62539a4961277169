//! AWS-LC's FIPS module: whether it runs, and the refusal of a build with the feature `fips` to start without it.

use rustls::crypto::aws_lc_rs::default_provider;

/// Why a build with the feature `fips` does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FipsError {
    /// The library that was linked is not the module.
    #[error(
        "this build runs with AWS-LC's FIPS module only, and the library that runs is not in FIPS mode: build it again as docs/operations/fips.md says"
    )]
    NotRunning,
    /// An algorithm of the module does not give the known answer.
    #[error(
        "a self-test of AWS-LC's FIPS module failed: try another machine, and build the program again if it fails there too"
    )]
    SelfTest,
}

/// True if the library that runs says that it is the FIPS module, and TLS offers nothing that is not of the module.
pub fn is_running() -> bool {
    default_provider().fips()
}

/// Fails if a build with the feature `fips` runs without the module, or if one of the module's self-tests fails. Other builds need no module.
pub fn check_start() -> Result<(), FipsError> {
    if !cfg!(feature = "fips") {
        return Ok(());
    }
    if !is_running() {
        return Err(FipsError::NotRunning);
    }
    aws_lc_rs::try_fips_self_test().map_err(|_| FipsError::SelfTest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ClientConfig, RootCertStore};
    use std::sync::Arc;

    /// It is the same test in a build of either kind.
    #[test]
    fn the_module_runs_where_the_build_needs_it_and_nowhere_else() {
        let needed = cfg!(feature = "fips");
        assert_eq!(is_running(), needed);
        assert_eq!(check_start(), Ok(()));
        let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        assert_eq!(tls.fips(), needed);
    }
}
