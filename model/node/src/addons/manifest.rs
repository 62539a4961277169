//! Manifests of addons.

use super::NotAManifest;
use serde_json::Value;

/// Parses the objects of a manifest and checks that each has a kind, an API version and a name. `what` names the manifest in
/// errors.
pub fn read_manifest(what: &str, text: &str) -> Result<Vec<Value>, NotAManifest> {
    let wrong = |why: String| NotAManifest {
        what: what.to_owned(),
        why,
    };
    // A snippet could show a secret.
    let options = serde_saphyr::options! { with_snippet: false };
    let objects: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| wrong(error.to_string()))?;
    for (index, object) in objects.iter().enumerate() {
        for pointer in ["/apiVersion", "/kind", "/metadata/name"] {
            let text = object.pointer(pointer).and_then(Value::as_str);
            if text.is_none_or(str::is_empty) {
                let field = pointer.trim_start_matches('/').replace('/', ".");
                return Err(wrong(format!("document {} has no {field}", index + 1)));
            }
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::read_manifest;

    #[test]
    fn what_is_no_object_is_refused_with_its_place() {
        for (text, why) in [
            (
                "apiVersion: v1\nkind: A\nmetadata: {}\n",
                "document 1 has no metadata.name",
            ),
            (
                "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: A\n",
                "document 2 has no apiVersion",
            ),
            ("a: [", "line"),
        ] {
            let error = read_manifest("addons/a.yaml", text)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("addons/a.yaml is not a manifest: "),
                "{error}"
            );
            assert!(error.contains(why), "{error}");
        }
    }
}
