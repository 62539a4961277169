//! Objects of the state store that instances read: completed spec, node configurations, binaries; and documents that everybody reads.

use super::listing::{ListingPosition, PartOf, Section};
use super::{Kind, Tags};
use engine::{Id, Ref, shared_text};
use node::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// An object under the cluster's base in the state store (which may be `file://` too).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3Object {
    /// Key relative to the cluster's base: `cluster-completed.spec`, `igconfig/node/nodes/nodeupconfig-SHA.yaml`, `assets/SHA/amd64/nodeup`.
    pub key: String,
    pub content: ObjectContent,
}

/// The content of an object, and how it is compared without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectContent {
    /// Text, compared as text. Never a secret.
    Text(#[serde(with = "shared_text")] Arc<str>),
    /// Text with a signature beside it, because protokube does what it says (`node::signed`). A stored object without one is a
    /// [`ObjectContent::Text`]. Never a secret.
    Signed(#[serde(with = "shared_text")] Arc<str>),
    /// Text that holds secrets.
    Hidden(HiddenText),
    /// Bytes whose sha256 (hex) is part of the key: presence is equality.
    Sha256(String),
}

/// Text that holds secrets: compared by its sha256; plans show it, and are saved, without them.
#[derive(Clone, Serialize, Deserialize)]
pub struct HiddenText {
    /// The text without its secrets.
    #[serde(with = "shared_text")]
    shown: Arc<str>,
    /// sha256 (hex) of the whole text.
    sha256: String,
    /// The whole text; empty if this was read from a saved plan.
    #[serde(skip, default = "no_text")]
    text: Arc<str>,
}

fn no_text() -> Arc<str> {
    "".into()
}

impl HiddenText {
    pub fn new(text: &str, shown: &str) -> Self {
        Self {
            shown: shown.into(),
            sha256: sha256_hex(text),
            text: text.into(),
        }
    }

    /// The text with its secrets.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The text without them.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl PartialEq for HiddenText {
    fn eq(&self, other: &Self) -> bool {
        self.sha256 == other.sha256
    }
}

impl Eq for HiddenText {}

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HiddenText({})", self.sha256)
    }
}

impl Kind for S3Object {
    const TYPE: &'static str = "s3_object";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::StateStore, 0);
    const CAN_BE_REMADE: bool = false;

    fn name(&self) -> String {
        self.key.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        let (dir, _) = hashed_node_config(&self.key)?;
        let of = Id::new(Self::TYPE, format!("{dir}/nodeupconfig.yaml"));
        PartOf::of_whole(&Ref::own(&of), "version", "versions")
    }

    fn describe(&self) -> String {
        match (&self.content, hashed_node_config(&self.key)) {
            (_, Some((_, hash))) => format!("version {hash}"),
            (ObjectContent::Text(text) | ObjectContent::Signed(text), None) if !text.is_empty() => {
                format!("{} bytes", text.len())
            }
            (ObjectContent::Hidden(hidden), None) => format!("{} bytes", hidden.text.len()),
            (_, None) => String::new(),
        }
    }
}

/// A document of the issuer of service accounts' tokens, in a bucket from which everybody can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryDocument {
    /// `s3://BUCKET/PREFIX`, without a slash at its end.
    pub store: String,
    /// [`DiscoveryDocument::CONFIGURATION`] or [`DiscoveryDocument::KEYS`].
    pub key: String,
    pub content: String,
}

impl DiscoveryDocument {
    /// Key of the document that names the issuer and where its keys are (OpenID Connect Discovery).
    pub const CONFIGURATION: &str = ".well-known/openid-configuration";
    /// Key of the document with the keys that verify tokens, as the API server has it.
    pub const KEYS: &str = "openid/v1/jwks";
}

impl Kind for DiscoveryDocument {
    const TYPE: &'static str = "discovery_document";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Permissions, 5);
    const CAN_BE_REMADE: bool = false;

    fn name(&self) -> String {
        format!("{}/{}", self.store, self.key)
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }
}

/// Folder and hash of a node configuration that is stored under its hash.
fn hashed_node_config(key: &str) -> Option<(&str, &str)> {
    let (dir, name) = key.rsplit_once('/')?;
    let hash = name.strip_prefix("nodeupconfig-")?.strip_suffix(".yaml")?;
    (hash.len() == 64).then_some((dir, hash))
}
