//! Reads and writes the file of a saved plan. Writing is atomic; reading checks format and digest.

use super::{FORMAT, KIND, SavedPlan};
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::private_file::replace_private_file;
use node::digest::sha256_hex;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

const AGAIN: &str = "make it again with `kctl update --plan-out FILE`";

/// Maximum size in bytes. Each group takes some tens of kilobytes.
const MOST: u64 = 128 << 20;

/// Writes the file atomically, with mode 0600.
pub fn write(path: &Path, saved: &SavedPlan) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(saved).or_failed(
        "the plan has no JSON form",
        "report this: it is a defect of kctl",
    )?;
    let written = replace_private_file(path, format!("{text}\n").as_bytes());
    written.or_usage_error(
        format!("could not write the plan to {}", path.display()),
        "name a file in a folder that is there and can be written to",
    )
}

/// Reads the file. Fails if it has another format or was changed.
pub fn read(path: &Path) -> Result<SavedPlan, CommandError> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes));
    read.or_usage_error(
        format!("could not read the plan {shown}"),
        "name a file that `kctl update --plan-out FILE` wrote",
    )?;
    if bytes.len() as u64 > MOST {
        return Err(CommandError::usage_error(
            format!(
                "{shown} has more than {} MiB: no plan is that large",
                MOST >> 20
            ),
            "name a file that `kctl update --plan-out FILE` wrote",
        ));
    }
    let json: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let what = format!(
            "{shown}:{}:{}: this is not a whole plan",
            error.line(),
            error.column()
        );
        CommandError::new(
            ErrorKind::Usage,
            anyhow::Error::new(error).context(what),
            AGAIN,
        )
    })?;
    if json.get("kind").and_then(Value::as_str) != Some(KIND) {
        return Err(CommandError::usage_error(
            format!("{shown} is JSON, but not a plan of kctl: its kind is not {KIND:?}"),
            "name a file that `kctl update --plan-out FILE` wrote (`-o json` is for reading only)",
        ));
    }
    let format = json.get("format").and_then(Value::as_u64);
    if format != Some(u64::from(FORMAT)) {
        let has = format.map_or("no format".to_owned(), |format| format!("format {format}"));
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("the plan in {shown} has {has}, and this kctl reads format {FORMAT}"),
            format!(
                "use the kctl that wrote it{}, or {AGAIN}",
                version_note(&json)
            ),
        ));
    }
    let claimed = json.get("sha256").and_then(Value::as_str);
    if claimed != Some(plan_digest(&json).as_str()) {
        return Err(CommandError::usage_error(
            format!(
                "{shown} was changed after kctl wrote it: its content is not that of its sha256"
            ),
            format!(
                "take the file as it was written, or {AGAIN}; to get another plan, change the spec"
            ),
        ));
    }
    SavedPlan::from_json(json.clone(), path)
}

impl SavedPlan {
    fn from_json(json: Value, path: &Path) -> Result<Self, CommandError> {
        let version = version_note(&json);
        serde_json::from_value(json).map_err(|error| {
            let what = format!(
                "this kctl cannot read the plan in {}{version}",
                path.display()
            );
            let error = anyhow::Error::new(error).context(what);
            CommandError::new(ErrorKind::Precondition, error, AGAIN)
        })
    }
}

fn version_note(json: &Value) -> String {
    let version = json.get("kctl").and_then(Value::as_str);
    version.map_or(String::new(), |version| format!(" (kctl {version})"))
}

/// The digest of a document without its field `sha256`. Independent of layout and order of fields.
pub fn plan_digest(json: &Value) -> String {
    let mut rest = json.clone();
    if let Some(fields) = rest.as_object_mut() {
        fields.remove("sha256");
    }
    let mut text = String::new();
    write_canonical(&rest, &mut text);
    sha256_hex(&text)
}

/// Writes JSON in a canonical form: no white space, sorted names.
fn write_canonical(json: &Value, text: &mut String) {
    match json {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_digest_is_over_values_and_not_over_their_layout() {
        let one = json!({"a": 1, "b": [{"x": null, "y": "z"}]});
        let laid_out =
            "{\n \"b\": [ {\"y\": \"z\", \"x\": null} ], \"sha256\": \"any\", \"a\": 1 }";
        let same: Value = serde_json::from_str(laid_out).unwrap();
        assert_eq!(plan_digest(&one), plan_digest(&same));
        for other in [
            json!({"a": 2, "b": [{"x": null, "y": "z"}]}),
            json!({"a": 1, "b": [{"y": "z"}]}),
            json!({"a": 1, "b": [], "c": {"x": null, "y": "z"}}),
        ] {
            assert_ne!(plan_digest(&one), plan_digest(&other), "{other}");
        }
    }
}
