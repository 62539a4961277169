//! `kctl get assets --copy`: copies files and images to where `spec.assets` lets instances get them. What is there already is not read again.

use crate::commands::assets::{ClusterAssets, ClusterFile};
use crate::commands::session::Session;
use crate::downloads::{NO_TEMPORARY_ROOM, ask_for_file, file_client, transfer_error};
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::fetch::DownloadFolder;
use crate::registry::{Descriptor, DockerConfig, ImageName, Manifest, Registries};
use crate::state::store_error;
use aws_client::store::{Encryption, Expect, Store, sha256_of_file};
use node::values::parse_image;
use spec::api::assets::AssetsSpec;
use std::fs;

const TWO_IMAGES: &str = "find out which one the cluster is to run: `kctl get assets --copy --overwrite` puts the published one in the place of the other, also for others who use that tag";

/// The tag in the registry leads to another image.
#[derive(Debug, thiserror::Error)]
#[error("{place} has the digest {found}, and what is published has {published}")]
struct OtherImage {
    place: String,
    found: String,
    published: String,
}

/// Copies what is missing. `overwrite`: also over other images that have the tags.
pub async fn copy(
    assets: &ClusterAssets,
    places: &AssetsSpec,
    overwrite: bool,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    const NO_FOLDER: &str = "could not make a folder for downloads";
    let temporary = tempfile::tempdir().or_failed(NO_FOLDER, NO_TEMPORARY_ROOM)?;
    let folder = DownloadFolder::open(temporary.path()).or_failed(NO_FOLDER, NO_TEMPORARY_ROOM)?;
    match places.file_repository.as_deref() {
        Some(url) if find_object(&format!("{url}/")).is_some() => {
            copy_files(&assets.files, &folder, session).await?;
        }
        Some(url) => {
            return Err(CommandError::usage_error(
                format!("kctl does not copy files to {url}"),
                "copy those that `kctl get assets -o json` lists in another way, or use s3://BUCKET/PATH",
            ));
        }
        None if places.container_registry.is_none() => {
            return Err(CommandError::usage_error(
                "spec.assets names neither fileRepository nor containerRegistry to copy to",
                "set one with `kctl edit cluster --set spec.assets.fileRepository=s3://BUCKET/PATH`",
            ));
        }
        None => {}
    }
    if places.container_registry.is_none() {
        return Ok(());
    }
    let registries = Registries::new(DockerConfig::read()?)?;
    let count = assets.images.len();
    for (index, (image, place)) in assets.images.iter().enumerate() {
        let shown = format!("image {} of {count}: {image}", index + 1);
        session.shell.note(&shown);
        let copied = copy_image(image, place, overwrite, &folder, &registries).await;
        let failed = || format!("could not copy {image} to {place}");
        copied.map_err(|error| match error.is::<OtherImage>() {
            true => CommandError::new(ErrorKind::Failed, error.context(failed()), TWO_IMAGES),
            false => transfer_error(error, failed()),
        })?;
    }
    Ok(())
}

async fn copy_files(
    files: &[ClusterFile],
    folder: &DownloadFolder,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let client = &file_client()?;
    for (index, file) in files.iter().enumerate() {
        let object = find_object(&file.download);
        // A file that the spec names itself stays where it is.
        let Some((bucket, key)) = object.filter(|_| file.download != file.published) else {
            continue;
        };
        let shown = format!("file {} of {}: {}", index + 1, files.len(), file.download);
        session.shell.note(&shown);
        let store = Store::open(&format!("s3://{bucket}"), &session.clients);
        let store = store.map_err(store_error)?;
        let beside = format!("{key}.sha256");
        let known = store.get_first(&beside, 64).await.map_err(store_error)?;
        if known.is_some_and(|known| known == file.sha256.as_bytes()) {
            let first = store.get_first(key, 1).await.map_err(store_error)?;
            if first.is_some_and(|first| !first.is_empty()) {
                continue;
            }
        }
        let url = file.published.as_str();
        let fetched = folder.fetch(&file.sha256, |from| ask_for_file(client, url, from));
        let fetched = fetched.await;
        let path =
            fetched.map_err(|error| transfer_error(error, format!("could not fetch {url}")))?;
        let digest = sha256_of_file(&path).await;
        let digest = digest.or_failed(
            format!("could not read {}", path.display()),
            NO_TEMPORARY_ROOM,
        )?;
        let put = store.put_same_file(key, &path, &digest, Encryption::S3Keys);
        Box::pin(put).await.map_err(store_error)?;
        // Last: it says that the file is there.
        let text = file.sha256.clone().into_bytes();
        let put = store.put(&beside, text, Expect::Any).await;
        put.map_err(store_error)?;
        remove(&path)?;
    }
    Ok(())
}

