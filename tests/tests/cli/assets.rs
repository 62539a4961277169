//! `kctl get assets`: every file and image, and where instances get it; and copies of them.

use crate::internet::{Internet, OWN_REGISTRY, log_in, published_file, published_index};
use crate::kctl::Kctl;
use crate::scenario::{REGION, create_cluster, kctl_with_cloud};
use crate::simulator::Simulator;
use node::digest::sha256_hex;
use serde_json::Value;
use std::collections::BTreeMap;

/// What `kctl get assets` prints.
pub fn list_assets(kctl: &Kctl) -> Value {
    let printed = kctl.run(&["get", "assets", "-o", "json"]).expect_success();
    serde_json::from_str(&printed).expect("JSON")
}

/// A field of each image or file.
pub fn field_of_all<'a>(assets: &'a Value, list: &str, field: &str) -> Vec<&'a str> {
    let all = assets[list].as_array().expect("a list").iter();
    all.map(|one| one[field].as_str().expect("text")).collect()
}

/// The objects in a bucket whose keys begin so.
pub fn stored_objects(
    simulator: &Simulator,
    bucket: &str,
    prefix: &str,
) -> BTreeMap<String, String> {
    let code = format!(
        "import json\nfound = boto('s3').get_paginator('list_objects_v2').paginate(Bucket={bucket:?}, Prefix={prefix:?}).search('Contents[].Key')\n\
         print(json.dumps({{key: boto('s3').get_object(Bucket={bucket:?}, Key=key)['Body'].read().decode('latin-1') for key in found if key}}))"
    );
    serde_json::from_str(&simulator.run_python(REGION, &code)).expect("JSON")
}

fn set_places(kctl: &Kctl, files: &str, images: &str) {
    let files = format!("spec.assets.fileRepository={files}");
    let images = format!("spec.assets.containerRegistry={images}");
    let words = ["edit", "cluster", "--set", &files, "--set", &images];
    kctl.run(&words).expect_success();
}

#[test]
fn every_file_and_image_is_listed_with_where_instances_get_it() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &["--networking", "flannel"]).expect_success();
    let published = list_assets(&kctl);
    for list in ["files", "images"] {
        assert_eq!(
            field_of_all(&published, list, "canonical"),
            field_of_all(&published, list, "download")
        );
    }
    let files = field_of_all(&published, "files", "canonical").join("\n");
    let images = field_of_all(&published, "images", "canonical").join("\n");
    for part in [
        "/kubelet",
        "/kubectl",
        "/containerd-",
        "/runc.amd64",
        "/cni-plugins-",
    ] {
        assert!(files.contains(part), "{part}: {files}");
    }
    for part in [
        "/kube-apiserver:",
        "/etcd:",
        "/pause:",
        "/coredns:",
        "/flannel:",
        "/aws-ebs-csi-driver:",
    ] {
        assert!(images.contains(part), "{part}: {images}");
    }
    for hash in field_of_all(&published, "files", "sha") {
        assert_eq!(hash.len(), 64, "{hash}");
    }

    set_places(&kctl, "s3://files/copies", "registry.example.com/copies");
    let copied = list_assets(&kctl);
    for (list, start) in [
        ("files", "s3://files/copies/"),
        ("images", "registry.example.com/copies/"),
    ] {
        assert_eq!(
            field_of_all(&copied, list, "canonical"),
            field_of_all(&published, list, "canonical")
        );
        for download in field_of_all(&copied, list, "download") {
            assert!(download.starts_with(start), "{download}");
        }
    }
    let yaml = kctl.run(&["get", "assets", "-o", "yaml"]).expect_success();
    assert_eq!(
        copied,
        serde_saphyr::from_str::<Value>(&yaml).expect("YAML")
    );
    let table = kctl.run(&["get", "assets"]).expect_success();
    for list in ["files", "images"] {
        for download in field_of_all(&copied, list, "download") {
            assert!(table.contains(download), "{download}: {table}");
        }
    }
}

