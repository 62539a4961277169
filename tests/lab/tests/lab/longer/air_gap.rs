//! A cluster is born from its bundle, after download sites and registries have gone.

use super::super::Step;
use super::super::cluster::{self, CLUSTER};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::Value;
use std::collections::BTreeSet;

pub const STEPS: [Step; 2] = [
    (
        "a bundle of the spec is made, checked and stored",
        store_bundle,
    ),
    (
        "every instance becomes a Ready node, and none looks for a site",
        be_born,
    ),
];

fn store_bundle(lab: &mut Lab) -> Result<()> {
    cluster::create_spec(lab, &["--networking=flannel", "--dns=none"])?;
    let file = lab.place().data_folder().join("demo.bundle");
    let file = file.to_str().context("a path")?;
    lab.run_kctl(&["bundle", "create", CLUSTER, "--out", file])?;
    lab.run_kctl(&["bundle", "verify", file])?;
    let sha256 = lab.run_kctl(&["bundle", "push", file, CLUSTER])?;
    let set = format!("spec.assets.bundle={}", sha256.trim());
    lab.run_kctl(&["edit", "cluster", CLUSTER, "--set", &set])
        .map(drop)
}

fn be_born(lab: &mut Lab) -> Result<()> {
    let listed = lab.run_kctl(&["get", "assets", CLUSTER, "-o", "json"])?;
    let sites = sites_of(&serde_json::from_str(&listed)?)?;
    lab.close_sites()?;
    let before = lab.names_asked()?.len();
    cluster::make_cluster(lab)?;
    cluster::expect_ready(lab, 1)?;
    cluster::expect_healthy(lab)?;
    let mut asked = lab.names_asked()?.split_off(before);
    asked.retain(|name| sites.contains(name));
    ensure!(asked.is_empty(), "somebody looked for {asked:?}");
    Ok(())
}

/// The names of all download sites and registries.
fn sites_of(assets: &Value) -> Result<BTreeSet<String>> {
    let mut sites = BTreeSet::new();
    for list in ["files", "images"] {
        for one in assets[list].as_array().context("a list")? {
            let place = one["canonical"].as_str().context("a place")?;
            let place = place.strip_prefix("https://").unwrap_or(place);
            let (site, _) = place.split_once('/').context("a site")?;
            sites.insert(site.replace("docker.io", "registry-1.docker.io"));
        }
    }
    ensure!(sites.len() > 2, "few sites: {sites:?}");
    Ok(sites)
}
