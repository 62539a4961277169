//! `kctl schema`: prints the JSON Schema of spec files.

use super::document::print_document;
use crate::args::{ReportFormat, Schema, SchemaKind};
use crate::error::{CommandError, Outcome};
use crate::ui::Shell;
use spec::schema::json_schema;

pub fn run(args: &Schema, shell: &Shell) -> Result<Outcome, CommandError> {
    let schema = json_schema(args.kind.map(SchemaKind::as_str));
    print_document(&schema, ReportFormat::Json, shell)?;
    Ok(Outcome::Fine)
}
