//! Where images and downloads come from.

use super::Known;
use crate::api::assets::AssetsSpec;
use crate::api::cluster::ClusterSpec;
use crate::api::containerd::PackagesConfig;
use crate::catalog::Component;
use full::Group;
use node::config::{Arch, Asset};

/// Kubernetes' own registry.
const REGISTRY: &str = "registry.k8s.io";

/// An image of Kubernetes' registry.
pub(super) fn image(name: &str, tag: &str) -> String {
    format!("{REGISTRY}/{name}:{tag}")
}

/// The image of a component of Kubernetes itself, from where the spec wants images to come.
pub(super) fn component_image(name: &str, spec: &ClusterSpec, known: &Known) -> String {
    let assets = spec.assets.clone().unwrap_or_default();
    remapped_image(&image(name, &format!("v{}", known.version)), &assets)
}

/// An image from where `spec.assets` wants images to come, by kOps' rules: behind a pull-through
/// proxy the registry's host is swapped; in a registry of copies `registry.k8s.io/` goes and the
/// other slashes become dashes.
pub(super) fn remapped_image(image: &str, assets: &AssetsSpec) -> String {
    if let Some(proxy) = &assets.container_proxy {
        let proxy = proxy.trim_end_matches('/');
        let (host, rest) = image.split_once('/').unwrap_or(("", image));
        // Docker Hub's images have no host in front.
        let rest = if host.contains(['.', ':']) {
            rest
        } else {
            image
        };
        return format!("{proxy}/{rest}");
    }
    if let Some(registry) = &assets.container_registry {
        let registry = registry.trim_end_matches('/');
        if image.starts_with(&format!("{registry}/")) {
            return image.to_owned();
        }
        let bare = image.strip_prefix(REGISTRY).unwrap_or(image);
        return format!(
            "{registry}/{}",
            bare.trim_start_matches('/').replace('/', "-")
        );
    }
    image.to_owned()
}

/// Downloads of every architecture in use, sorted by name and architecture.
pub(super) fn full(spec: &ClusterSpec, groups: &[Group], known: &Known) -> Vec<Asset> {
    let mut archs: Vec<Arch> = groups.iter().map(|group| group.arch).collect();
    archs.sort();
    archs.dedup();
    Component::ALL
        .into_iter()
        .filter(|component| installed(*component, spec))
        .flat_map(|component| archs.iter().map(move |arch| (component, *arch)))
        .filter_map(|(component, arch)| asset(component, arch, spec, known))
        .collect()
}

/// False for what the machine image brings.
fn installed(component: Component, spec: &ClusterSpec) -> bool {
    let containerd = spec.containerd.as_ref();
    let brought = containerd.and_then(|containerd| containerd.skip_install) == Some(true);
    !(brought && matches!(component, Component::Containerd | Component::Runc))
}

fn asset(component: Component, arch: Arch, spec: &ClusterSpec, known: &Known) -> Option<Asset> {
    let (version, packages) = chosen(component, spec);
    if let Some((url, sha256)) = packages.and_then(|packages| own_package(packages, arch)) {
        return Some(Asset {
            name: component.name().to_owned(),
            arch,
            urls: vec![url],
            sha256,
        });
    }
    let version = version.unwrap_or_else(|| component.version(&known.version));
    let version = version.strip_prefix('v').unwrap_or(&version);
    let download = known.catalog.download(component, version, arch)?;
    let assets = spec.assets.as_ref();
    let repository = assets.and_then(|assets| assets.file_repository.as_deref());
    let url = match repository {
        Some(repository) => in_repository(&download.url, repository),
        None => download.url.clone(),
    };
    let published = &known.facts.published_hashes;
    let sha256 = download
        .sha256
        .or_else(|| published.get(&download.url).cloned())
        .or_else(|| published.get(&url).cloned());
    Some(Asset {
        name: component.name().to_owned(),
        arch,
        urls: vec![url],
        sha256,
    })
}

/// What the spec says of a component's version and packages.
fn chosen(component: Component, spec: &ClusterSpec) -> (Option<String>, Option<&PackagesConfig>) {
    let containerd = spec.containerd.as_ref();
    match component {
        Component::Containerd => (
            containerd.and_then(|containerd| containerd.version.clone()),
            containerd.and_then(|containerd| containerd.packages.as_ref()),
        ),
        Component::Runc => {
            let runc = containerd.and_then(|containerd| containerd.runc.as_ref());
            (
                runc.and_then(|runc| runc.version.clone()),
                runc.and_then(|runc| runc.packages.as_ref()),
            )
        }
        _ => (None, None),
    }
}

/// The user's own package for an architecture: URL and hash.
fn own_package(packages: &PackagesConfig, arch: Arch) -> Option<(String, Option<String>)> {
    let (url, hash) = match arch {
        Arch::Amd64 => (&packages.url_amd64, &packages.hash_amd64),
        Arch::Arm64 => (&packages.url_arm64, &packages.hash_arm64),
    };
    Some((url.clone()?, hash.clone()))
}

/// A download's place in a repository of copies: the repository's URL and the download's path.
fn in_repository(url: &str, repository: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    format!("{}/{path}", repository.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::{in_repository, remapped_image};
    use crate::api::assets::AssetsSpec;

    #[test]
    fn images_come_from_where_the_spec_wants_them() {
        let proxy = AssetsSpec {
            container_proxy: Some("proxy.example.com/hub/".into()),
            ..AssetsSpec::default()
        };
        let registry = AssetsSpec {
            container_registry: Some("registry.example.com/copies".into()),
            ..AssetsSpec::default()
        };
        for (image, proxied, copied) in [
            (
                "registry.k8s.io/kube-proxy:v1",
                "proxy.example.com/hub/kube-proxy:v1",
                "registry.example.com/copies/kube-proxy:v1",
            ),
            (
                "registry.k8s.io/coredns/coredns:v1",
                "proxy.example.com/hub/coredns/coredns:v1",
                "registry.example.com/copies/coredns-coredns:v1",
            ),
            (
                "flannel/flannel:v1",
                "proxy.example.com/hub/flannel/flannel:v1",
                "registry.example.com/copies/flannel-flannel:v1",
            ),
            (
                "busybox",
                "proxy.example.com/hub/busybox",
                "registry.example.com/copies/busybox",
            ),
        ] {
            assert_eq!(remapped_image(image, &proxy), proxied);
            assert_eq!(remapped_image(image, &registry), copied);
            assert_eq!(remapped_image(copied, &registry), copied);
            assert_eq!(remapped_image(image, &AssetsSpec::default()), image);
        }
    }

    #[test]
    fn a_repository_of_copies_keeps_the_paths() {
        assert_eq!(
            in_repository(
                "https://dl.k8s.io/release/v1/bin/kubelet",
                "https://own/files/"
            ),
            "https://own/files/release/v1/bin/kubelet"
        );
    }
}
