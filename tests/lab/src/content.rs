//! What the lab serves: Kubernetes and its companions built from Go modules, laid out as the public download sites and
//! registries have them, with a catalog of their hashes. See docs/lab/content.md.

pub mod archive;
pub mod build;
pub mod catalog;
pub mod command;
pub mod debian;
pub mod go;
pub mod images;
pub mod key;
pub mod kit;
pub mod mirror;
pub mod modules;
pub mod oci;

use anyhow::{Context, Result};
use build::{BuiltModule, create_empty_folder};
use debian::Debian;
use go::Go;
use key::CacheKey;
use kit::ContentKit;
use modules::{
    ADDONS, CILIUM, CONFORMANCE, MODULES, Module, NEXT_KUBERNETES, PREVIOUS_ETCD,
    PREVIOUS_KUBERNETES, all_modules,
};
use std::fs;
use std::path::{Path, PathBuf};

/// How mirror, registry and catalog are put together is part of what they are.
const RECIPE: [&str; 8] = [
    include_str!("content/archive.rs"),
    include_str!("content/catalog.rs"),
    include_str!("content/debian.rs"),
    include_str!("content/images.rs"),
    include_str!("content/images/conformance.rs"),
    include_str!("content/mirror.rs"),
    include_str!("content/oci.rs"),
    include_str!("content/runc.sh"),
];

/// What of it is not what its name says; lies beside it and is part of docs/lab/content.md.
const NOTICE: &str = include_str!("../content.NOTICE");

/// The folder of Go modules in the checkout.
pub fn module_sources() -> PathBuf {
    crate::checkout::tests_folder().join("lab/content")
}

/// Everything in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedContent {
    folder: PathBuf,
}

impl ServedContent {
    /// HOST/PATH of the download sites.
    pub fn mirror_folder(&self) -> PathBuf {
        self.folder.join("mirror")
    }

    /// HOST/REPOSITORY of the registries: OCI image layouts.
    pub fn registry_folder(&self) -> PathBuf {
        self.folder.join("registry")
    }

    /// The catalog of all downloads, for `spec.assets.catalog`.
    pub fn catalog_file(&self) -> PathBuf {
        self.folder.join("catalog.yaml")
    }

    /// For the operator's `PATH`: kubectl, etcdctl, etcdutl; e2e.test and ginkgo with the conformance tests.
    pub fn tools_folder(&self) -> PathBuf {
        self.folder.join("bin")
    }
}

/// What is served beside the newest versions of Kubernetes and etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// The newest, and the patch before.
    Newest,
    /// The minor of Kubernetes before as well.
    WithPreviousMinor,
    /// The minor of etcd before as well.
    WithPreviousEtcd,
    /// The minor of Kubernetes after as well, with what goes with it.
    WithNextMinor,
    /// Addons that are off by default as well.
    WithAddons,
    /// cilium as well.
    WithCilium,
    /// Kubernetes' conformance tests as well.
    WithConformance,
    /// These and cilium.
    WithConformanceAndCilium,
    /// These and the minor of Kubernetes before.
    WithConformanceAndPreviousMinor,
}

impl Versions {
    /// What has to be built.
    pub fn modules(self) -> impl Iterator<Item = &'static Module> {
        const KUBERNETES: &[Module] = &[PREVIOUS_KUBERNETES];
        let others: &[&'static [Module]] = match self {
            Self::Newest => &[],
            Self::WithPreviousMinor => &[KUBERNETES],
            Self::WithPreviousEtcd => &[PREVIOUS_ETCD],
            Self::WithNextMinor => &[NEXT_KUBERNETES],
            Self::WithAddons => &[ADDONS],
            Self::WithCilium => &[CILIUM],
            Self::WithConformance => &[CONFORMANCE],
            Self::WithConformanceAndCilium => &[CONFORMANCE, CILIUM],
            Self::WithConformanceAndPreviousMinor => &[CONFORMANCE, KUBERNETES],
        };
        MODULES.iter().chain(others.iter().copied().flatten())
    }

    /// The options of `lab content` that build it.
    pub fn content_options(self) -> &'static str {
        match self {
            Self::Newest => "",
            Self::WithPreviousMinor => " --previous",
            Self::WithPreviousEtcd => " --previous-etcd",
            Self::WithNextMinor => " --next",
            Self::WithAddons => " --addons",
            Self::WithCilium => " --cilium",
            Self::WithConformance => " --conformance",
            Self::WithConformanceAndCilium => " --conformance --cilium",
            Self::WithConformanceAndPreviousMinor => " --conformance --previous",
        }
    }
}

/// The cache of everything built.
#[derive(Debug)]
pub struct ContentStore {
    folder: PathBuf,
    go: Go,
}

impl ContentStore {
    /// In `content` below the lab's cache directory.
    pub fn open(cache: &Path) -> Result<Self> {
        let folder = cache.join("content");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let go = Go::find_toolchain(folder.join("go"))?;
        Ok(Self { folder, go })
    }

    /// Where a module is in the cache.
    pub fn module_slot(&self, module: &'static Module) -> Result<build::ModuleSlot> {
        build::ModuleSlot::new(module, &self.go, &module_sources(), &self.folder)
    }

