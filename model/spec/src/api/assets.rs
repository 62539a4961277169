//! Where images and binaries come from: `spec.assets`.

use super::fields::spec;

spec! {
    /// Where instances get container images and files from.
    pub struct AssetsSpec {
        /// Registry that holds a copy of every image, such as `registry.example.com/k8s`.
        pub container_registry: Option<String>,
        /// URL below which there is a copy of every file that instances download: `https://HOST/PATH`, which they read without
        /// credentials, or `s3://BUCKET/PATH`, which they read with those of their instance profile.
        pub file_repository: Option<String>,
        /// Registry that pulls images from the others as they are asked for.
        pub container_proxy: Option<String>,
        /// YAML file that adds to and overrides kctl's list of downloads: a path in the state store or an https URL. kctl's own
        /// field.
        pub catalog: Option<String>,
        /// SHA-256 of `catalog`, in hex. Needed if it is a URL. kctl's own field.
        #[serde(rename = "catalogSHA256")]
        pub catalog_sha256: Option<String>,
        /// SHA-256 of a bundle that `kctl bundle push` has stored, in hex. Instances take every file and image from it and use no
        /// registry and no download site. kctl's own field.
        pub bundle: Option<String>,
    }
}
