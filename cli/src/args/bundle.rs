//! `kctl bundle`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `kctl bundle`.
#[derive(Debug, Args)]
pub struct Bundle {
    /// What to do.
    #[command(subcommand)]
    pub what: BundleWhat,
}

/// What `kctl bundle` does.
#[derive(Debug, Subcommand)]
pub enum BundleWhat {
    /// Put every file and image that a cluster's instances need into one file
    Create(BundleCreate),
    /// Check every byte of a bundle
    Verify(BundleVerify),
    /// Store a bundle in the cluster's folder of the state store, where its instances find it
    Push(BundlePush),
}

/// `kctl bundle create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl bundle create demo.example.com --out demo.bundle     write demo.bundle and demo.bundle.sig

Files and images are those of the spec as it is stored, from where they are published. The same spec and the same published images give the same bytes.
What was interrupted goes on: until it is done, downloads are in FILE.parts. At the end both are there: the disk needs twice the size of the bundle.
The key that signs the bundle is read, and made for a new cluster: this needs the rights of an administrator of the cluster.")]
pub struct BundleCreate {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The bundle; it must not exist
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// `kctl bundle verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl bundle verify demo.bundle

Needs no AWS and no state store. Whose bundle it is, `kctl bundle push` finds out by FILE.sig.")]
pub struct BundleVerify {
    /// The bundle
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `kctl bundle push`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl bundle push demo.bundle
  kctl edit cluster demo.example.com --set spec.assets.bundle=SHA256     what `push` prints

What was interrupted goes on. One file at a time, of up to 2 GiB, is unpacked into the folder of temporary files (TMPDIR). Nothing uses the bundle until the spec names it.")]
pub struct BundlePush {
    /// The bundle; beside it must be its signature, FILE.sig
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// Store it although another bundle that was signed later is stored
    #[arg(long)]
    pub allow_older: bool,
}
