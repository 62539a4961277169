//! `kctl schema`: prints the JSON Schema of spec files.

use crate::args::{Schema, SchemaKind};
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::ui::Shell;
use spec::schema::json_schema;

pub fn run(args: &Schema, shell: &Shell) -> Result<Outcome, CommandError> {
    let schema = json_schema(args.kind.map(SchemaKind::as_str));
    let text = serde_json::to_string_pretty(&schema).or_failed(
        "the schema has no JSON form",
        "report this: it is a defect of kctl",
    )?;
    shell.print_document(&text)?;
    Ok(Outcome::Fine)
}