#[test]
fn copies_need_a_place_that_kctl_can_write_to() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    let nowhere = kctl.run(&["get", "assets", "--copy"]);
    assert_eq!(nowhere.code, 2);
    assert!(
        nowhere.err.contains("neither fileRepository nor"),
        "{}",
        nowhere.err
    );
    let site = "spec.assets.fileRepository=https://files.example.com";
    kctl.run(&["edit", "cluster", "--set", site])
        .expect_success();
    let to_site = kctl.run(&["get", "assets", "--copy"]);
    assert_eq!(to_site.code, 2);
    assert!(
        to_site.err.contains("does not copy files to"),
        "{}",
        to_site.err
    );
}

#[test]
fn what_is_missing_is_copied_as_it_is_and_once() {
    let simulator = Simulator::start_simulator();
    let mut kctl = kctl_with_cloud(&simulator);
    let internet = Internet::connect(&mut kctl, &simulator);
    simulator.run_python(REGION, "boto('s3').create_bucket(Bucket='files', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'})");
    let catalog = "spec.assets.catalog=catalog.yaml";
    create_cluster(&kctl, &["--networking", "flannel", "--set", catalog]).expect_success();
    let images = format!("{OWN_REGISTRY}/copies");
    set_places(&kctl, "s3://files/copies", &images);

    let stranger = kctl.run(&["get", "assets", "--copy"]);
    assert_eq!(stranger.code, 1);
    assert!(stranger.err.contains("docker login"), "{}", stranger.err);
    log_in(&kctl);
    let copied = kctl.run(&["get", "assets", "--copy", "-o", "json"]);
    let copied: Value = serde_json::from_str(&copied.expect_success()).expect("JSON");
    let mut expected = BTreeMap::new();
    for file in copied["files"].as_array().expect("files") {
        let text = |field: &str| file[field].as_str().expect("text");
        let content = published_file(text("canonical"));
        let key = text("download")
            .strip_prefix("s3://files/")
            .expect("a copy");
        assert_eq!(text("sha"), sha256_hex(&content));
        expected.insert(format!("{key}.sha256"), sha256_hex(&content));
        expected.insert(key.to_owned(), content);
    }
    assert_eq!(stored_objects(&simulator, "files", ""), expected);
    for image in copied["images"].as_array().expect("images") {
        let text = |field: &str| image[field].as_str().expect("text");
        let (_, rest) = text("canonical").split_once('/').expect("a registry");
        let (repository, _) = rest.rsplit_once(':').expect("a tag");
        let kept = internet.kept_index(text("download"));
        assert_eq!(kept, Some(published_index(repository)), "{image}");
    }

    internet.take_requests();
    let again = kctl.run(&["get", "assets", "--copy", "-o", "json"]);
    let again: Value = serde_json::from_str(&again.expect_success()).expect("JSON");
    assert_eq!(again, copied);
    let asked = internet.take_requests();
    let asks = |request: &String| request.contains("/manifests/") || request.contains("/token?");
    assert!(asked.iter().all(asks), "{asked:?}");

    let moved = copied["images"][0]["download"].as_str().expect("an image");
    let (published, other) = (internet.kept_index(moved).expect("a copy"), b"{}");
    internet.move_tag(moved, other);
    let refused = kctl.run(&["get", "assets", "--copy"]);
    assert_eq!(refused.code, 1, "{}", refused.err);
    for words in ["--overwrite", &sha256_hex(&published), &sha256_hex(other)] {
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    }
    assert_eq!(internet.kept_index(moved).as_deref(), Some(&other[..]));
    kctl.run(&["get", "assets", "--copy", "--overwrite"])
        .expect_success();
    assert_eq!(internet.kept_index(moved), Some(published));

    // A challenge of another host is not answered: the password of the registry would go where that host says.
    internet.lead_astray();
    internet.take_requests();
    let refused = kctl.run(&["get", "assets", "--copy"]);
    assert_eq!(refused.code, 1, "{}", refused.err);
    let asked = internet.take_requests();
    assert!(refused.err.contains("redirects to"), "{}", refused.err);
    assert!(asked.iter().any(|request| request.ends_with("/astray")));
    assert!(
        !asked.iter().any(|request| request.contains("/stolen")),
        "{asked:?}"
    );
}
