//! The sources of container images and downloads.

use super::Context;
use super::amazon_vpc::chosen_amazon_vpc;
use super::cilium::{chosen_cilium, maps_host_ports};
use crate::api::assets::AssetsSpec;
use crate::api::cluster::ClusterSpec;
use crate::api::containerd::PackagesConfig;
use crate::catalog::Component;
use crate::validate::versions::Version;
use full::{Group, ImageSource};
use node::config::{Arch, Asset};

const REGISTRY: &str = "registry.k8s.io";

/// The full name of an image in the registry of the Kubernetes project.
pub(super) fn registry_image(name: &str, tag: &str) -> String {
    format!("{REGISTRY}/{name}:{tag}")
}

/// The image of a Kubernetes component, from the registry or proxy that `spec.assets` sets.
pub(super) fn component_image(name: &str, spec: &ClusterSpec, version: &Version) -> String {
    let assets = spec.assets.clone().unwrap_or_default();
    remapped_image(&registry_image(name, &format!("v{version}")), &assets)
}

/// The image from where `spec.assets` wants it.
pub(super) fn remapped_image(image: &str, assets: &AssetsSpec) -> String {
    image_source(assets).remap(image)
}

/// Where images come from.
pub(super) fn image_source(assets: &AssetsSpec) -> ImageSource {
    ImageSource {
        proxy: assets.container_proxy.clone(),
        registry: assets.container_registry.clone(),
    }
}

/// Downloads of every architecture in use, sorted by name and architecture.
pub(super) fn full_assets(spec: &ClusterSpec, groups: &[Group], context: &Context) -> Vec<Asset> {
    let mut archs: Vec<Arch> = groups.iter().map(|group| group.arch).collect();
    archs.sort();
    archs.dedup();
    Component::ALL
        .into_iter()
        .flat_map(|component| archs.iter().map(move |arch| (component, *arch)))
        .filter(|(component, arch)| is_downloaded(*component, *arch, spec, groups))
        .filter_map(|(component, arch)| find_asset(component, arch, spec, context))
        .collect()
}

/// False for components that the image of the instances already contains (`skipInstall`), and for those that no group asks for.
fn is_downloaded(component: Component, arch: Arch, spec: &ClusterSpec, groups: &[Group]) -> bool {
    let containerd = spec.containerd.as_ref();
    let preinstalled = containerd.and_then(|containerd| containerd.skip_install) == Some(true);
    let mut nodes = groups
        .iter()
        .filter(|group| group.arch == arch)
        .filter_map(|group| group.node.as_ref());
    match component {
        Component::Containerd | Component::Runc => !preinstalled,
        // The images of these have their own plugins, as in kOps.
        Component::CniPlugins => {
            chosen_cilium(spec).is_none_or(maps_host_ports) && chosen_amazon_vpc(spec).is_none()
        }
        Component::Nerdctl => nodes.any(|node| node.nerdctl),
        _ => true,
    }
}

fn find_asset(
    component: Component,
    arch: Arch,
    spec: &ClusterSpec,
    context: &Context,
) -> Option<Asset> {
    let (version, packages) = version_and_packages(component, spec);
    if let Some((url, sha256)) = packages.and_then(|packages| user_package(packages, arch)) {
        return Some(Asset {
            name: component.name().to_owned(),
            arch,
            urls: vec![url],
            sha256,
        });
    }
    let version = version.unwrap_or_else(|| component.version_for(&context.version));
    let version = version.strip_prefix('v').unwrap_or(&version);
    let download = context.catalog.find_download(component, version, arch)?;
    let assets = spec.assets.as_ref();
    let repository = assets.and_then(|assets| assets.file_repository.as_deref());
    let url = match repository {
        Some(repository) => mirrored_url(&download.url, repository),
        None => download.url.clone(),
    };
    let published = &context.facts.published_hashes;
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

/// The version and packages that the spec sets for a component.
fn version_and_packages(
    component: Component,
    spec: &ClusterSpec,
) -> (Option<String>, Option<&PackagesConfig>) {
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

/// URL and hash, in lower case, of the package that the spec sets for an architecture.
fn user_package(packages: &PackagesConfig, arch: Arch) -> Option<(String, Option<String>)> {
    let (url, hash) = match arch {
        Arch::Amd64 => (&packages.url_amd64, &packages.hash_amd64),
        Arch::Arm64 => (&packages.url_arm64, &packages.hash_arm64),
    };
    let hash = hash.as_ref().map(|hash| hash.to_ascii_lowercase());
    Some((url.clone()?, hash))
}

/// The URL of a download in the file repository: the repository's URL with the path of the original URL.
fn mirrored_url(url: &str, repository: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    format!("{}/{path}", repository.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::{mirrored_url, remapped_image, user_package};
    use crate::api::assets::AssetsSpec;
    use crate::api::containerd::PackagesConfig;
    use node::config::Arch;
    use node::digest::{is_sha256, sha256_hex};

    #[test]
    fn a_hash_in_upper_case_is_one_that_nodeup_takes() {
        let packages = PackagesConfig {
            url_amd64: Some("https://files.example.com/containerd.tar.gz".into()),
            hash_amd64: Some(sha256_hex("x").to_ascii_uppercase()),
            ..PackagesConfig::default()
        };
        let (_, hash) = user_package(&packages, Arch::Amd64).unwrap();
        assert!(is_sha256(&hash.unwrap()));
    }

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
                "registry.k8s.io/coredns/coredns:v1@sha256:0a",
                "proxy.example.com/hub/coredns/coredns:v1@sha256:0a",
                "registry.example.com/copies/coredns-coredns:v1@sha256:0a",
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
            mirrored_url(
                "https://dl.k8s.io/release/v1/bin/kubelet",
                "https://own/files/"
            ),
            "https://own/files/release/v1/bin/kubelet"
        );
    }
}
