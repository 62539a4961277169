//! What the machines download: where it lies and whether it came from there.

use super::Cluster;
use anyhow::{Context, Result, ensure};
use lab::content::modules::module;
use lab::content::{Served, sources};
use lab::scenario::Lab;
use model::catalog::{Catalog, Component};
use model::full::Arch;
use model::validate::versions::Version;
use serde_json::Value;
use std::collections::BTreeSet;

/// The public URL of a program in the version that the lab serves.
pub fn url(component: Component) -> Result<String> {
    let version = module("kubernetes")?.version(&sources())?;
    let version = Version::parse(&version).context("a version of Kubernetes")?;
    let download =
        Catalog::embedded()?.download(component, &component.version(&version), Arch::Amd64);
    Ok(download.context("kctl's catalog lacks it")?.url)
}

/// An image of the registry with its tag.
pub fn image(served: &Served, repository: &str) -> Result<String> {
    let index = served.registry().join(repository).join("index.json");
    let text = std::fs::read(&index).with_context(|| format!("reading {}", index.display()))?;
    let index: Value = serde_json::from_slice(&text)?;
    let tag = &index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"];
    Ok(format!("{repository}:{}", tag.as_str().context("a tag")?))
}

/// Both machines downloaded from these hosts, by the front's log.
pub fn came(lab: &Lab, cluster: &Cluster) -> Result<()> {
    let log = std::fs::read_to_string(lab.place().run().join("access.log"))?;
    let mut seen = BTreeSet::new();
    for line in log.lines() {
        let entry: Value = serde_json::from_str(line)?;
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        if entry["status"] == 200 && entry["bytes"].as_u64() > Some(1 << 20) {
            seen.insert((text("instance"), text("service"), text("host")));
        }
    }
    for instance in [&cluster.machines.control, &cluster.machines.worker] {
        for (service, host) in [
            ("mirror", "dl.k8s.io"),
            ("mirror", "github.com"),
            ("registry", "registry.k8s.io"),
            ("registry", "ghcr.io"),
        ] {
            let one = (instance.clone(), service.to_owned(), host.to_owned());
            ensure!(seen.contains(&one), "not {one:?}, but {seen:?}");
        }
    }
    Ok(())
}
