//! YAML as kOps writes it: keys sorted, lists at the indent of their key, `---` between
//! documents.

use serde::Serialize;
use serde_json::Value;

/// Why a value could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The value has no YAML form, such as a map whose keys are not text.
    #[error("this value has no YAML form")]
    Value(#[from] serde_json::Error),
    /// The YAML writer refused it.
    #[error("could not write YAML")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

/// One document, without a `---`.
pub fn to_yaml<T: Serialize>(value: &T) -> Result<String, Error> {
    let sorted: Value = serde_json::to_value(value)?;
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    Ok(serde_saphyr::to_string_with_options(&sorted, options)?)
}

/// Several documents, `---` between them as kOps prints it.
pub fn to_yaml_documents<T: Serialize>(values: &[T]) -> Result<String, Error> {
    let documents = values.iter().map(to_yaml).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("\n---\n\n"))
}

#[cfg(test)]
mod tests {
    use super::{to_yaml, to_yaml_documents};
    use serde_json::json;

    #[test]
    fn text_that_looks_like_something_else_stays_text() {
        let texts = [
            "::/0", "no", "1.5", "08", "0x10", "1e3", "~", "y", "", "a: b", "#x", "*", "\n", " a",
        ];
        let value =
            json!({ "texts": texts, "empty": {}, "none": [], "nested": [[1], [{ "y": true }]] });
        let back: serde_json::Value = serde_saphyr::from_str(&to_yaml(&value).unwrap()).unwrap();
        assert_eq!(back, value);
    }

    #[test]
    fn keys_are_sorted_lists_stand_at_their_key_and_long_lines_are_not_folded() {
        let long = "word ".repeat(60);
        let yaml =
            to_yaml(&json!({ "b": [{ "z": 1, "a": "#!/bin/sh\nexit\n" }], "a": long })).unwrap();
        assert_eq!(
            yaml,
            format!("a: \"{long}\"\nb:\n- a: |\n    #!/bin/sh\n    exit\n  z: 1\n")
        );
    }

    #[test]
    fn documents_are_parted_as_kops_parts_them() {
        let yaml = to_yaml_documents(&[json!({ "a": 1 }), json!({ "b": 2 })]).unwrap();
        assert_eq!(yaml, "a: 1\n\n---\n\nb: 2\n");
    }
}
