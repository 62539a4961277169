//! `kctl version`.

use super::ReportFormat;
use clap::Args;

/// `kctl version`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  kctl version
  kctl version -o json    for programs

Says too whether the cryptography of this kctl is AWS-LC's FIPS module, as the library that runs tells.")]
pub struct Version {
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}
