//! Writes YAML like kOps: sorted keys, lists at the indentation of their key, plain text wherever every parser reads it as text,
//! and `---` between documents.

use serde::Serialize;
use serde_json::{Map, Value};

use super::text_style::{TextStyle, choose_style, literal_header, quote_text};

/// A value could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The value cannot be represented, for example a map with keys that are not text.
    #[error("the value cannot be represented as YAML")]
    Value(#[from] serde_json::Error),
}

/// Writes one document without `---`.
pub fn to_yaml<T: Serialize>(value: &T) -> Result<String, Error> {
    let sorted: Value = serde_json::to_value(value)?;
    let mut out = String::new();
    match &sorted {
        Value::Object(fields) if !fields.is_empty() => write_fields(fields, 0, &mut out),
        Value::Array(elements) if !elements.is_empty() => write_elements(elements, 0, &mut out),
        scalar => {
            write_scalar(scalar, 0, &mut out);
            out.push('\n');
        }
    }
    Ok(out)
}

/// Writes several documents with `---` between them.
pub fn to_yaml_documents<T: Serialize>(values: &[T]) -> Result<String, Error> {
    let documents = values.iter().map(to_yaml).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("\n---\n\n"))
}

const STEP: usize = 2;

fn write_indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', depth));
}

/// Writes fields, one per line: the first at the end of `out`, the others at the indentation `depth`.
fn write_fields(fields: &Map<String, Value>, depth: usize, out: &mut String) {
    for (index, (key, value)) in fields.iter().enumerate() {
        if index > 0 {
            write_indent(depth, out);
        }
        match choose_style(key) {
            TextStyle::Plain => out.push_str(key),
            TextStyle::Quoted | TextStyle::Literal => out.push_str(&quote_text(key)),
        }
        out.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                write_indent(depth + STEP, out);
                write_fields(fields, depth + STEP, out);
            }
            Value::Array(elements) if !elements.is_empty() => {
                out.push('\n');
                write_indent(depth, out);
                write_elements(elements, depth, out);
            }
            scalar => {
                out.push(' ');
                write_scalar(scalar, depth + STEP, out);
                out.push('\n');
            }
        }
    }
}

/// Writes elements, each after a dash: the first at the end of `out`, the others at the indentation `depth`.
fn write_elements(elements: &[Value], depth: usize, out: &mut String) {
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            write_indent(depth, out);
        }
        out.push_str("- ");
        match element {
            Value::Object(fields) if !fields.is_empty() => write_fields(fields, depth + STEP, out),
            Value::Array(elements) if !elements.is_empty() => {
                write_elements(elements, depth + STEP, out);
            }
            scalar => {
                write_scalar(scalar, depth + STEP, out);
                out.push('\n');
            }
        }
    }
}

/// Writes a scalar or an empty collection without a final newline.
fn write_scalar(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        Value::String(text) => match choose_style(text) {
            TextStyle::Plain => out.push_str(text),
            TextStyle::Quoted => out.push_str(&quote_text(text)),
            TextStyle::Literal => {
                out.push_str(literal_header(text));
                for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                    out.push('\n');
                    if !line.is_empty() {
                        write_indent(depth.max(STEP), out);
                        out.push_str(line);
                    }
                }
            }
        },
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{to_yaml, to_yaml_documents};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "(?s).{0,6}",
            "[-+0-9.:_eExXoTZ/ ]{1,12}",
            "[ \n\t#:'\"a|>&*!%@`,{}\\[\\]?=~<-]{0,8}",
            "(y|n|yes|No|ON|off|true|False|null|~|\\.inf|\\.NaN|<<|=|---|\\.\\.\\.)",
        ]
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any_text().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any_text(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read_back(value in any_value()) {
            let yaml = to_yaml(&value).unwrap();
            let back: Value = serde_saphyr::from_str(&yaml).map_err(|error| TestCaseError::fail(format!("{error}\n{yaml}")))?;
            prop_assert_eq!(back, value, "{}", yaml);
        }
    }

    #[test]
    fn text_that_other_readers_take_for_something_else_is_quoted() {
        for text in [
            "no",
            "1.5",
            "08",
            "0x10",
            "1e3",
            "~",
            "y",
            "",
            "1:30",
            "2017-01-01T00:00:00Z",
            "2017-01-01",
            "1_000",
            ".5",
        ] {
            assert_eq!(to_yaml(&text).unwrap(), format!("\"{text}\"\n"));
        }
        for text in [
            "::/0",
            "1.36.3",
            "10.0.0.0/16",
            "100m",
            "-x",
            "a:b",
            "memory<1",
            "arn:aws:iam::1:role/x",
            "/64#1",
        ] {
            assert_eq!(to_yaml(&text).unwrap(), format!("{text}\n"));
        }
    }

    #[test]
    fn keys_are_sorted_lists_stand_at_their_key_and_long_lines_are_not_folded() {
        let long = "word ".repeat(60) + "end";
        let value = json!({ "b": [{ "z": 1, "a": "#!/bin/sh\nexit\n" }, [1, []]], "a": long, "c": { "d": {} } });
        let expected = format!(
            "a: {long}\nb:\n- a: |\n    #!/bin/sh\n    exit\n  z: 1\n- - 1\n  - []\nc:\n  d: {{}}\n"
        );
        assert_eq!(to_yaml(&value).unwrap(), expected);
    }

    #[test]
    fn documents_are_parted_as_kops_parts_them() {
        let yaml = to_yaml_documents(&[json!({ "a": 1 }), json!({ "b": 2 })]).unwrap();
        assert_eq!(yaml, "a: 1\n\n---\n\nb: 2\n");
    }
}
