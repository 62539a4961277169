//! `kctl bundle create`.

use super::{beside, describe};
use crate::args::BundleCreate;
use crate::bundle::{BundleFile, Content, INDEX, Piece, pull_archive, write_bundle};
use crate::commands::assets::ClusterAssets;
use crate::commands::observe::{ObservedCluster, observe_published};
use crate::commands::session::Session;
use crate::downloads::{ask_for_file, file_client, transfer_error};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::fetch::DownloadFolder;
use crate::registry::{DockerConfig, ImageName, Registries};
use crate::state::{load_keyset, mint_and_store};
use node::config::LARGEST_DOWNLOAD;
use node::pki::STATE_SIGNER;
use node::signed::{SignedPlace, sign_text};
use spec::bundle::{BUNDLE_FORMAT, Bundle, BundledFile, BundledImage};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use time::OffsetDateTime;

const NO_ROOM: &str =
    "name a folder that you can write to, with enough free space, and repeat the command";

/// What a bundle gets: its index, and contents by path.
struct Gathered {
    files: Vec<BundledFile>,
    images: Vec<BundledImage>,
    contents: BTreeMap<String, Content>,
}

/// Makes a bundle for the spec of a cluster.
pub async fn create(args: &BundleCreate, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let out = &args.out;
    if out.exists() {
        let hint = match beside(out, ".sig").exists() {
            true => "name another file, or remove it",
            false => "it has no signature: remove it, and repeat the command",
        };
        let exists = format!("{} exists", out.display());
        return Err(CommandError::usage_error(exists, hint));
    }
    let observed = observe_published(&name, session).await?;
    let assets = ClusterAssets::published(&observed)?;
    let parts = beside(out, ".parts");
    let folder = DownloadFolder::open(&parts)
        .or_failed(format!("could not make {}", parts.display()), NO_ROOM)?;
    let gathered = Box::pin(gather(&assets, &folder, session)).await?;
    let bundle = Bundle {
        format: BUNDLE_FORMAT,
        cluster: name,
        kubernetes_version: observed.expanded.full.kubernetes_version.clone(),
        files: gathered.files,
        images: gathered.images,
    };
    let failed = || format!("could not write {}", out.display());
    let unsigned = folder.path("bundle");
    let text = write_bundle(&unsigned, &bundle, gathered.contents).or_failed(failed(), NO_ROOM)?;
    let file = BundleFile::open(&unsigned).or_failed(failed(), "repeat the command")?;
    if file.text != text {
        return Err(CommandError::from_message(
            ErrorKind::Failed,
            format!("another program has replaced {}", unsigned.display()),
            "name a file in a folder into which nobody else writes",
        ));
    }
    sign(&text, out, &folder, &observed, session).await?;
    // Last: so a bundle is never without its signature, and an interrupted command can be repeated.
    fs::rename(&unsigned, out).or_failed(failed(), NO_ROOM)?;
    let removed = folder.remove();
    let left = format!("could not remove {}", parts.display());
    removed.or_failed(left, "the bundle is complete: remove the folder")?;
    session.shell.print_result(&describe(&file, out))?;
    session.shell.hint(&format!(
        "store it with `kctl bundle push {} {}`",
        out.display(),
        file.bundle.cluster
    ));
    Ok(Outcome::Fine)
}

/// Downloads everything that is not in the folder yet.
async fn gather(
    assets: &ClusterAssets,
    folder: &DownloadFolder,
    session: &Session<'_>,
) -> Result<Gathered, CommandError> {
    let mut gathered = Gathered {
        files: Vec::new(),
        images: Vec::new(),
        contents: BTreeMap::new(),
    };
    gather_files(assets, folder, session, &mut gathered).await?;
    let registries = Registries::new(DockerConfig::read()?)?;
    let count = assets.images.len();
    for (index, image) in assets.images.keys().enumerate() {
        let shown = format!("image {} of {count}: {image}", index + 1);
        session.shell.note(&shown);
        if image.ends_with(":latest") {
            session.shell.warning(&format!(
                "{image}: kubelet asks the registry for images with this tag, unless the pod has imagePullPolicy: IfNotPresent"
            ));
        }
        gather_image(image, assets, folder, &registries, &mut gathered)
            .await
            .map_err(|error| transfer_error(error, format!("could not fetch the image {image}")))?;
    }
    gathered.files.sort();
    gathered.images.sort();
    Ok(gathered)
}

