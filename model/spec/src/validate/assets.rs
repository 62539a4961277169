//! Where images and binaries come from.

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

/// Instances fetch files by HTTP. kOps reads buckets too, since 1.37.
fn check_repository(url: &str, problems: &mut Vec<Problem>) {
    let path = "spec.assets.fileRepository";
    if url.starts_with("s3://") {
        let message = "kctl does not support s3:// URLs of files";
        let hint = "write the bucket's https URL, which the instances must be able to read without credentials";
        problems.push(Problem::error(path, message).hint(hint));
    } else if let Err(Refusal { message, hint }) = parse_web_url(url) {
        problems.push(Problem::error(path, message).hint(hint));
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
