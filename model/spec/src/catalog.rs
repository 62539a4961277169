//! The catalog: all downloads with their SHA-256, and the component versions that go with each
//! Kubernetes version.

mod component;
mod end_of_life;
mod image;
mod kubernetes;

pub use component::Component;
pub use end_of_life::{end_of_life, end_of_life_warning};
pub use image::{BOOTED_IMAGES, DEFAULT_IMAGE_OWNER, default_image, new_group_image};
pub use kubernetes::{DEFAULT_MINOR, recommended_patch};

use crate::bundle::Bundle;
use node::config::Arch;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The catalog this release was built with.
const EMBEDDED: &str = include_str!("../data/assets.yaml");

/// Downloads by component and path below the component's base URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    sections: BTreeMap<String, Section>,
    /// The bundle that takes the place of all base URLs.
    bundle: Option<Bundle>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Section {
    /// Base URL of files that are not listed.
    base: String,
    files: BTreeMap<String, File>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    base: String,
    sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    pub url: String,
    /// Hex SHA-256; `None`: not in the catalog.
    pub sha256: Option<String>,
}

/// A catalog is invalid.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The text is not YAML with the fields of a catalog.
    #[error("this is not a catalog of downloads")]
    Form(#[source] Box<serde_saphyr::Error>),
    /// A component that is not in the underlying catalog has no base URL.
    #[error("catalog: {0} has no base URL")]
    NoBase(String),
    /// A hash is not a SHA-256 in hex.
    #[error("catalog: the sha256 of {0} is not 64 hex digits")]
    Hash(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionText {
    base: Option<String>,
    #[serde(default)]
    files: Vec<FileText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    path: String,
    sha256: String,
}

impl Catalog {
    /// The catalog this release was built with.
    pub fn embedded() -> Result<Self, CatalogError> {
        Self::default().with_overlay(EMBEDDED)
    }

    /// This catalog with another on top (`spec.assets.catalog`, same form): its files are added or
    /// replace those with the same path, and come from its `base`. A `base` without files moves
    /// the whole component, for mirrors that keep the paths.
    pub fn with_overlay(&self, yaml: &str) -> Result<Self, CatalogError> {
        let text: BTreeMap<String, SectionText> =
            serde_saphyr::from_str(yaml).map_err(|error| CatalogError::Form(Box::new(error)))?;
        let mut catalog = self.clone();
        for (component, section) in text {
            let known = catalog.sections.entry(component.clone()).or_default();
            known.apply_overlay(&component, section)?;
        }
        Ok(catalog)
    }

    /// This catalog with the bundle that `spec.assets.bundle` names.
    #[must_use]
    pub fn with_bundle(self, bundle: Bundle) -> Self {
        Self {
            bundle: Some(bundle),
            ..self
        }
    }

    /// The bundle that files and images come from.
    pub fn bundle(&self) -> Option<&Bundle> {
        self.bundle.as_ref()
    }

    /// The download of a component in a version, for an architecture. A version that is not listed
    /// gets a URL below the component's base URL, without a hash.
    pub fn find_download(
        &self,
        component: Component,
        version: &str,
        arch: Arch,
    ) -> Option<Download> {
        let section = self.sections.get(component.catalog_section())?;
        let path = component.download_path(version, arch);
        let file = section.files.get(&path);
        let base = file.map_or(&section.base, |file| &file.base);
        Some(Download {
            url: format!("{}/{path}", base.trim_end_matches('/')),
            sha256: file.map(|file| file.sha256.clone()),
        })
    }
}

impl Section {
    fn apply_overlay(&mut self, component: &str, text: SectionText) -> Result<(), CatalogError> {
        let base = match text.base {
            Some(base) => base,
            None if !self.base.is_empty() => self.base.clone(),
            None => return Err(CatalogError::NoBase(component.to_owned())),
        };
        if text.files.is_empty() {
            for file in self.files.values_mut() {
                file.base.clone_from(&base);
            }
        }
        if text.files.is_empty() || self.base.is_empty() {
            self.base.clone_from(&base);
        }
        for file in text.files {
            let sha256 = file.sha256.to_ascii_lowercase();
            if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(CatalogError::Hash(file.path));
            }
            let base = base.clone();
            self.files.insert(file.path, File { base, sha256 });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Catalog, CatalogError, Component, recommended_patch};
    use crate::validate::versions::{NEWEST_MINOR, SUPPORTED_MINORS, Version};
    use node::config::Arch;

    #[test]
    fn everything_a_supported_minor_installs_has_a_known_hash() {
        let catalog = Catalog::embedded().unwrap();
        for minor in NEWEST_MINOR + 1 - SUPPORTED_MINORS..=NEWEST_MINOR {
            let version = Version::parse(recommended_patch(minor).unwrap()).unwrap();
            for component in Component::ALL {
                for arch in [Arch::Amd64, Arch::Arm64] {
                    let version = component.version_for(&version);
                    let download = catalog.find_download(component, &version, arch).unwrap();
                    assert!(download.sha256.is_some(), "{download:?}");
                }
            }
        }
    }

    #[test]
    fn downloads_are_where_their_projects_publish_them() {
        let catalog = Catalog::embedded().unwrap();
        let version = Version::parse("1.36.3").unwrap();
        let urls = Component::ALL.map(|component| {
            let version = component.version_for(&version);
            catalog
                .find_download(component, &version, Arch::Arm64)
                .unwrap()
                .url
        });
        assert_eq!(
            urls,
            [
                "https://github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-arm64-v1.9.1.tgz",
                "https://github.com/containerd/containerd/releases/download/v2.3.4/containerd-2.3.4-linux-arm64.tar.gz",
                "https://github.com/kubernetes-sigs/cri-tools/releases/download/v1.29.0/crictl-v1.29.0-linux-arm64.tar.gz",
                "https://artifacts.k8s.io/binaries/cloud-provider-aws/v1.31.7/linux/arm64/ecr-credential-provider-linux-arm64",
                "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubectl",
                "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubelet",
                "https://github.com/containerd/nerdctl/releases/download/v1.7.4/nerdctl-1.7.4-linux-arm64.tar.gz",
                "https://github.com/opencontainers/runc/releases/download/v1.4.3/runc.arm64",
            ]
        );
    }

    #[test]
    fn an_overlay_adds_replaces_and_moves() {
        let hash = "ab".repeat(32);
        let catalog = Catalog::embedded().unwrap();
        let overlaid = catalog
            .with_overlay(&format!(
                "kubernetes:\n  base: https://own.example.com/k8s\n  files:\n  \
                 - path: v1.36.9/bin/linux/amd64/kubelet\n    sha256: {hash}\n\
                 containerd:\n  base: https://mirror.example.com/containerd/\n"
            ))
            .unwrap();
        let of = |component, version| {
            overlaid
                .find_download(component, version, Arch::Amd64)
                .unwrap()
        };

        let added = of(Component::Kubelet, "1.36.9");
        assert_eq!(added.sha256, Some(hash));
        assert_eq!(
            added.url,
            "https://own.example.com/k8s/v1.36.9/bin/linux/amd64/kubelet"
        );
        let kept = of(Component::Kubelet, "1.36.3");
        assert_eq!(
            Some(kept),
            catalog.find_download(Component::Kubelet, "1.36.3", Arch::Amd64)
        );
        let moved = of(Component::Containerd, "2.3.4");
        assert!(
            moved
                .url
                .starts_with("https://mirror.example.com/containerd/v2.3.4/")
        );
        assert!(moved.sha256.is_some());
        let unknown = of(Component::Kubelet, "1.99.0");
        assert!(
            unknown
                .url
                .starts_with("https://dl.k8s.io/release/v1.99.0/")
        );
        assert_eq!(unknown.sha256, None);
    }

    #[test]
    fn a_broken_overlay_is_refused() {
        let refusal = |yaml: &str| Catalog::embedded().unwrap().with_overlay(yaml).unwrap_err();
        assert!(matches!(refusal("containerd: ["), CatalogError::Form(_)));
        assert!(matches!(
            refusal("runc:\n  bases: x\n"),
            CatalogError::Form(_)
        ));
        assert!(matches!(
            refusal("new:\n  files: []\n"),
            CatalogError::NoBase(_)
        ));
        let short = "runc:\n  files:\n  - path: x\n    sha256: abc\n";
        assert!(matches!(refusal(short), CatalogError::Hash(_)));
    }
}
