//! Building one Go module into the cache: found again by everything it was made from.

use super::go::Go;
use super::key::{CacheKey, list_files};
use super::modules::Module;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a build leaves beside its programs.
const RECORD: &str = "built.json";

/// A module's programs in the cache.
#[derive(Debug, Clone)]
pub struct BuiltModule {
    pub module: &'static Module,
    /// Without `v`; empty for our own programs.
    pub version: String,
    /// Changes when its programs may.
    pub key: String,
    /// Holds the programs under their names.
    pub folder: PathBuf,
    pub record: Record,
    /// It was there already.
    pub cached: bool,
}

/// How the build went.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Record {
    pub seconds: u64,
    /// Size of all programs together.
    pub bytes: u64,
    pub go: String,
}

/// Where a module is, or would be, in the cache.
#[derive(Debug, Clone)]
pub struct ModuleSlot {
    module: &'static Module,
    /// The folder of its code.
    source: PathBuf,
    /// Its `go.mod`.
    requirements: PathBuf,
    version: String,
    key: String,
    folder: PathBuf,
}

impl ModuleSlot {
    pub fn new(module: &'static Module, go: &Go, sources: &Path, cache: &Path) -> Result<Self> {
        let version = module.read_version(sources)?;
        let source = sources.join(module.code_folder());
        let requirements = sources.join(module.requirements_folder());
        let mut key = CacheKey::default();
        key.add_part(&go.version)
            .add_part(module.tags)
            .add_part(module.linker_flags(&version));
        for binary in module.binaries {
            key.add_part(binary.name).add_part(binary.package);
        }
        for file in module.files {
            key.add_part(file);
        }
        key.add_folder(&source)?;
        if requirements != source {
            key.add_folder(&requirements)?;
        }
        let key = key.to_hex();
        let folder = cache.join(format!("{}-{key}", module.name));
        Ok(Self {
            module,
            source,
            requirements: requirements.join("go.mod"),
            version,
            key,
            folder,
        })
    }

    pub fn module(&self) -> &'static Module {
        self.module
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Name of its folder in the cache.
    pub fn folder_name(&self) -> String {
        format!("{}-{}", self.module.name, self.key)
    }

    /// What the cache has of it.
    pub fn find_built(&self) -> Result<Option<BuiltModule>> {
        let path = self.folder.join(RECORD);
        if !self.folder.exists() {
            return Ok(None);
        }
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let record =
            serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))?;
        Ok(Some(self.built_module(record, true)))
    }

    /// Builds it beside its place and moves it there, so that the place holds all or nothing. The caller holds the
    /// cache's lock.
    pub fn build_module(
        &self,
        go: &Go,
        lock: &fs::File,
        say: &mut dyn FnMut(&str),
    ) -> Result<BuiltModule> {
        let started = Instant::now();
        let part = self.folder.with_extension("part");
        create_empty_folder(&part)?;
        let folders = (&*self.source, &*self.requirements, &*part);
        go.build_programs(self.module, &self.version, folders, lock, say)?;
        let mut record = Record {
            go: go.version.clone(),
            ..Record::default()
        };
        for binary in self.module.binaries {
            let (from, to) = (part.join(binary.default_name()), part.join(binary.name));
            fs::rename(&from, &to)
                .with_context(|| format!("{} did not come out of the build", from.display()))?;
            record.bytes += fs::metadata(&to)?.len();
        }
        if !self.module.files.is_empty() {
            let upstream = go.find_module(self.module, &self.source, &self.requirements)?;
            for name in self.module.files {
                copy_files(&upstream.join(name), &part.join(name))?;
            }
        }
        record.seconds = started.elapsed().as_secs();
        fs::write(part.join(RECORD), serde_json::to_vec(&record)?)
            .context("writing down the build")?;
        fs::rename(&part, &self.folder)
            .with_context(|| format!("naming {}", self.folder.display()))?;
        Ok(self.built_module(record, false))
    }

    fn built_module(&self, record: Record, cached: bool) -> BuiltModule {
        BuiltModule {
            module: self.module,
            version: self.version.clone(),
            key: self.key.clone(),
            folder: self.folder.clone(),
            record,
            cached,
        }
    }
}

impl BuiltModule {
    /// The path of one of its programs.
    pub fn program_path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Copies a file, or all files of a folder. The copies may be removed, which files of Go's module cache may not.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for file in list_files(from)? {
            let name = file.strip_prefix(from).unwrap_or(&file);
            copy_files(&file, &to.join(name))?;
        }
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let content = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    fs::write(to, content).with_context(|| format!("writing {}", to.display()))
}

/// An empty folder, whatever an earlier run left there.
pub fn create_empty_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}
