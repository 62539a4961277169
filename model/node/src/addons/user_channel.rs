//! Lists of addons that users keep: those that `spec.addons` names. The form is kOps'.

use super::Unreadable;
use super::own::refuse;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest name of an addon: it is the value of a label.
const MAX_NAME: usize = 63;

/// An addon of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserAddon {
    pub name: String,
    /// Name of the manifest's file in the store, without `.yaml`.
    pub id: String,
    /// Address of the manifest.
    pub manifest: String,
    /// sha256 (hex) that the manifest must have, if the list says so.
    pub sha256: Option<String>,
}

#[derive(Deserialize)]
struct List {
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: ListSpec,
}

#[derive(Default, Deserialize)]
struct Metadata {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
struct ListSpec {
    #[serde(default)]
    addons: Vec<Entry>,
}

/// An entry, as kOps has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: Option<String>,
    id: Option<String>,
    version: Option<String>,
    #[serde(default)]
    manifest: String,
    manifest_hash: Option<String>,
    kubernetes_version: Option<String>,
    needs_rolling_update: Option<String>,
    #[serde(rename = "needsPKI")]
    needs_pki: Option<bool>,
    /// Where kOps notes that it is installed; labels of its pods; what kOps removes. kctl keeps a record of every object instead.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
    #[serde(default, rename = "selector")]
    _selector: BTreeMap<String, String>,
    #[serde(rename = "prune")]
    _prune: Option<Value>,
}

/// Reads the list at `url`, and chooses the addons for this version of Kubernetes.
pub fn read_user_channel(
    url: &str,
    text: &str,
    kubernetes: &str,
) -> Result<Vec<UserAddon>, Unreadable> {
    let options = serde_saphyr::options! { with_snippet: false };
    let read: Result<List, _> = serde_saphyr::from_str_with_options(text, options);
    let list = match read {
        Ok(list) if list.kind == "Addons" => list,
        Ok(list) => {
            let why = format!("it is a list of kind {:?}, not Addons", list.kind);
            return refuse(
                url,
                why,
                "name a list of addons, whose entries name manifests",
            );
        }
        Err(error) => {
            let line = error.location().map_or(1, |location| location.line());
            let text = error.without_snippet().to_string();
            let why = text.lines().next().unwrap_or_default().to_owned();
            let place = format!("{url}, line {line}");
            return refuse(
                &place,
                why,
                "write it as kOps' docs do: kind Addons, spec.addons",
            );
        }
    };
    let mut found: Vec<UserAddon> = Vec::new();
    for entry in &list.spec.addons {
        let name = entry.name.clone().or_else(|| list.metadata.name.clone());
        let name = name.unwrap_or_default();
        let place = format!("{url}, addon {name:?}");
        check_entry(entry, &name, &place)?;
        let range = entry.kubernetes_version.as_deref().unwrap_or_default();
        if !in_range(range, kubernetes).ok_or(()).or_else(|()| {
            refuse(
                &place,
                format!("kubernetesVersion {range:?} is not a range that kctl reads"),
                "write comparisons that all hold, such as \">=1.30.0 <1.37.0\"",
            )
        })? {
            continue;
        }
        if found.iter().any(|other| other.name == name) {
            return refuse(
                &place,
                "it is listed twice for this version of Kubernetes".to_owned(),
                "tell the entries apart by kubernetesVersion",
            );
        }
        let id = entry.id.clone().or_else(|| entry.version.clone());
        let id = id.unwrap_or_else(|| "default".to_owned());
        if !is_word(&id) {
            let why = format!("{id:?} cannot be the name of a file");
            return refuse(
                &place,
                why,
                "use letters, digits, dots and dashes in id and version",
            );
        }
        let hash = entry.manifest_hash.as_deref();
        let is_sha256 =
            |hash: &&str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        found.push(UserAddon {
            name,
            id,
            manifest: resolve(url, &entry.manifest, &place)?,
            sha256: hash.filter(is_sha256).map(str::to_ascii_lowercase),
        });
    }
    Ok(found)
}

fn check_entry(entry: &Entry, name: &str, place: &str) -> Result<(), Unreadable> {
    if name.len() > MAX_NAME || !is_word(name) {
        return refuse(
            place,
            "its name cannot be the value of a label".to_owned(),
            "use at most 63 letters, digits, dots and dashes",
        );
    }
    if entry.needs_pki == Some(true) {
        return refuse(
            place,
            "needsPKI: kctl makes no certificate authorities for addons of users".to_owned(),
            "let cert-manager issue its certificates",
        );
    }
    if entry.needs_rolling_update.is_some() {
        return refuse(
            place,
            "needsRollingUpdate: an addon of a user replaces no instances".to_owned(),
            "remove it, and run `kctl rolling-update --force --yes` when the addon needs it",
        );
    }
    Ok(())
}

