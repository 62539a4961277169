//! Bundles: all files and images that the instances of one spec need, by sha256. `kctl bundle` makes them and stores them; expansion takes
//! files and images from the one that `spec.assets.bundle` names.

use node::config::{Arch, Asset, ImageArchive};
use node::digest::is_sha256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The form that this release writes and reads.
pub const BUNDLE_FORMAT: u32 = 1;

/// What is in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    /// [`BUNDLE_FORMAT`].
    pub format: u32,
    /// Name of the cluster whose spec it is for.
    pub cluster: String,
    /// Kubernetes version in that spec, without `v`.
    pub kubernetes_version: String,
    /// Sorted by name, architecture and sha256.
    pub files: Vec<BundledFile>,
    /// Sorted by name and architecture.
    pub images: Vec<BundledImage>,
}

/// A file that instances download.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundledFile {
    /// As the asset's: `kubelet`.
    pub name: String,
    pub arch: Arch,
    /// sha256, hex.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
    /// Where it is published.
    pub url: String,
}

/// An image for one architecture, as an archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundledImage {
    /// Its full name.
    pub image: String,
    pub arch: Arch,
    /// Digest of its index or manifest, as its registry has it.
    pub digest: String,
    /// sha256 (hex) of the archive.
    pub sha256: String,
    /// Bytes of the archive.
    pub size: u64,
}

/// A text is not the index of a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It has another form.
    #[error("it is not the index of a bundle")]
    Form(#[from] serde_json::Error),
    /// Another release made it.
    #[error("the bundle has format {0}, and this kctl reads format {BUNDLE_FORMAT}")]
    Format(u32),
    /// A name or a hash cannot be that of a file.
    #[error("the bundle has a file or image {0:?}, which is none that kctl writes")]
    Entry(String),
}

/// Reads the index of a bundle.
pub fn read_bundle(text: &str) -> Result<Bundle, BundleError> {
    #[derive(Deserialize)]
    struct Formatted {
        format: u32,
    }
    let Formatted { format } = serde_json::from_str(text)?;
    if format != BUNDLE_FORMAT {
        return Err(BundleError::Format(format));
    }
    let bundle: Bundle = serde_json::from_str(text)?;
    // Names and hashes become keys of objects.
    let plain = |name: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !name.is_empty() && name.bytes().all(good)
    };
    let mut files = bundle.files.iter();
    if let Some(file) = files.find(|file| !plain(&file.name) || !is_sha256(&file.sha256)) {
        return Err(BundleError::Entry(file.name.clone()));
    }
    let is_digest = |digest: &str| digest.strip_prefix("sha256:").is_some_and(is_sha256);
    let mut images = bundle.images.iter();
    if let Some(image) = images.find(|image| !is_sha256(&image.sha256) || !is_digest(&image.digest))
    {
        return Err(BundleError::Entry(image.image.clone()));
    }
    Ok(bundle)
}

/// Key of the index of the bundle with this sha256, relative to the cluster's base in the state store.
pub fn bundle_key(sha256: &str) -> String {
    format!("assets/{sha256}/bundle.json")
}

impl Bundle {
    /// The index as text: the same bundle gives the same text.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The file that an asset is, by its sha256 or, if that is unknown, by where it is published.
    pub fn find_file(&self, asset: &Asset) -> Option<&BundledFile> {
        self.files.iter().find(|file| {
            let same = match &asset.sha256 {
                Some(sha256) => file.sha256 == *sha256,
                None => asset.urls.contains(&file.url),
            };
            same && file.name == asset.name && file.arch == asset.arch
        })
    }

    /// sha256 and size of everything in it, by path.
    pub fn members(&self) -> BTreeMap<String, (&str, u64)> {
        let files = self.files.iter();
        let files = files.map(|file| (file.key(), (file.sha256.as_str(), file.size)));
        let images = self.images.iter();
        let images = images.map(|image| (image.key(), (image.sha256.as_str(), image.size)));
        files.chain(images).collect()
    }
}

impl BundledFile {
    /// Key relative to the cluster's base in the state store, and path in the bundle.
    pub fn key(&self) -> String {
        format!(
            "assets/{}/{}/{}",
            self.sha256,
            self.arch.as_str(),
            self.name
        )
    }
}

impl BundledImage {
    /// Key relative to the cluster's base in the state store, and path in the bundle.
    pub fn key(&self) -> String {
        format!("assets/{}/{}/image.tar", self.sha256, self.arch.as_str())
    }

    /// As instances get it from a state store with this base.
    pub(crate) fn in_store(&self, base: &str) -> ImageArchive {
        ImageArchive {
            image: self.image.clone(),
            arch: self.arch,
            digest: self.digest.clone(),
            sha256: self.sha256.clone(),
            urls: vec![format!("{base}/{}", self.key())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::digest::sha256_hex;

    fn sample() -> Bundle {
        Bundle {
            format: BUNDLE_FORMAT,
            cluster: "a.example.com".to_owned(),
            kubernetes_version: "1.36.3".to_owned(),
            files: vec![BundledFile {
                name: "kubelet".to_owned(),
                arch: Arch::Amd64,
                sha256: sha256_hex("kubelet"),
                size: 7,
                url: "https://dl.k8s.io/kubelet".to_owned(),
            }],
            images: vec![BundledImage {
                image: "registry.k8s.io/pause:3.10.1".to_owned(),
                arch: Arch::Amd64,
                digest: format!("sha256:{}", sha256_hex("index")),
                sha256: sha256_hex("archive"),
                size: 7,
            }],
        }
    }

    #[test]
    fn what_is_written_is_read_and_leads_to_no_key_elsewhere() {
        let good = sample();
        assert_eq!(read_bundle(&good.to_text().unwrap()).unwrap(), good);
        let refused = |change: &dyn Fn(&mut Bundle)| {
            let mut bundle = sample();
            change(&mut bundle);
            read_bundle(&bundle.to_text().unwrap()).is_err()
        };
        assert!(refused(&|bundle| bundle.format = 2));
        for name in ["", "../kubelet", "a/b"] {
            assert!(refused(&|bundle| bundle.files[0].name = name.to_owned()));
        }
        for hash in ["", "../x", "ABC"] {
            assert!(refused(&|bundle| bundle.files[0].sha256 = hash.to_owned()));
            assert!(refused(&|bundle| bundle.images[0].sha256 = hash.to_owned()));
            assert!(refused(&|bundle| bundle.images[0].digest = hash.to_owned()));
        }
    }

    #[test]
    fn a_file_is_found_by_its_hash_and_without_one_by_its_url() {
        let bundle = sample();
        let asset = |sha256: Option<&str>, url: &str| Asset {
            name: "kubelet".to_owned(),
            arch: Arch::Amd64,
            urls: vec![url.to_owned()],
            sha256: sha256.map(sha256_hex),
        };
        let known = "https://dl.k8s.io/kubelet";
        for (asset, found) in [
            (asset(Some("kubelet"), "https://mirror.example.com/x"), true),
            (asset(Some("other"), known), false),
            (asset(None, known), true),
            (asset(None, "https://mirror.example.com/x"), false),
        ] {
            assert_eq!(bundle.find_file(&asset).is_some(), found, "{asset:?}");
            let arm = Asset {
                arch: Arch::Arm64,
                ..asset
            };
            assert_eq!(bundle.find_file(&arm), None);
        }
    }
}