/// Bucket and key of an address in S3: `s3://BUCKET/KEY`, or one of S3's own by https, as kOps knows them.
fn find_object(url: &str) -> Option<(&str, &str)> {
    if let Some(place) = url.strip_prefix("s3://") {
        return place.split_once('/');
    }
    let (host, path) = url.strip_prefix("https://")?.split_once('/')?;
    let cn = host.strip_suffix(".cn").unwrap_or(host);
    let service = cn.strip_suffix(".amazonaws.com")?;
    let is_s3 = |service: &str| {
        let region = service.strip_prefix("s3");
        region.is_some_and(|region| region.is_empty() || region.starts_with(['.', '-']))
    };
    if is_s3(service) {
        return path.split_once('/');
    }
    let dots = service.match_indices('.');
    let mut splits = dots.filter_map(|(dot, _)| service.split_at_checked(dot));
    let (bucket, _) = splits.find(|(_, rest)| is_s3(rest.trim_start_matches('.')))?;
    Some((bucket, path))
}

/// Copies an image with all its platforms, under the digest that it has.
async fn copy_image(
    image: &str,
    place: &str,
    overwrite: bool,
    folder: &DownloadFolder,
    registries: &Registries,
) -> anyhow::Result<()> {
    if parse_image(place).is_ok_and(|full| full == image) {
        return Ok(());
    }
    let (from, to) = (ImageName::parse(image)?, ImageName::parse(place)?);
    let top = registries.manifest(&from, None).await?;
    match registries.find_digest(&to).await? {
        Some(found) if found == top.digest => return Ok(()),
        Some(found) if !overwrite => {
            return Err(anyhow::Error::new(OtherImage {
                place: place.to_owned(),
                found,
                published: top.digest,
            }));
        }
        Some(_) | None => {}
    }
    for one in top.manifests().unwrap_or_default() {
        let manifest = registries.manifest(&from, Some(&one.digest)).await?;
        copy_blobs(&manifest, &from, &to, folder, registries).await?;
        registries.put_manifest(&to, &manifest, true).await?;
    }
    copy_blobs(&top, &from, &to, folder, registries).await?;
    registries.put_manifest(&to, &top, false).await
}

async fn copy_blobs(
    manifest: &Manifest,
    from: &ImageName,
    to: &ImageName,
    folder: &DownloadFolder,
    registries: &Registries,
) -> anyhow::Result<()> {
    let blobs: Vec<&Descriptor> = manifest.blobs().collect();
    for blob in blobs {
        if blob.is_foreign() || registries.has_blob(to, &blob.digest).await? {
            continue;
        }
        let path = registries.blob(from, blob, folder).await?;
        registries.put_blob(to, &blob.digest, &path).await?;
        fs::remove_file(path)?;
    }
    Ok(())
}

fn remove(path: &std::path::Path) -> Result<(), CommandError> {
    let removed = fs::remove_file(path);
    removed.or_failed(
        format!("could not remove {}", path.display()),
        NO_TEMPORARY_ROOM,
    )
}

#[cfg(test)]
mod tests {
    use super::find_object;

    #[test]
    fn addresses_of_s3_are_known_in_every_form() {
        for url in [
            "s3://my.files/k8s/kubelet",
            "https://s3.amazonaws.com/my.files/k8s/kubelet",
            "https://s3-us-west-2.amazonaws.com/my.files/k8s/kubelet",
            "https://s3.eu-west-1.amazonaws.com/my.files/k8s/kubelet",
            "https://s3.cn-north-1.amazonaws.com.cn/my.files/k8s/kubelet",
            "https://my.files.s3.amazonaws.com/k8s/kubelet",
            "https://my.files.s3-us-west-2.amazonaws.com/k8s/kubelet",
            "https://my.files.s3.eu-west-1.amazonaws.com/k8s/kubelet",
        ] {
            assert_eq!(find_object(url), Some(("my.files", "k8s/kubelet")), "{url}");
        }
        for url in [
            "https://files.example.com/my.files/k8s/kubelet",
            "https://sts.eu-west-1.amazonaws.com/my.files/k8s/kubelet",
            "https://s3.amazonaws.com.example.com/my.files/k8s/kubelet",
            "s3://my.files",
        ] {
            assert_eq!(find_object(url), None, "{url}");
        }
    }
}
