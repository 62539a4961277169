//! An OCI image layout (image specification 1.1) on disk: `oci-layout`, `index.json`, `blobs/sha256/`.

use crate::services::mirror::path_below;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The annotation of a manifest in `index.json` that is its tag.
const TAG: &str = "org.opencontainers.image.ref.name";

/// Bytes; what is larger is a layer.
const LARGEST: u64 = 4 * 1024 * 1024;

const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// How a manifest is asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Reference {
    Tag(String),
    Digest(String),
}

impl Reference {
    pub fn parse_reference(text: &str) -> Self {
        if text.contains(':') {
            Self::Digest(text.to_owned())
        } else {
            Self::Tag(text.to_owned())
        }
    }
}

/// A manifest's place and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub digest: String,
    pub media_type: String,
}

/// A repository's layout, its index read.
#[derive(Debug)]
pub struct Layout {
    folder: PathBuf,
    index: Index,
}

#[derive(Debug, Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// What a manifest or an index says of itself; images made by older tools leave the type out.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    /// Manifests and indexes have it, configurations do not.
    #[serde(rename = "schemaVersion")]
    _version: u8,
    media_type: Option<String>,
    #[serde(default)]
    manifests: Option<Vec<serde_json::Value>>,
}

impl Layout {
    /// The layout of a repository at a host; `None`: there is none.
    pub async fn open_layout(site: &Path, repository: &str) -> io::Result<Option<Self>> {
        let Some(folder) = path_below(site, repository) else {
            return Ok(None);
        };
        let path = folder.join("index.json");
        let text = match tokio::fs::read(&path).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let index = serde_json::from_slice(&text);
        let index = index.map_err(|error| invalid_json(&path, &error))?;
        Ok(Some(Self { folder, index }))
    }

    /// By tag as `index.json` has it; by digest also what no tag leads to, such as an image of one platform in an
    /// index of several.
    pub async fn find_manifest(&self, reference: &Reference) -> io::Result<Option<Manifest>> {
        let named = |manifest: &&Descriptor| match reference {
            Reference::Tag(tag) => manifest.annotations.get(TAG) == Some(tag),
            Reference::Digest(digest) => manifest.digest == *digest,
        };
        // A tag that was moved stands in the index twice; the later one counts.
        if let Some(found) = self.index.manifests.iter().rfind(named) {
            return Ok(Some(Manifest {
                digest: found.digest.clone(),
                media_type: found.media_type.clone(),
            }));
        }
        let Reference::Digest(digest) = reference else {
            return Ok(None);
        };
        let Some(path) = self.blob_path(digest) else {
            return Ok(None);
        };
        let size = match tokio::fs::metadata(&path).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?.len(),
        };
        if size > LARGEST {
            return Ok(None);
        }
        let text = tokio::fs::read(&path).await?;
        let content: Content = match serde_json::from_slice(&text) {
            Ok(content) => content,
            // A layer or the like: a blob, and no manifest.
            Err(_) => return Ok(None),
        };
        let kind = if content.manifests.is_some() {
            INDEX
        } else {
            IMAGE
        };
        Ok(Some(Manifest {
            digest: digest.clone(),
            media_type: content.media_type.unwrap_or_else(|| kind.to_owned()),
        }))
    }

    /// The file of a digest, `None` for what is not `sha256:` and 64 hexadecimal digits.
    pub fn blob_path(&self, digest: &str) -> Option<PathBuf> {
        let hex = digest.strip_prefix("sha256:")?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let whole = hex.len() == 64 && hex.bytes().all(is_hex);
        whole.then(|| self.folder.join("blobs/sha256").join(hex))
    }
}

fn invalid_json(path: &Path, error: &serde_json::Error) -> io::Error {
    let text = format!(
        "{} is no index of an OCI image layout: {error}",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}
