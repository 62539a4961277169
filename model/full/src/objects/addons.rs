//! The state store objects of addons: their list, and the manifest of each.

use crate::addons::{Addon, channel_yaml, manifest_key};
use cloud::{ObjectContent, S3Object};
use node::addons::CHANNEL_KEY;
use node::yaml::Error;

/// The objects from which protokube learns what to apply.
pub fn addon_objects(addons: &[Addon]) -> Result<Vec<S3Object>, Error> {
    let object = |key: String, text: String| S3Object {
        key,
        content: ObjectContent::Text(text.into()),
    };
    let mut objects = vec![object(CHANNEL_KEY.to_owned(), channel_yaml(addons)?)];
    let manifests = addons.iter();
    objects.extend(manifests.map(|addon| object(manifest_key(addon), addon.manifest.clone())));
    Ok(objects)
}
