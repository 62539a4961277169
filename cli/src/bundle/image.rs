//! Images as archives: OCI image layouts (image specification 1.1) with the blobs of one architecture, under the digest that their registry
//! has, and with the names under which containerd keeps them.

use super::archive::pack;
use super::content::{Content, Piece};
use crate::fetch::DownloadFolder;
use crate::registry::{ImageName, Manifest, Registries};
use anyhow::Context;
use node::config::Arch;
use node::values::containerd_image;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;

/// What the configuration of an image says of it.
#[derive(Deserialize)]
struct Configuration {
    architecture: String,
}

/// The archive of an image for one architecture, of blobs in the folder; `None`: there is none for it. `top`: what the registry has under
/// the image's name.
pub async fn pull_archive(
    registries: &Registries,
    folder: &DownloadFolder,
    image: &str,
    top: &Manifest,
    arch: Arch,
) -> anyhow::Result<Option<Content>> {
    let name = ImageName::parse(image)?;
    let mut blobs: BTreeMap<String, Piece> = BTreeMap::new();
    let mut add = |manifest: &Manifest| {
        let bytes = Piece::Bytes(manifest.bytes.clone());
        blobs.insert(blob_path(&manifest.digest), bytes);
    };
    add(top);
    let own = match top.manifests() {
        None => top.clone(),
        Some(_) => {
            let Some(found) = top.find_platform(arch) else {
                return Ok(None);
            };
            let own = registries.manifest(&name, Some(&found.digest)).await?;
            add(&own);
            own
        }
    };
    for blob in own.blobs() {
        let file = registries.blob(&name, blob, folder).await?;
        if own.config() == Some(blob) && !is_made_for(&fs::read(&file)?, arch)? {
            return Ok(None);
        }
        blobs.insert(blob_path(&blob.digest), Piece::of_file(file)?);
    }
    let mut files: Vec<(String, Content)> = blobs
        .into_iter()
        .map(|(path, blob)| (path, Content(vec![blob])))
        .collect();
    let of_text = |text: String| Content(vec![Piece::Bytes(text.into_bytes())]);
    files.push(("index.json".to_owned(), of_text(layout_index(image, top))));
    let version = json!({"imageLayoutVersion": "1.0.0"}).to_string();
    files.push(("oci-layout".to_owned(), of_text(version)));
    Ok(Some(pack(files)?))
}

fn blob_path(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

/// The index of the layout. containerd imports an image under the name in the annotation.
fn layout_index(image: &str, top: &Manifest) -> String {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": top.media_type,
            "digest": top.digest,
            "size": top.bytes.len(),
            "annotations": {"io.containerd.image.name": containerd_image(image)},
        }],
    })
    .to_string()
}

fn is_made_for(configuration: &[u8], arch: Arch) -> anyhow::Result<bool> {
    let read = serde_json::from_slice::<Configuration>(configuration);
    let read = read.context("its configuration cannot be read")?;
    Ok(read.architecture == arch.as_str())
}
