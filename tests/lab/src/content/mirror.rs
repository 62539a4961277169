//! The public download sites' files, MIRROR/HOST/PATH, for everything that kctl's own catalog names; where each lies is
//! asked of that catalog, so there is no second list of URLs.

use super::archive::Tree;
use super::images::COMPONENTS;
use super::key::sha256;
use super::kit::Kit;
use anyhow::{Context, Result, bail};
use node::config::Arch;
use spec::catalog::{Catalog, Component};
use spec::validate::versions::Version;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// In the place of crictl, whose module the module proxy does not have.
const CRICTL: &str = "\
#!/bin/sh
echo 'there is no crictl in the lab; ctr --namespace k8s.io containers list is the same for containerd alone' >&2
exit 1
";

/// A file of the mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub component: Component,
    /// Version that its URL says, without `v`.
    pub version: String,
    pub url: String,
    pub path: PathBuf,
    pub sha256: String,
}

/// What a download holds.
enum Form {
    /// The program itself.
    Program(PathBuf),
    /// An archive of a folder.
    Archive(Tree),
}

/// Lays out all files, each with its `.sha256` beside it.
pub fn write(mirror: &Path, kit: &Kit) -> Result<Vec<Published>> {
    let catalog = Catalog::embedded().context("kctl's catalog")?;
    let kubernetes = kit.version("kubernetes")?;
    let Some(version) = Version::parse(kubernetes) else {
        bail!("{kubernetes} is no version of Kubernetes");
    };
    let mut all = Vec::new();
    for component in Component::ALL {
        let version = component.version(&version);
        let download = catalog
            .download(component, &version, Arch::Amd64)
            .with_context(|| format!("kctl's catalog has no {}", component.name()))?;
        let path = place(mirror, &download.url)?;
        put(&path, &form(component, kit)?)?;
        let sha256 = describe(&path)?;
        all.push(Published {
            component,
            version,
            url: download.url,
            path,
            sha256,
        });
    }
    others_of_kubernetes(&all, kit)?;
    Ok(all)
}

fn form(component: Component, kit: &Kit) -> Result<Form> {
    Ok(match component {
        Component::CniPlugins => Form::Archive(folder_of(kit, "cni", "")?),
        Component::Containerd => Form::Archive(folder_of(kit, "containerd", "bin/")?),
        Component::Crictl => Form::Archive(Tree::default().script("crictl", CRICTL)),
        Component::EcrCredentialProvider => {
            Form::Program(kit.program("cloud-provider", "ecr-credential-provider")?)
        }
        Component::Kubectl => Form::Program(kit.program("kubernetes", "kubectl")?),
        Component::Kubelet => Form::Program(kit.program("kubernetes", "kubernetes")?),
        Component::Runc => Form::Program(kit.debian.root.join("usr/sbin/runc")),
    })
}

/// All programs of a module.
fn folder_of(kit: &Kit, module: &str, prefix: &str) -> Result<Tree> {
    let binaries = super::modules::module(module)?.binaries;
    binaries.iter().try_fold(Tree::default(), |tree, binary| {
        Ok(tree.program(
            &format!("{prefix}{}", binary.name),
            kit.program(module, binary.name)?,
        ))
    })
}

/// The rest of Kubernetes' binaries, beside kubelet, for whoever wants them by hand.
fn others_of_kubernetes(all: &[Published], kit: &Kit) -> Result<()> {
    let kubelet = all.iter().find(|file| file.component == Component::Kubelet);
    let folder = kubelet
        .and_then(|file| file.path.parent())
        .context("kubelet is not in the mirror")?;
    for component in COMPONENTS.iter().filter(|name| **name != "kubelet") {
        let path = folder.join(component);
        put(
            &path,
            &Form::Program(kit.program("kubernetes", "kubernetes")?),
        )?;
        describe(&path)?;
    }
    Ok(())
}

/// Where a URL's file lies.
fn place(mirror: &Path, url: &str) -> Result<PathBuf> {
    let rest = url
        .strip_prefix("https://")
        .with_context(|| format!("{url} is not https"))?;
    Ok(mirror.join(rest))
}

/// Programs are other names of the built ones; archives are made.
fn put(path: &Path, form: &Form) -> Result<()> {
    let making = || format!("making {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(making)?;
    }
    match form {
        Form::Program(source) => fs::hard_link(source, path)
            .with_context(|| format!("linking {} to {}", path.display(), source.display())),
        Form::Archive(tree) => {
            let file = fs::File::create(path).with_context(making)?;
            tree.tgz(BufWriter::with_capacity(1 << 20, file))
                .with_context(making)
        }
    }
}

/// Writes the `.sha256` beside a file: the hash alone, as Kubernetes publishes it.
fn describe(path: &Path) -> Result<String> {
    let hash = sha256(path)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".sha256");
    let mut file =
        fs::File::create(&beside).with_context(|| format!("making {}", beside.display()))?;
    write!(file, "{hash}").with_context(|| format!("writing {}", beside.display()))?;
    Ok(hash)
}