async fn gather_files(
    assets: &ClusterAssets,
    folder: &DownloadFolder,
    session: &Session<'_>,
    gathered: &mut Gathered,
) -> Result<(), CommandError> {
    let client = &file_client()?;
    let count = assets.files.len();
    for (index, file) in assets.files.iter().enumerate() {
        let url = file.published.as_str();
        session
            .shell
            .note(&format!("file {} of {count}: {url}", index + 1));
        let fetched = folder.fetch(&file.sha256, |from| ask_for_file(client, url, from));
        let failed = || format!("could not fetch {url}");
        let fetched = fetched.await;
        let path = fetched.map_err(|error| transfer_error(error, failed()))?;
        let content = Piece::of_file(path).or_failed(failed(), NO_ROOM)?;
        let content = Content(vec![content]);
        let bundled = BundledFile {
            name: file.name.clone(),
            arch: file.arch,
            sha256: file.sha256.clone(),
            size: content.size(),
            url: file.published.clone(),
        };
        gathered.contents.insert(bundled.key(), content);
        gathered.files.push(bundled);
    }
    Ok(())
}

/// Adds an image for each architecture that it is made for.
async fn gather_image(
    image: &str,
    assets: &ClusterAssets,
    folder: &DownloadFolder,
    registries: &Registries,
    gathered: &mut Gathered,
) -> anyhow::Result<()> {
    let name = ImageName::parse(image)?;
    let top = registries.manifest(&name, None).await?;
    let mut made_for = 0;
    for &arch in &assets.archs {
        let archive = pull_archive(registries, folder, image, &top, arch).await?;
        let Some(content) = archive else {
            continue;
        };
        let size = content.size();
        anyhow::ensure!(
            size <= LARGEST_DOWNLOAD,
            "its archive has {size} bytes, and instances download no more than {LARGEST_DOWNLOAD}"
        );
        let bundled = BundledImage {
            image: image.to_owned(),
            arch,
            digest: top.digest.clone(),
            sha256: content.sha256()?,
            size,
        };
        gathered.contents.insert(bundled.key(), content);
        gathered.images.push(bundled);
        made_for += 1;
    }
    anyhow::ensure!(
        made_for > 0,
        "it is made for none of the architectures of the cluster's instances"
    );
    Ok(())
}

/// Writes the signature of the index beside the bundle: signatures differ each time, and bundles do not. `text`: the index as it was made, not
/// as it is on the disk now.
async fn sign(
    text: &str,
    out: &Path,
    folder: &DownloadFolder,
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let (store, keys) = (&session.store, &observed.state.keys);
    let names = [STATE_SIGNER.to_owned()];
    let signer = if observed.public.missing_keysets(&names).is_empty() {
        load_keyset(store, keys, STATE_SIGNER).await?
    } else {
        mint_and_store(store, keys, STATE_SIGNER).await?.0
    };
    let place = SignedPlace {
        cluster: observed.state.name(),
        key: INDEX,
    };
    let now = OffsetDateTime::now_utc().unix_timestamp();
    let serial = u64::try_from(now).unwrap_or_default();
    let signature = sign_text(&signer, place, text, serial).or_failed(
        "could not sign the bundle",
        "restore the keyset state-signer",
    )?;
    let (path, part) = (beside(out, ".sig"), folder.path("signature"));
    // A link of that name is replaced, not followed.
    let written = fs::write(&part, signature).and_then(|()| fs::rename(&part, &path));
    written.or_failed(format!("could not write {}", path.display()), NO_ROOM)
}
