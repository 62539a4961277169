//! What the lab serves: the same bytes each time, everything that kctl names, under the hashes that the catalog says.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails should"
)]

mod built;
mod names;
mod parts;

use lab::content::key::{files, sha256};
use lab::content::lay_out;
use lab::content::mirror;
use model::catalog::{Catalog, Component};
use model::full::Arch;
use model::validate::versions::Version;
use parts::{Place, made_up};
use std::fs;

#[test]
fn laid_out_twice_everything_has_the_same_bytes() {
    let parts = tempfile::tempdir().unwrap();
    let kit = made_up(parts.path());
    let [one, other] = ["one", "other"].map(|name| {
        let place = parts.path().join(name);
        lay_out(&place, &kit).unwrap();
        place
    });
    let all = |place: &std::path::Path| -> Vec<_> {
        let files = files(place).unwrap();
        let named = files.iter().map(|path| {
            (
                path.strip_prefix(place).unwrap().to_owned(),
                sha256(path).unwrap(),
            )
        });
        named.collect()
    };
    assert!(all(&one).len() > 60);
    assert_eq!(all(&one), all(&other));
}

#[test]
fn kctl_with_the_labs_catalog_finds_every_download_with_its_hash() {
    let parts = tempfile::tempdir().unwrap();
    let kit = made_up(parts.path());
    let place = Place::laid_out(parts.path(), &kit);
    let text = fs::read_to_string(place.catalog()).unwrap();
    let catalog = Catalog::embedded().unwrap().overlaid(&text).unwrap();
    let kubernetes = Version::parse(kit.version("kubernetes").unwrap()).unwrap();
    for component in Component::ALL {
        let version = component.version(&kubernetes);
        let download = catalog.download(component, &version, Arch::Amd64).unwrap();
        let known = Catalog::embedded()
            .unwrap()
            .download(component, &version, Arch::Amd64)
            .unwrap();
        assert_eq!(download.url, known.url);
        let file = place
            .mirror()
            .join(download.url.strip_prefix("https://").unwrap());
        let hash = sha256(&file).unwrap();
        assert_eq!(download.sha256.as_ref(), Some(&hash), "{}", download.url);
        assert_ne!(
            known.sha256, download.sha256,
            "the hash is still the published one"
        );
        let beside = format!("{}.sha256", file.display());
        assert_eq!(fs::read_to_string(beside).unwrap(), hash);
    }
}

#[test]
fn a_download_of_another_version_than_its_name_is_in_the_notice() {
    let parts = tempfile::tempdir().unwrap();
    let kit = made_up(parts.path());
    let published = mirror::write(&parts.path().join("mirror"), &kit).unwrap();
    let notice = include_str!("../../content.NOTICE");
    let module = |component| match component {
        Component::CniPlugins => Some("cni"),
        Component::Containerd => Some("containerd"),
        Component::EcrCredentialProvider => Some("cloud-provider"),
        Component::Kubectl | Component::Kubelet => Some("kubernetes"),
        Component::Crictl | Component::Runc => None,
    };
    let mut exact = 0;
    for file in published {
        let said = format!("- {} {} is ", file.component.name(), file.version);
        let same = module(file.component)
            .is_some_and(|module| kit.version(module).unwrap() == file.version);
        assert_eq!(same, !notice.contains(&said), "{said}");
        exact += u32::from(same);
    }
    assert_eq!(exact, 4);
    for (module, name) in [
        ("etcdctl", "etcdutl of "),
        ("etcd", "beside etcd "),
        ("cloud-provider", "cloud-provider-aws "),
    ] {
        let said = format!("{name}{}", kit.version(module).unwrap());
        assert!(notice.contains(&said), "{said}");
    }
}
