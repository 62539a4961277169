//! Where images and binaries come from.

use crate::api::assets::AssetsSpec;
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;
use node::values::{Refusal, parse_web_url};

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(assets) = &spec.assets else { return };
    if assets.container_registry.is_some() && assets.container_proxy.is_some() {
        let problem = Problem::error(
            "spec.assets.containerProxy",
            "both containerRegistry and containerProxy are given",
        );
        problems.push(
            problem.hint("keep one: a registry that holds copies, or a proxy that fetches them"),
        );
    }
    if let Some(url) = assets.file_repository.as_deref() {
        check_repository(url, problems);
    }
    check_bundle(assets, problems);
    let hash = assets.catalog_sha256.as_deref();
    match assets.catalog.as_deref() {
        None if hash.is_some() => {
            let problem = Problem::error("spec.assets.catalogSHA256", "a hash without a catalog");
            problems.push(problem.hint("add catalog, or remove the hash"));
        }
        Some(catalog) => check_location(catalog, hash, problems),
        None => {}
    }
}

/// Instances fetch files by HTTP or from S3. kOps has other schemes for other clouds and for registries.
fn check_repository(url: &str, problems: &mut Vec<Problem>) {
    let path = "spec.assets.fileRepository";
    if let Some(place) = url.strip_prefix("s3://") {
        let (bucket, _) = place.split_once('/').unwrap_or((place, ""));
        if bucket.is_empty() || place.trim_end_matches('/').contains("//") {
            let problem = Problem::error(path, format!("{url:?} is not a place in S3"));
            problems.push(problem.hint("write s3://BUCKET/PATH"));
        }
    } else if let Some(scheme) = ["azureblob", "gs", "oci"]
        .into_iter()
        .find(|scheme| url.starts_with(&format!("{scheme}://")))
    {
        let problem = Problem::error(path, format!("kctl does not support {scheme}:// URLs"));
        problems.push(problem.hint("write https://HOST/PATH or s3://BUCKET/PATH"));
    } else if let Err(Refusal { message, hint }) = parse_web_url(url) {
        problems.push(Problem::error(path, message).hint(hint));
    }
}

/// A bundle has everything, under the names of the public registries.
fn check_bundle(assets: &AssetsSpec, problems: &mut Vec<Problem>) {
    if assets.bundle.is_none() {
        return;
    }
    for (field, value) in [
        ("containerProxy", &assets.container_proxy),
        ("containerRegistry", &assets.container_registry),
        ("fileRepository", &assets.file_repository),
    ] {
        if value.is_some() {
            let message = format!("both bundle and {field} are given");
            let problem = Problem::error("spec.assets.bundle", message);
            problems.push(problem.hint("keep one: the bundle has every file and image"));
        }
    }
}

fn check_location(catalog: &str, hash: Option<&str>, problems: &mut Vec<Problem>) {
    let path = "spec.assets.catalog";
    if catalog.starts_with("https://") {
        if let Err(Refusal { message, hint }) = parse_web_url(catalog) {
            problems.push(Problem::error(path, message).hint(hint));
        }
        if hash.is_none() {
            let problem = Problem::error(path, "a catalog from a URL needs its hash");
            problems.push(problem.hint("add catalogSHA256 with what sha256sum prints for it"));
        }
    } else if catalog.contains("://") {
        let problem = Problem::error(
            path,
            format!("\"{catalog}\" is neither a path in the store nor an https URL"),
        );
        problems.push(problem.hint("write a path such as assets/catalog.yaml, or https://..."));
    } else if catalog.is_empty()
        || catalog.starts_with('/')
        || catalog.split('/').any(|part| part == "..")
    {
        let problem = Problem::error(
            path,
            format!("\"{catalog}\" is not a path inside the store"),
        );
        problems.push(
            problem.hint("write it relative to the cluster's folder, such as assets/catalog.yaml"),
        );
    }
}

/// True for 64 hex digits.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
