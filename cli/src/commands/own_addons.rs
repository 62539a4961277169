//! The addons of a user: the objects in the folder `clusteraddons/` of the state store, and the lists that `spec.addons` names. They are read when
//! a plan is made: the plan shows them, and what was applied stays as it was until the next update.

use super::session::Session;
use crate::downloads::fetch_manifest;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::{ClusterState, OwnFiles, store_error, unreadable_error};
use aws_client::store::{Location, Store};
use full::addons::{CLUSTER_ADDONS, OwnAddon};
use node::addons::{OwnObject, UserAddon, read_own_objects, read_user_channel};
use node::digest::sha256_hex;

/// Reads them for this version of Kubernetes.
pub async fn read_own_addons(
    state: &ClusterState,
    kubernetes: &str,
    session: &Session<'_>,
) -> Result<Vec<OwnAddon>, CommandError> {
    let own = OwnFiles::read(&session.store, &state.keys, &state.entries).await?;
    for key in &own.others {
        session.shell.warning(&format!(
            "{key} is not applied: its name does not end with .yaml, .yml or .json"
        ));
    }
    let folder = state.keys.own_folder();
    let mut addons = cluster_addons(&folder, own.objects().cloned().collect());
    for list in &state.cluster.object.spec.addons {
        let text = read_address(&list.manifest, session).await?;
        let listed = read_user_channel(&list.manifest, &text, kubernetes);
        for addon in listed.map_err(unreadable_error)? {
            addons.push(read_addon(addon, session).await?);
        }
    }
    Ok(addons)
}

/// The addon with the objects of the folder `clusteraddons/`, if there are any.
pub fn cluster_addons(place: &str, objects: Vec<OwnObject>) -> Vec<OwnAddon> {
    if objects.is_empty() {
        return Vec::new();
    }
    vec![OwnAddon {
        name: CLUSTER_ADDONS.to_owned(),
        id: "default".to_owned(),
        place: place.to_owned(),
        objects,
    }]
}

async fn read_addon(addon: UserAddon, session: &Session<'_>) -> Result<OwnAddon, CommandError> {
    let url = addon.manifest;
    let text = read_address(&url, session).await?;
    let found = sha256_hex(&text);
    if let Some(wanted) = addon.sha256.filter(|wanted| *wanted != found) {
        return Err(CommandError::usage_error(
            format!("{url} has the SHA-256 {found}, not {wanted} as in the list of addons"),
            "correct manifestHash in the list, if the manifest is the right one",
        ));
    }
    let objects = read_own_objects(&url, &text).map_err(unreadable_error)?;
    if objects.is_empty() {
        return Err(CommandError::usage_error(
            format!("{url} holds no objects"),
            "remove the addon from its list, or correct the manifest",
        ));
    }
    Ok(OwnAddon {
        name: addon.name,
        id: addon.id,
        place: url,
        objects,
    })
}

/// Reads a file: by HTTPS, or an object of the bucket or folder of the state store.
async fn read_address(url: &str, session: &Session<'_>) -> Result<String, CommandError> {
    if url.starts_with("https://") {
        return fetch_manifest(url).await;
    }
    let (store, key) = find_object(url, session)?;
    let read = store.get(&key).await.map_err(store_error)?;
    let object = read.ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Precondition,
            format!("there is no {url}"),
            "put it there, or correct spec.addons or the list that names it",
        )
    })?;
    String::from_utf8(object.bytes)
        .or_usage_error(format!("{url} is not text"), "replace it with YAML")
}

/// The store and the key of an object beside the state store. Other buckets may be anybody's: who deletes one cannot keep its name.
fn find_object(url: &str, session: &Session<'_>) -> Result<(Store, String), CommandError> {
    const HINT: &str = "copy it into the bucket of the state store, or name it by https://";
    let elsewhere = || {
        let message = format!(
            "{url} is not in the bucket of the state store, {}",
            session.url
        );
        CommandError::usage_error(message, HINT)
    };
    let ours = Location::parse(&session.url).map_err(store_error)?;
    let (root, key) = match ours {
        Location::S3 { bucket, .. } => {
            let root = format!("s3://{bucket}");
            let key = url.strip_prefix(&format!("{root}/"));
            (root, key.ok_or_else(elsewhere)?)
        }
        Location::File { dir } => {
            let root = format!("file://{}", dir.display());
            let key = url.strip_prefix(&format!("{root}/"));
            (root, key.ok_or_else(elsewhere)?)
        }
    };
    let store = session.store.open_other(&root).map_err(store_error)?;
    Ok((store, key.to_owned()))
}
