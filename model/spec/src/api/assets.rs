//! Where images and binaries come from: `spec.assets`.

use super::fields::spec;

spec! {
    pub struct AssetsSpec {
        /// Registry that holds copies of all images.
        pub container_registry: Option<String>,
        /// URL that holds copies of all files.
        pub file_repository: Option<String>,
        /// Pull-through proxy of all registries.
        pub container_proxy: Option<String>,
        /// Adds to and overrides the compiled-in catalog of binaries: a path in the store or an https
        /// URL. kctl's own field.
        pub catalog: Option<String>,
        /// Hex SHA-256 of `catalog`; required for a URL. kctl's own field.
        #[serde(rename = "catalogSHA256")]
        pub catalog_sha256: Option<String>,
    }
}
