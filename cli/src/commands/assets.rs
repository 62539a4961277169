//! What the instances of a cluster download: every file and image, where it is published, and where they get it.

use super::assemble::all_addons;
use super::observe::ObservedCluster;
use super::session::Session;
use crate::error::CommandError;
use full::FullSpec;
use full::images::{cluster_images, node_images};
use node::config::Arch;
use spec::expand::Expanded;
use std::collections::{BTreeMap, BTreeSet};

/// A file that instances download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFile {
    pub name: String,
    pub arch: Arch,
    /// sha256, hex.
    pub sha256: String,
    /// Where it is published.
    pub published: String,
    /// Where instances get it.
    pub download: String,
}

/// All files and images of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterAssets {
    /// Sorted by name and architecture; of a file in two versions one after the other.
    pub files: Vec<ClusterFile>,
    /// By their full names: what instances get. It is the image's name elsewhere, or the URL of an archive.
    pub images: BTreeMap<String, String>,
    /// Architectures of instances that run images.
    pub archs: BTreeSet<Arch>,
}

impl ClusterAssets {
    /// The files and images as they are published. The cluster was observed so.
    pub fn published(observed: &ObservedCluster) -> Result<Self, CommandError> {
        let all: Vec<&Expanded> = observed.all_expanded().collect();
        Self::paired(&all, &all, observed)
    }

    /// The same, and from where instances get them.
    pub async fn with_downloads(
        observed: &ObservedCluster,
        session: &Session<'_>,
    ) -> Result<Self, CommandError> {
        let stored = observed.expand_as_stored(session).await?;
        let published: Vec<&Expanded> = observed.all_expanded().collect();
        Self::paired(&published, &stored.iter().collect::<Vec<_>>(), observed)
    }

    /// Both sides were expanded from one spec, so they have the same files and images in the same order. Workers that are held back have
    /// none of the control plane's.
    fn paired(
        published: &[&Expanded],
        stored: &[&Expanded],
        observed: &ObservedCluster,
    ) -> Result<Self, CommandError> {
        let mut assets = Self::default();
        for (index, (from, to)) in published.iter().zip(stored).enumerate() {
            let pairs = from.full.assets.iter().zip(&to.full.assets);
            assets.files.extend(pairs.map(|(from, to)| ClusterFile {
                name: from.name.clone(),
                arch: from.arch,
                sha256: from.sha256.clone().unwrap_or_default(),
                published: from.urls.first().cloned().unwrap_or_default(),
                download: to.urls.first().cloned().unwrap_or_default(),
            }));
            let nodes = from.full.groups.iter().filter(|group| group.node.is_some());
            assets.archs.extend(nodes.map(|group| group.arch));
            let images = |full: &FullSpec| match index {
                0 => {
                    let key = observed.secrets.ipsec_key.as_ref();
                    let addons = all_addons(full, &observed.own_addons, key)?;
                    Ok::<_, CommandError>(cluster_images(full, &addons))
                }
                _ => Ok(node_images(full)),
            };
            for (image, elsewhere) in images(&from.full)?.into_iter().zip(images(&to.full)?) {
                let mut archives = to.full.image_archives.iter();
                let archive = archives.find(|archive| archive.image == image);
                let archive = archive.and_then(|archive| archive.urls.first().cloned());
                assets.images.insert(image, archive.unwrap_or(elsewhere));
            }
        }
        let order = |file: &ClusterFile| (file.name.clone(), file.arch, file.sha256.clone());
        assets.files.sort_by_key(order);
        assets.files.dedup();
        Ok(assets)
    }
}
