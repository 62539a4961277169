//! Expansion with a bundle: everything that instances download is in the state store, or the spec is refused.

use super::{KEY, new_cluster, offline_facts, read_objects, zone_names};
use full::addons::make_addons;
use full::images::{cluster_images, control_plane_images};
use full::nodes::node_config;
use node::config::{Arch, IMAGE_PULLS, Role};
use node::digest::sha256_hex;
use spec::api::{Cluster, InstanceGroup};
use spec::bundle::{BUNDLE_FORMAT, Bundle, BundledFile, BundledImage};
use spec::catalog::Catalog;
use spec::create::CreateOptions;
use spec::expand::{Expanded, expand};
use spec::read::{Problem, render_problems};
use test_support::made_up_agents;

fn try_with(
    spec: &(Cluster, Vec<InstanceGroup>),
    bundle: Option<&Bundle>,
) -> Result<Expanded, Vec<Problem>> {
    let catalog = Catalog::embedded().unwrap();
    let catalog = match bundle {
        Some(bundle) => catalog.with_bundle(bundle.clone()),
        None => catalog,
    };
    expand(
        &spec.0,
        &spec.1,
        &[KEY.to_owned()],
        &offline_facts(),
        &catalog,
    )
}

fn expand_with(spec: &(Cluster, Vec<InstanceGroup>), bundle: Option<&Bundle>) -> Expanded {
    try_with(spec, bundle).unwrap_or_else(|problems| panic!("{}", render_problems(&problems)))
}

fn sample() -> (Cluster, Vec<InstanceGroup>) {
    new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        ..CreateOptions::default()
    })
}

/// What `kctl bundle create` would write.
fn bundle_of(expanded: &Expanded) -> Bundle {
    let full = &expanded.full;
    let files = full.assets.iter().map(|asset| BundledFile {
        name: asset.name.clone(),
        arch: asset.arch,
        sha256: asset.sha256.clone().unwrap(),
        size: 1,
        url: asset.urls[0].clone(),
    });
    let mut images = cluster_images(full, &make_addons(full).unwrap());
    images.sort();
    images.dedup();
    let images = images.into_iter().map(|image| BundledImage {
        arch: Arch::Amd64,
        digest: format!("sha256:{}", sha256_hex(&image)),
        sha256: sha256_hex(format!("archive of {image}")),
        size: 1,
        image,
    });
    Bundle {
        format: BUNDLE_FORMAT,
        cluster: full.name.clone(),
        kubernetes_version: full.kubernetes_version.clone(),
        files: files.collect(),
        images: images.collect(),
    }
}

#[test]
fn instances_get_every_file_and_image_from_the_state_store_and_nothing_else_changes() {
    let spec = sample();
    let before = expand_with(&spec, None);
    let after = expand_with(&spec, Some(&bundle_of(&before)));
    let base = "s3://state/dev.example.com/assets/";
    for group in &after.full.groups {
        let config = node_config(&after.full, &group.name, "", &made_up_agents());
        let config = config.unwrap().unwrap();
        let files = config.assets.iter().flat_map(|asset| &asset.urls);
        let images = config.images.iter().flat_map(|image| &image.urls);
        for url in files.chain(images) {
            assert!(url.starts_with(base), "{url}");
        }
        let pulled = config.units.iter().any(|unit| unit.name == IMAGE_PULLS);
        assert!(!pulled, "{}", group.name);
        let has = |image: &String| config.images.iter().any(|own| own.image == *image);
        let mut all = cluster_images(&after.full, &make_addons(&after.full).unwrap());
        // Workers have no use for the control plane's components.
        let theirs = control_plane_images(&after.full);
        assert!(!theirs.is_empty());
        let of_control_planes = group.role == Role::ControlPlane;
        assert!(theirs.iter().all(|image| has(image) == of_control_planes));
        all.retain(|image| of_control_planes || !theirs.contains(image));
        assert!(all.iter().all(has), "{all:?}");
    }
    let mut without = after.clone();
    without.full.assets.clone_from(&before.full.assets);
    without.full.image_archives.clear();
    assert_eq!(without, before);
}

#[test]
fn a_spec_that_needs_more_than_the_bundle_has_is_refused_by_name() {
    let mut spec = sample();
    let whole = bundle_of(&expand_with(&spec, None));
    for index in 0..whole.files.len() {
        let mut bundle = whole.clone();
        let missing = bundle.files.remove(index);
        let problems = try_with(&spec, Some(&bundle)).unwrap_err();
        let said = render_problems(&problems);
        assert!(said.contains("spec.assets.bundle"), "{said}");
        assert!(said.contains(&missing.url), "{said}");
    }
    // Another patch of Kubernetes, of which the catalog has hashes.
    let version = spec.0.spec.kubernetes_version.clone().unwrap();
    spec.0.spec.kubernetes_version = Some("1.36.2".to_owned());
    assert_ne!(version, "1.36.2");
    let said = render_problems(&try_with(&spec, Some(&whole)).unwrap_err());
    assert!(said.contains("v1.36.2/bin/linux/amd64/kubelet"), "{said}");
}

#[test]
fn a_file_without_a_known_hash_gets_that_of_the_bundle() {
    let mut spec = sample();
    let url = "https://files.example.com/containerd.tar.gz";
    let containerd = spec.0.spec.containerd.get_or_insert_default();
    let packages = containerd.packages.get_or_insert_default();
    packages.url_amd64 = Some(url.to_owned());
    let before = expand_with(&spec, None);
    let mut bundle = bundle_of(&expand_with(&sample(), None));
    let hash = sha256_hex("own");
    bundle.files.push(BundledFile {
        name: "containerd".to_owned(),
        arch: Arch::Amd64,
        sha256: hash.clone(),
        size: 1,
        url: url.to_owned(),
    });
    let of = |expanded: &Expanded| {
        let mut assets = expanded.full.assets.iter();
        assets
            .find(|asset| asset.name == "containerd")
            .unwrap()
            .sha256
            .clone()
    };
    assert_eq!(of(&before), None);
    assert_eq!(of(&expand_with(&spec, Some(&bundle))), Some(hash));
}

#[test]
fn what_instances_would_fetch_elsewhere_goes_with_no_bundle() {
    let bundle = bundle_of(&expand_with(&sample(), None));
    let mut spec = sample();
    spec.0.spec.config_base = Some("file:///state/dev.example.com".to_owned());
    let said = render_problems(&try_with(&spec, Some(&bundle)).unwrap_err());
    assert!(
        said.contains("cannot read a bundle in file:///state"),
        "{said}"
    );

    let text = include_str!("../fields/runtimes.yaml");
    let spec = read_objects(text);
    let said = render_problems(&try_with(&spec, Some(&bundle)).unwrap_err());
    for what in [
        "containerd.gvisor",
        "containerd.nvidiaGPU",
        "hook contained.service",
    ] {
        assert!(said.contains(what), "{said}");
    }
}
