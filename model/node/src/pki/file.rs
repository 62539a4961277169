//! Keysets in the state store, in the format of kOps' `Keyset` objects, so that either tool reads the other's.

use super::{Error, Keyset, KeysetItem};
use crate::secret::{Secret, serialize_revealed};
use crate::yaml::{read_as, to_yaml};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

const API_VERSION: &str = "kops.k8s.io/v1alpha2";
/// API version that kOps wrote before 1.15.
const OLD_API_VERSION: &str = "kops/v1alpha2";
const KIND: &str = "Keyset";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire {
    api_version: String,
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    spec: WireKeyset,
}

/// Metadata. kOps writes other fields too, which are ignored.
#[derive(Default, Serialize, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[derive(Default)]
struct WireKeyset {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_id: Option<String>,
    keys: Vec<WireItem>,
}

/// A key of the keyset; certificate and private key are base64 of PEM.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct WireItem {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    distrust_timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_material: Option<String>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_revealed"
    )]
    private_material: Option<Secret>,
}

/// Writes a keyset as YAML. The result is secret, because it contains private keys.
pub fn write_keyset(keyset: &Keyset) -> Result<Secret, Error> {
    let item = |item: &KeysetItem| WireItem {
        id: item.id.clone(),
        distrust_timestamp: item.distrusted.clone(),
        public_material: Some(STANDARD.encode(&item.certificate)),
        private_material: item
            .key
            .as_ref()
            .map(|key| Secret::new(STANDARD.encode(key.reveal()))),
    };
    let object = Wire {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        metadata: Metadata {
            name: keyset.name.clone(),
        },
        spec: WireKeyset {
            kind: Some("Keypair".to_owned()),
            primary_id: Some(keyset.primary.clone()),
            keys: keyset.items.iter().map(item).collect(),
        },
    };
    Ok(Secret::new(to_yaml(&object)?))
}

/// Parses a keyset named `name`. Without a `primaryId`, the newest trusted key with a private half is the primary one, as in
/// kOps.
pub fn read_keyset(name: &str, yaml: &str) -> Result<Keyset, Error> {
    let object: Wire = read_as(yaml).map_err(|source| Error::NotAKeyset {
        name: name.to_owned(),
        source: source.into(),
    })?;
    let known = [API_VERSION, OLD_API_VERSION].contains(&object.api_version.as_str());
    if !known || object.kind != KIND {
        return Err(Error::NotAKeyset {
            name: name.to_owned(),
            source: format!("it is a {} of {}", object.kind, object.api_version).into(),
        });
    }
    let items = object
        .spec
        .keys
        .into_iter()
        .map(|item| read_item(name, item))
        .collect::<Result<_, _>>()?;
    let mut keyset = Keyset {
        name: name.to_owned(),
        primary: String::new(),
        items,
    };
    keyset.sort_items();
    let newest = keyset
        .items
        .iter()
        .rev()
        .find(|item| item.distrusted.is_none() && item.key.is_some());
    let primary = object
        .spec
        .primary_id
        .or_else(|| newest.map(|item| item.id.clone()));
    keyset.primary = primary.ok_or_else(|| Error::NoPrimary(name.to_owned()))?;
    keyset.primary()?;
    Ok(keyset)
}

fn read_item(name: &str, item: WireItem) -> Result<KeysetItem, Error> {
    let not_pem = |what| Error::NotPem {
        name: name.to_owned(),
        id: item.id.clone(),
        what,
    };
    let decode = |what, text: &str| {
        let bytes = STANDARD
            .decode(text.split_whitespace().collect::<String>())
            .ok();
        let pem = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        pem.filter(|pem| pem.contains("-----BEGIN "))
            .ok_or_else(|| not_pem(what))
    };
    let certificate = decode(
        "publicMaterial",
        item.public_material.as_deref().unwrap_or_default(),
    )?;
    let key = match &item.private_material {
        Some(text) => Some(Secret::new(decode("privateMaterial", text.reveal())?)),
        None => None,
    };
    Ok(KeysetItem {
        id: item.id.clone(),
        certificate,
        key,
        distrusted: item.distrust_timestamp,
    })
}
