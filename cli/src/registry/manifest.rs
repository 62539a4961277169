//! Manifests of images, and indexes of manifests.

use anyhow::{Context, bail};
use node::config::Arch;
use node::digest::{is_sha256, sha256_hex};
use serde::Deserialize;

/// Types of manifests and indexes, as registries are asked for them.
pub(super) const MEDIA_TYPES: [&str; 4] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// Limit of a manifest, bytes: that of registries.
pub(super) const LARGEST: usize = 4 << 20;

/// The manifest of an image, or an index with one for each platform.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// `sha256:...`.
    pub digest: String,
    pub media_type: String,
    pub bytes: Vec<u8>,
    content: Content,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    media_type: Option<String>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
    manifests: Option<Vec<Descriptor>>,
}

/// What a manifest or an index names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub digest: String,
    #[serde(default)]
    media_type: String,
    platform: Option<Platform>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

impl Descriptor {
    /// Hex digits of its digest.
    pub fn sha256(&self) -> anyhow::Result<&str> {
        let hex = self.digest.strip_prefix("sha256:");
        let hex = hex.filter(|hex| is_sha256(hex));
        hex.with_context(|| format!("{:?} is not a digest that kctl knows", self.digest))
    }

    /// True for a layer that its owner alone may distribute, as those of Windows: registries do without it.
    pub fn is_foreign(&self) -> bool {
        let kinds = [".foreign.", ".nondistributable."];
        kinds.iter().any(|kind| self.media_type.contains(kind))
    }
}

impl Manifest {
    /// Reads one. `kind`: its type as the registry says it; what it says itself counts more.
    pub(super) fn parse(bytes: Vec<u8>, kind: Option<&str>) -> anyhow::Result<Self> {
        let content: Content = serde_json::from_slice(&bytes)?;
        let own = content.media_type.as_deref().or(kind).unwrap_or_default();
        if !MEDIA_TYPES.contains(&own) {
            bail!("it is of the type {own:?}");
        }
        if content.manifests.is_none() && content.config.is_none() {
            bail!("it names neither manifests nor a configuration");
        }
        Ok(Self {
            digest: format!("sha256:{}", sha256_hex(&bytes)),
            media_type: own.to_owned(),
            bytes,
            content,
        })
    }

    /// The manifests of an index; `None`: it is the manifest of an image.
    pub fn manifests(&self) -> Option<&[Descriptor]> {
        self.content.manifests.as_deref()
    }

    /// The manifest for this architecture in an index.
    pub fn find_platform(&self, arch: Arch) -> Option<&Descriptor> {
        let mut manifests = self.content.manifests.iter().flatten();
        manifests.find(|manifest| {
            let platform = manifest.platform.as_ref();
            platform.is_some_and(|of| of.os == "linux" && of.architecture == arch.as_str())
        })
    }

    /// The configuration of an image.
    pub fn config(&self) -> Option<&Descriptor> {
        self.content.config.as_ref()
    }

    /// The blobs of an image: its configuration and its layers.
    pub fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        self.content.config.iter().chain(&self.content.layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parse(content: &Value, kind: Option<&str>) -> anyhow::Result<Manifest> {
        Manifest::parse(content.to_string().into_bytes(), kind)
    }

    #[test]
    fn an_index_has_a_manifest_for_each_architecture() {
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let of = |digit: &str, os: &str, arch: &str| json!({"digest": digest(digit), "size": 1, "platform": {"os": os, "architecture": arch}});
        let index = json!({"schemaVersion": 2, "manifests": [
            of("0", "windows", "amd64"), of("1", "linux", "amd64"), of("2", "unknown", "unknown"), of("3", "linux", "arm64"),
        ]});
        let index = parse(&index, Some(MEDIA_TYPES[0])).unwrap();
        for (arch, digit) in [(Arch::Amd64, "1"), (Arch::Arm64, "3")] {
            let found = index.find_platform(arch).unwrap();
            assert_eq!(found.digest, digest(digit));
            assert_eq!(found.sha256().unwrap(), digit.repeat(64));
        }
        assert_eq!(index.blobs().count(), 0);
    }

    #[test]
    fn what_is_neither_manifest_nor_index_is_refused() {
        let config = json!({"config": {"digest": "sha512:0", "size": 1}});
        let image = parse(&config, Some(MEDIA_TYPES[3])).unwrap();
        assert!(image.config().unwrap().sha256().is_err());
        assert!(parse(&config, None).is_err());
        assert!(parse(&config, Some("text/html")).is_err());
        assert!(parse(&json!({}), Some(MEDIA_TYPES[3])).is_err());
        let mut own = config;
        own["mediaType"] = json!(MEDIA_TYPES[1]);
        let image = parse(&own, Some("application/json")).unwrap();
        assert_eq!(image.media_type, MEDIA_TYPES[1]);
        assert!(!image.config().unwrap().is_foreign());
        own["layers"] = json!([{"digest": "sha256:0", "mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"}]);
        let image = parse(&own, None).unwrap();
        assert!(image.blobs().last().unwrap().is_foreign());
    }
}
