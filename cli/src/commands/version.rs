//! `kctl version`.

use super::document::print_document;
use crate::args::{ReportFormat, Version};
use crate::error::{CommandError, Outcome};
use crate::ui::Shell;
use aws_client::fips;
use serde::Serialize;

/// The version as JSON or YAML.
#[derive(Debug, Serialize)]
struct VersionDocument {
    format: u32,
    version: &'static str,
    /// True if AWS-LC's FIPS module runs.
    fips: bool,
}

pub fn run(args: &Version, shell: &Shell) -> Result<Outcome, CommandError> {
    let document = VersionDocument {
        format: 1,
        version: env!("CARGO_PKG_VERSION"),
        fips: fips::is_running(),
    };
    if args.output == ReportFormat::Table {
        let module = if document.fips { " (FIPS module)" } else { "" };
        let text = format!("kctl {}{module}", document.version);
        shell.print_result(&text)?;
    } else {
        print_document(&document, args.output, shell)?;
    }
    Ok(Outcome::Fine)
}
