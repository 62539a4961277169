//! The public download sites' files, MIRROR/HOST/PATH, for everything that kctl's own catalog names; where each lies is
//! asked of that catalog, so there is no second list of URLs.

use super::archive::Tree;
use super::build::BuiltModule;
use super::images::COMPONENTS;
use super::key::sha256;
use super::kit::ContentKit;
use anyhow::{Context, Result, bail};
use node::config::Arch;
use spec::catalog::{Catalog, Component};
use spec::validate::versions::Version;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// In the place of crictl, whose module the module proxy does not have: what units and nodeup ask of it, and nothing else.
const CRICTL: &str = r#"#!/bin/sh
case $1 in
pull) exec ctr --namespace k8s.io images pull --hosts-dir /etc/containerd/certs.d "$2" >/dev/null ;;
inspecti) ctr --namespace k8s.io images ls --quiet "name==$2" | grep -qxF "$2"; exit ;;
esac
echo 'there is no such crictl in the lab; ctr --namespace k8s.io containers list is the same for containerd alone' >&2
exit 1
"#;

/// Before Debian's runc, where cilium is served.
const RUNC: &str = include_str!("runc.sh");

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
enum FileForm {
    /// A program, served as it is.
    Program(PathBuf),
    /// A shell script with a program behind it; `SIZE` in the script stands for the program's size in bytes.
    Script(&'static str, PathBuf),
    /// An archive of a folder.
    Archive(Tree),
}

/// Lays out all files, each with its `.sha256` beside it.
pub fn write_mirror(mirror: &Path, kit: &ContentKit) -> Result<Vec<Published>> {
    let catalog = Catalog::embedded().context("kctl's catalog")?;
    let mut all: Vec<Published> = Vec::new();
    for kubernetes in kit.kubernetes_builds() {
        let Some(version) = Version::parse(&kubernetes.version) else {
            bail!("{} is no version of Kubernetes", kubernetes.version);
        };
        // nerdctl is left out: no spec of the lab asks for it.
        let all_served = Component::ALL
            .into_iter()
            .filter(|one| *one != Component::Nerdctl);
        for component in all_served {
            let version = component.version_for(&version);
            let url = catalog
                .find_download(component, &version, Arch::Amd64)
                .with_context(|| format!("kctl's catalog has no {}", component.name()))?
                .url;
            if all.iter().any(|known| known.url == url) {
                continue;
            }
            let path = file_of_url(mirror, &url)?;
            write_file(&path, &component_form(component, kit, kubernetes)?)?;
            let sha256 = write_sha256(&path)?;
            all.push(Published {
                component,
                version,
                url,
                path,
                sha256,
            });
        }
        others_of_kubernetes(&all, kubernetes)?;
    }
    Ok(all)
}

/// Members of archives have the names that the projects give them: `tar -C bin -caf FILE .` (scripts/release.sh of the CNI plugins),
/// `tar -czf FILE -C releases/NAME bin` (containerd's Makefile), `tar zcvf FILE -C FOLDER crictl` (hack/release.sh of cri-tools).
fn component_form(
    component: Component,
    kit: &ContentKit,
    kubernetes: &BuiltModule,
) -> Result<FileForm> {
    Ok(match component {
        Component::CniPlugins => FileForm::Archive(folder_of(kit, "cni", "./")?),
        Component::Containerd => FileForm::Archive(folder_of(kit, "containerd", "bin/")?),
        Component::Crictl => FileForm::Archive(Tree::default().add_script("crictl", CRICTL)),
        Component::EcrCredentialProvider => {
            FileForm::Program(kit.program_path("cloud-provider", "ecr-credential-provider")?)
        }
        Component::Kubectl => FileForm::Program(kubernetes.program_path("kubectl")),
        Component::Kubelet => FileForm::Program(kubernetes.program_path("kubernetes")),
        Component::Nerdctl => bail!("the lab serves no nerdctl"),
        Component::Runc => {
            let runc = kit.debian.root.join("usr/sbin/runc");
            match kit.cilium {
                Some(_) => FileForm::Script(RUNC, runc),
                None => FileForm::Program(runc),
            }
        }
    })
}

/// All programs of a module.
fn folder_of(kit: &ContentKit, module: &str, prefix: &str) -> Result<Tree> {
    let binaries = super::modules::find_module(module)?.binaries;
    binaries.iter().try_fold(Tree::default(), |tree, binary| {
        Ok(tree.add_program(
            &format!("{prefix}{}", binary.name),
            kit.program_path(module, binary.name)?,
        ))
    })
}

/// The rest of a build's binaries, beside its kubelet, for whoever wants them by hand.
fn others_of_kubernetes(all: &[Published], kubernetes: &BuiltModule) -> Result<()> {
    let kubelet = all
        .iter()
        .find(|file| file.component == Component::Kubelet && file.version == kubernetes.version);
    let folder = kubelet
        .and_then(|file| file.path.parent())
        .context("kubelet is not in the mirror")?;
    for component in COMPONENTS.iter().filter(|name| **name != "kubelet") {
        let path = folder.join(component);
        write_file(
            &path,
            &FileForm::Program(kubernetes.program_path("kubernetes")),
        )?;
        write_sha256(&path)?;
    }
    Ok(())
}

/// Where a URL's file lies.
fn file_of_url(mirror: &Path, url: &str) -> Result<PathBuf> {
    let rest = url
        .strip_prefix("https://")
        .with_context(|| format!("{url} is not https"))?;
    Ok(mirror.join(rest))
}

/// Programs are other names of the built ones; archives are made.
fn write_file(path: &Path, form: &FileForm) -> Result<()> {
    let making = || format!("making {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(making)?;
    }
    match form {
        FileForm::Program(source) => fs::hard_link(source, path)
            .with_context(|| format!("linking {} to {}", path.display(), source.display())),
        FileForm::Script(script, program) => {
            let program =
                fs::read(program).with_context(|| format!("reading {}", program.display()))?;
            let script = script.replace("SIZE", &program.len().to_string());
            fs::write(path, [script.as_bytes(), &program].concat()).with_context(making)
        }
        FileForm::Archive(tree) => {
            let file = fs::File::create(path).with_context(making)?;
            tree.write_tgz(BufWriter::with_capacity(1 << 20, file))
                .with_context(making)
        }
    }
}

/// Writes the `.sha256` beside a file: the hash alone, as Kubernetes publishes it.
fn write_sha256(path: &Path) -> Result<String> {
    let hash = sha256(path)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".sha256");
    let mut file =
        fs::File::create(&beside).with_context(|| format!("making {}", beside.display()))?;
    write!(file, "{hash}").with_context(|| format!("writing {}", beside.display()))?;
    Ok(hash)
}
