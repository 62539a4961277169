//! `lab content`: builds what the lab serves, and shows it.

use super::build::{BuiltModule, ModuleSlot};
use super::modules::{all_modules, find_module};
use super::{ContentStore, ServedContent, Versions};
use crate::host::MachineImages;
use anyhow::{Context, Result};
use clap::Args;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use std::io::Write;
use std::path::Path;

/// Build what the lab serves, as far as the cache lacks it.
#[derive(Debug, Args)]
pub struct Content {
    /// Build only this module; say where its programs are
    #[arg(long, value_name = "NAME", conflicts_with_all = ["list", "prune", "Others"])]
    only: Option<String>,
    /// Show modules and what the cache has of them; build nothing
    #[arg(long, conflicts_with = "Others")]
    list: bool,
    #[command(flatten)]
    others: Others,
    /// Also the images of virtual machines, for `lab up --machines`
    #[arg(long, conflicts_with_all = ["only", "list"])]
    machines: bool,
    /// Afterwards remove Go's caches (about 10 GB) and what other versions left
    #[arg(long, conflicts_with = "list")]
    prune: bool,
}

/// What is built and served beside the newest versions.
#[derive(Debug, Args)]
pub struct Others {
    /// Also the Kubernetes minor before, for upgrades
    #[arg(long)]
    previous: bool,
    /// Also the etcd minor before, for upgrades
    #[arg(long, conflicts_with_all = ["previous", "addons", "cilium", "conformance"])]
    previous_etcd: bool,
    /// Also the Kubernetes minor after, with its etcd, for upgrades
    #[arg(long, conflicts_with_all = ["previous", "previous_etcd", "addons", "cilium", "conformance"])]
    next: bool,
    /// Also addons that are off by default
    #[arg(long, conflicts_with_all = ["previous", "cilium", "conformance"])]
    addons: bool,
    /// Also cilium
    #[arg(long, conflicts_with = "previous")]
    cilium: bool,
    /// Also Kubernetes' conformance tests and their images
    #[arg(long)]
    conformance: bool,
}

impl Others {
    /// What they select; other combinations are refused before.
    pub fn versions(&self) -> Versions {
        match self {
            Self {
                conformance: true,
                previous: true,
                ..
            } => Versions::WithConformanceAndPreviousMinor,
            Self {
                conformance: true,
                cilium: true,
                ..
            } => Versions::WithConformanceAndCilium,
            Self {
                conformance: true, ..
            } => Versions::WithConformance,
            Self { previous: true, .. } => Versions::WithPreviousMinor,
            Self {
                previous_etcd: true,
                ..
            } => Versions::WithPreviousEtcd,
            Self { next: true, .. } => Versions::WithNextMinor,
            Self { addons: true, .. } => Versions::WithAddons,
            Self { cilium: true, .. } => Versions::WithCilium,
            _ => Versions::Newest,
        }
    }
}

impl Content {
    /// `cache`: the lab's cache directory; `roots`: certificates (PEM) that programs in images trust. The result goes to
    /// `out`, progress to `progress`.
    pub fn run(
        &self,
        cache: &Path,
        roots: Option<String>,
        out: &mut dyn Write,
        progress: &mut dyn Write,
    ) -> Result<()> {
        let store = ContentStore::open(cache)?;
        let mut say = |line: &str| {
            // Progress that nobody can read is no reason to stop.
            let _ = writeln!(progress, "{line}");
        };
        if self.list {
            return list_modules(&store, out);
        }
        if let Some(name) = &self.only {
            let built = store.build_module(find_module(name)?, &mut say)?;
            let folder = built.folder.display().to_string();
            show_content(&[built], None, out)?;
            return writeln!(out, "programs {folder}").context("saying where they are");
        }
        let images = self.machines.then(|| {
            say("making the images of virtual machines that the cache lacks");
            MachineImages::prepare_images(cache, roots.as_deref().unwrap_or_default())
        });
        let images = images.transpose()?;
        let versions = self.others.versions();
        let (served, built) = store.prepare_content(roots, versions, &mut say)?;
        if self.prune {
            store.prune_cache(&served)?;
        }
        show_content(&built, Some(&served), out)?;
        if let Some(images) = images {
            for folder in images.folders() {
                writeln!(out, "machine  {}", folder.display())?;
            }
        }
        Ok(())
    }
}

fn list_modules(store: &ContentStore, out: &mut dyn Write) -> Result<()> {
    let mut table = new_table(["MODULE", "VERSION", "BUILT", "WHAT"]);
    for module in all_modules() {
        let slot = store.module_slot(module)?;
        let built = if slot.find_built()?.is_some() {
            "yes"
        } else {
            "no"
        };
        table.add_row([module.name, shown_version(&slot), built, module.about]);
    }
    writeln!(out, "{table}").context("writing the table")
}

fn shown_version(slot: &ModuleSlot) -> &str {
    if slot.module().upstream.is_none() {
        "-"
    } else {
        slot.version()
    }
}

fn show_content(
    all: &[BuiltModule],
    served: Option<&ServedContent>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut table = new_table(["MODULE", "VERSION", "MB", "SECONDS", "", "WHAT"]);
    for built in all {
        table.add_row([
            built.module.name,
            if built.version.is_empty() {
                "-"
            } else {
                &built.version
            },
            &(built.record.bytes / 1_000_000).to_string(),
            &built.record.seconds.to_string(),
            if built.cached { "cached" } else { "built" },
            built.module.about,
        ]);
    }
    writeln!(out, "{table}").context("writing the table")?;
    if let Some(served) = served {
        writeln!(out, "mirror   {}", served.mirror_folder().display())?;
        writeln!(out, "registry {}", served.registry_folder().display())?;
        writeln!(out, "catalog  {}", served.catalog_file().display())?;
        writeln!(out, "tools    {}", served.tools_folder().display())?;
    }
    Ok(())
}

fn new_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(header);
    table
}
