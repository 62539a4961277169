//! The state store objects of addons: their list, and the manifest of each.

use crate::addons::{Addon, channel_yaml, manifest_key};
use cloud::{HiddenText, ObjectContent, S3Object};
use node::addons::CHANNEL_KEY;
use node::yaml::Error;

/// The objects from which protokube learns what to apply.
pub fn addon_objects(addons: &[Addon]) -> Result<Vec<S3Object>, Error> {
    // The list has the sha256 of each manifest, so one signature counts for all.
    let mut objects = vec![S3Object {
        key: CHANNEL_KEY.to_owned(),
        content: ObjectContent::Signed(channel_yaml(addons)?.into()),
    }];
    objects.extend(addons.iter().map(|addon| S3Object {
        key: manifest_key(addon),
        content: match &addon.shown {
            None => ObjectContent::Text(addon.manifest.clone().into()),
            Some(shown) => ObjectContent::Hidden(HiddenText::new(&addon.manifest, shown)),
        },
    }));
    Ok(objects)
}