/// Letters, digits, dots, dashes and underscores, with a letter or digit at both ends.
fn is_word(text: &str) -> bool {
    let fine = |char: char| char.is_ascii_alphanumeric() || "-._".contains(char);
    let ends = [text.chars().next(), text.chars().next_back()];
    text.chars().all(fine)
        && ends
            .iter()
            .all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
}

/// The address of a manifest: its own, or one beside the list.
fn resolve(list: &str, manifest: &str, place: &str) -> Result<String, Unreadable> {
    if manifest.contains("://") {
        return Ok(manifest.to_owned());
    }
    let parts = || manifest.split('/');
    if parts().any(|part| part.is_empty() || part == "." || part == "..")
        || manifest.contains(['?', '#', '%'])
    {
        return refuse(
            place,
            format!("{manifest:?} is no place of a manifest beside the list"),
            "write a relative path without `.` and `..`, or a whole address",
        );
    }
    let (folder, _) = list.rsplit_once('/').unwrap_or((list, ""));
    Ok(format!("{folder}/{manifest}"))
}

/// True if all comparisons of a range hold; `None`: it is not one.
fn in_range(range: &str, version: &str) -> Option<bool> {
    let version = numbers(version)?;
    let mut holds = true;
    for word in range.split_whitespace() {
        let number = word.trim_start_matches(['<', '>', '=']);
        let operator = word.get(..word.len() - number.len())?;
        let other = numbers(number)?;
        holds &= match operator {
            "" | "=" | "==" => version == other,
            "<" => version < other,
            "<=" => version <= other,
            ">" => version > other,
            ">=" => version >= other,
            _ => return None,
        };
    }
    Some(holds)
}

fn numbers(version: &str) -> Option<[u32; 3]> {
    let version = version.trim_start_matches('v');
    let version = version.split(['-', '+']).next()?;
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let three = [
        parts.next()??,
        parts.next().unwrap_or(Some(0))?,
        parts.next().unwrap_or(Some(0))?,
    ];
    parts.next().is_none().then_some(three)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "s3://bucket/addons/list.yaml";

    fn read(entries: &str) -> Result<Vec<UserAddon>, Unreadable> {
        let text = format!("kind: Addons\nmetadata: {{name: mine}}\nspec:\n  addons:\n{entries}");
        read_user_channel(URL, &text, "1.36.3")
    }

    #[test]
    fn entries_for_this_version_are_chosen_with_the_address_of_their_manifests() {
        let hash = "A".repeat(64);
        let found = read(&format!(
            "  - {{name: a, manifest: a/a.yaml, kubernetesVersion: '>=1.30.0 <1.37.0', id: v1, manifestHash: {hash}, selector: {{k8s-addon: a}}, prune: {{kinds: []}}}}\n\
             \x20 - {{name: a, manifest: old.yaml, kubernetesVersion: <1.30.0}}\n\
             \x20 - {{manifest: 'https://example.com/x.yaml', version: 1.2.3, manifestHash: 0123}}\n"
        ));
        let addon = |name: &str, id: &str, manifest: &str, sha256: Option<String>| UserAddon {
            name: name.to_owned(),
            id: id.to_owned(),
            manifest: manifest.to_owned(),
            sha256,
        };
        assert_eq!(
            found.unwrap(),
            [
                addon(
                    "a",
                    "v1",
                    "s3://bucket/addons/a/a.yaml",
                    Some("a".repeat(64))
                ),
                addon("mine", "1.2.3", "https://example.com/x.yaml", None),
            ]
        );
    }

    #[test]
    fn what_kctl_does_not_do_is_refused_by_name() {
        for (entry, said) in [
            ("{name: a, manifest: a, needsPKI: true}", "needsPKI"),
            (
                "{name: a, manifest: a, needsRollingUpdate: all}",
                "needsRollingUpdate",
            ),
            ("{name: a, manifest: ../a}", "../a"),
            ("{name: a, manifest: /a}", "/a"),
            ("{name: a}", "\"\""),
            ("{name: a/b, manifest: a}", "name"),
            ("{name: a, manifest: a, id: a/b}", "a/b"),
            ("{name: a, manifest: a, kubernetesVersion: ~1.2}", "~1.2"),
            ("{name: a, manifest: a, kubernetesVersion: 1.x}", "1.x"),
            ("{name: a, manifest: a, colour: red}", "colour"),
        ] {
            let refused = read(&format!("  - {entry}\n")).unwrap_err();
            assert!(
                refused.to_string().contains(said) && refused.place.starts_with(URL),
                "{entry}: {refused}"
            );
        }
        let twice = read("  - {name: a, manifest: a}\n  - {name: a, manifest: b}\n").unwrap_err();
        assert!(twice.why.contains("twice"));
        for text in ["", "a: [", "kind: Deployment\n", "- a\n"] {
            read_user_channel(URL, text, "1.36.3").unwrap_err();
        }
    }
}