    /// A module, built if it has to be. One build at a time: each uses all cores.
    pub fn build_module(
        &self,
        module: &'static Module,
        say: &mut dyn FnMut(&str),
    ) -> Result<BuiltModule> {
        let slot = self.module_slot(module)?;
        if let Some(built) = slot.find_built()? {
            return Ok(built);
        }
        let lock = self.lock_cache()?;
        if let Some(built) = slot.find_built()? {
            return Ok(built);
        }
        let what = [module.name, slot.version()].join(" ");
        say(&format!("{}: building", what.trim_end()));
        let built = slot.build_module(&self.go, &lock, say)?;
        say(&format!(
            "{}: built in {} s",
            module.name, built.record.seconds
        ));
        Ok(built)
    }

    /// Everything, built and laid out if it has to be. `roots`: certificates that programs in images shall trust, PEM. `versions`: which
    /// versions of Kubernetes and etcd, and which addons.
    pub fn prepare_content(
        &self,
        roots: Option<String>,
        versions: Versions,
        say: &mut dyn FnMut(&str),
    ) -> Result<(ServedContent, Vec<BuiltModule>)> {
        let built = versions
            .modules()
            .map(|module| self.build_module(module, say))
            .collect::<Result<Vec<_>>>()?;
        let kit = ContentKit {
            built,
            debian: self.fetch_debian(debian::PACKAGES, say)?,
            cilium: self.fetch_for("cilium", debian::CILIUM_PACKAGES, versions, say)?,
            conformance: self.fetch_for(
                "conformance",
                debian::CONFORMANCE_PACKAGES,
                versions,
                say,
            )?,
            roots,
        };
        let place = self.served_folder(&kit);
        if !place.exists() {
            let _lock = self.lock_cache()?;
            if !place.exists() {
                say("laying out mirror and registry");
                lay_out(&place, &kit)?;
            }
        }
        Ok((ServedContent { folder: place }, kit.built))
    }

    /// The packages that a module's images have, if it is among what is served.
    fn fetch_for(
        &self,
        module: &str,
        packages: &'static [&'static str],
        versions: Versions,
        say: &mut dyn FnMut(&str),
    ) -> Result<Option<Debian>> {
        let wanted = versions.modules().any(|one| one.name == module);
        wanted.then(|| self.fetch_debian(packages, say)).transpose()
    }

    fn fetch_debian(
        &self,
        packages: &'static [&'static str],
        say: &mut dyn FnMut(&str),
    ) -> Result<Debian> {
        let slot = debian::DebianSlot::new(packages, &self.folder);
        if let Some(debian) = slot.find_packages()? {
            return Ok(debian);
        }
        let lock = self.lock_cache()?;
        if let Some(debian) = slot.find_packages()? {
            return Ok(debian);
        }
        say(&format!("debian: downloading {}", packages.join(", ")));
        slot.fetch_packages(&lock)
    }

    fn served_folder(&self, kit: &ContentKit) -> PathBuf {
        let mut key = CacheKey::default();
        for built in &kit.built {
            key.add_part(&built.key);
        }
        for debian in [&kit.cilium, &kit.conformance].into_iter().flatten() {
            key.add_part(&debian.key);
        }
        key.add_part(&kit.debian.key)
            .add_part(kit.roots.as_deref().unwrap_or_default())
            .add_part(NOTICE);
        for part in RECIPE {
            key.add_part(part);
        }
        self.folder.join(format!("served-{}", key.to_hex()))
    }

    /// Held until it is dropped, by one process of the machine.
    fn lock_cache(&self) -> Result<fs::File> {
        let path = self.folder.join("lock");
        let file =
            fs::File::create(&path).with_context(|| format!("opening {}", path.display()))?;
        file.lock()
            .with_context(|| format!("waiting for {}", path.display()))?;
        Ok(file)
    }

    /// Removes Go's caches, and what other versions left; not what `keep` and today's versions are. Not while a lab that
    /// serves something older runs.
    pub fn prune_cache(&self, keep: &ServedContent) -> Result<()> {
        let _lock = self.lock_cache()?;
        self.go.drop_caches()?;
        let mut kept = vec!["lock".to_owned()];
        for packages in [
            debian::PACKAGES,
            debian::CILIUM_PACKAGES,
            debian::CONFORMANCE_PACKAGES,
        ] {
            kept.push(debian::DebianSlot::new(packages, &self.folder).folder_name());
        }
        for module in all_modules() {
            kept.push(self.module_slot(module)?.folder_name());
        }
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path != keep.folder && !kept.contains(&name) {
                fs::remove_dir_all(&path)
                    .with_context(|| format!("removing {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Puts everything in its place, beside it first.
pub fn lay_out(place: &Path, kit: &ContentKit) -> Result<()> {
    let part = place.with_extension("part");
    create_empty_folder(&part)?;
    let served = ServedContent {
        folder: part.clone(),
    };
    let published = mirror::write_mirror(&served.mirror_folder(), kit)?;
    oci::write_layouts(&served.registry_folder(), &images::all_images(kit)?)?;
    fs::write(served.catalog_file(), catalog::catalog_yaml(&published)?)
        .context("writing the catalog")?;
    fs::write(part.join("NOTICE"), NOTICE).context("writing the notice")?;
    fs::create_dir_all(served.tools_folder()).context("making the tools' folder")?;
    let mut tools = vec![
        ("kubernetes", "kubectl"),
        ("etcdctl", "etcdctl"),
        ("etcdctl", "etcdutl"),
    ];
    if kit.conformance.is_some() {
        tools.extend([("conformance", "e2e.test"), ("conformance", "ginkgo")]);
    }
    for (module, name) in tools {
        fs::hard_link(
            kit.program_path(module, name)?,
            served.tools_folder().join(name),
        )
        .with_context(|| format!("linking {name}"))?;
    }
    fs::rename(&part, place).with_context(|| format!("naming {}", place.display()))
}
