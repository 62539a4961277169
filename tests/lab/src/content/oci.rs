//! Container images as OCI image layouts, the same bytes each time, one layout per repository.

use super::archive::Tree;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// An image: `HOST/REPOSITORY:TAG`, its layers from the lowest, what runs in it.
#[derive(Debug, Clone)]
pub struct Image {
    pub host: &'static str,
    pub repository: &'static str,
    pub tag: String,
    /// Layers that several images share are one value, and one blob.
    pub layers: Vec<Rc<Tree>>,
    pub entrypoint: &'static [&'static str],
    /// Arguments, if a pod says none.
    pub command: &'static [&'static str],
    /// `UID` or `UID:GID`; empty: root.
    pub user: &'static str,
}

impl Image {
    pub fn reference(&self) -> String {
        format!("{}/{}:{}", self.host, self.repository, self.tag)
    }
}

/// A blob that was written: digest without `sha256:`, and size.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Blob {
    sha256: String,
    size: u64,
}

impl Blob {
    fn descriptor(&self, kind: &str) -> Value {
        json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{}", self.sha256),
            "size": self.size,
        })
    }
}

/// Writes the layouts of all images below `registry`: HOST/REPOSITORY/{oci-layout,index.json,blobs/sha256/...}. Blobs of
/// several repositories are one file with several names.
pub fn write_layouts(registry: &Path, images: &[Image]) -> Result<()> {
    let blobs = Blobs {
        folder: registry.join(".blobs"),
    };
    fs::create_dir_all(&blobs.folder)
        .with_context(|| format!("making {}", blobs.folder.display()))?;
    let mut layers: Vec<(&Rc<Tree>, Blob)> = Vec::new();
    let mut repositories: BTreeMap<PathBuf, Vec<Value>> = BTreeMap::new();
    for image in images {
        let layout = registry.join(image.host).join(image.repository);
        let mut own = Vec::new();
        for tree in &image.layers {
            let known = layers.iter().find(|(known, _)| Rc::ptr_eq(known, tree));
            let blob = match known {
                Some((_, blob)) => blob.clone(),
                None => blobs
                    .write_layer(tree)
                    .with_context(|| format!("a layer of {}", image.reference()))?,
            };
            if known.is_none() {
                layers.push((tree, blob.clone()));
            }
            own.push(blob);
        }
        let manifest = blobs.write_manifest(image, &own, &layout)?;
        repositories.entry(layout).or_default().push(manifest);
    }
    for (layout, manifests) in repositories {
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": manifests,
        });
        write_if_absent(&layout.join("index.json"), index.to_string().as_bytes())?;
        write_if_absent(
            &layout.join("oci-layout"),
            br#"{"imageLayoutVersion":"1.0.0"}"#,
        )?;
    }
    fs::remove_dir_all(&blobs.folder).context("removing the blobs' first names")
}

/// Blobs by their digest, before repositories take them.
struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    fn write_layer(&self, tree: &Tree) -> Result<Blob> {
        let part = self.folder.join("part");
        let file = fs::File::create(&part).with_context(|| format!("making {}", part.display()))?;
        let mut out = Hashing {
            inner: BufWriter::with_capacity(1 << 20, file),
            hash: Sha256::new(),
            size: 0,
        };
        tree.write_tar(&mut out)?;
        let blob = Blob {
            sha256: format!("{:x}", out.hash.finalize()),
            size: out.size,
        };
        fs::rename(&part, self.folder.join(&blob.sha256)).context("naming a layer")?;
        Ok(blob)
    }

    fn write_blob(&self, bytes: &[u8]) -> Result<Blob> {
        let blob = Blob {
            sha256: format!("{:x}", Sha256::digest(bytes)),
            size: bytes.len() as u64,
        };
        write_if_absent(&self.folder.join(&blob.sha256), bytes)?;
        Ok(blob)
    }

    /// Puts an image's blobs into its layout; gives the manifest's entry in the layout's index.
    fn write_manifest(&self, image: &Image, layers: &[Blob], layout: &Path) -> Result<Value> {
        let config = self.write_blob(image_config(image, layers).to_string().as_bytes())?;
        let list: Vec<_> = layers
            .iter()
            .map(|layer| layer.descriptor("layer.v1.tar"))
            .collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor("config.v1+json"),
            "layers": list,
        });
        let manifest = self.write_blob(manifest.to_string().as_bytes())?;
        let folder = layout.join("blobs/sha256");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        for blob in layers.iter().chain([&config, &manifest]) {
            let own = folder.join(&blob.sha256);
            if !own.exists() {
                fs::hard_link(self.folder.join(&blob.sha256), &own)
                    .with_context(|| format!("linking {}", own.display()))?;
            }
        }
        let mut entry = manifest.descriptor("manifest.v1+json");
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(
                "platform".to_owned(),
                json!({"architecture": "amd64", "os": "linux"}),
            );
            entry.insert(
                "annotations".to_owned(),
                json!({"org.opencontainers.image.ref.name": image.tag}),
            );
        }
        Ok(entry)
    }
}

fn image_config(image: &Image, layers: &[Blob]) -> Value {
    let digests: Vec<_> = layers
        .iter()
        .map(|layer| format!("sha256:{}", layer.sha256))
        .collect();
    json!({
        "architecture": "amd64",
        "os": "linux",
        "created": "2020-01-01T00:00:00Z",
        "config": {
            "User": image.user,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": image.entrypoint,
            "Cmd": image.command,
            "WorkingDir": "/",
            "Labels": {"org.opencontainers.image.description": "built for kctl's lab; not the published image"},
        },
        "rootfs": {"type": "layers", "diff_ids": digests},
    })
}

fn write_if_absent(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Passes bytes on, and knows their hash and number.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..count).unwrap_or_default());
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
