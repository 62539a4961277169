//! What commands print for programs: one document.

use crate::args::ReportFormat;
use crate::error::{CommandError, ErrorContext};
use crate::ui::Shell;
use serde::Serialize;

/// Prints a document as YAML, or as JSON. What a table shows is up to the command: that counts as JSON here.
pub fn print_document(
    document: &impl Serialize,
    format: ReportFormat,
    shell: &Shell,
) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let text = match format {
        ReportFormat::Yaml => {
            node::yaml::to_yaml(document).or_failed("the output has no YAML form", DEFECT)?
        }
        ReportFormat::Json | ReportFormat::Table => serde_json::to_string_pretty(document)
            .or_failed("the output has no JSON form", DEFECT)?,
    };
    shell.print_document(&text)
}
