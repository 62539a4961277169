//! Merges one cluster's entries into the user's kubeconfig, or removes them. The file is replaced atomically, mode 0600.

use crate::env;
use node::yaml::to_yaml;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Why a kubeconfig could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither KUBECONFIG nor a home directory.
    #[error("there is no place for a kubeconfig: neither KUBECONFIG nor HOME is set")]
    NoPlace,
    /// The file is not a kubeconfig. It is not changed.
    #[error("{path} is not a kubeconfig")]
    Foreign {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file system failed.
    #[error("{path} could not be written")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The kubeconfig could not be written as YAML.
    #[error("the kubeconfig could not be made")]
    Yaml(#[from] node::yaml::Error),
}

/// The file to write: the given one, else the first of KUBECONFIG, else `~/.kube/config`.
pub fn kubeconfig_path(given: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let listed = env::get_variable(env::KUBECONFIG);
    let first = listed
        .as_deref()
        .and_then(|list| std::env::split_paths(list).find(|path| !path.as_os_str().is_empty()));
    first
        .or_else(|| env::home_dir().map(|home| home.join(".kube/config")))
        .ok_or(Error::NoPlace)
}

/// Merges the entries of `added` (a kubeconfig of one cluster) into the file and makes its context current.
pub fn write_entries(path: &Path, added: &str) -> Result<(), Error> {
    let there = read_file(path)?;
    let added = parse(path, added)?;
    replace_file(path, &to_yaml(&merge_entries(there, &added))?)
}

/// Removes a cluster's entries from the file. Returns whether there were any.
pub fn remove_cluster(path: &Path, name: &str) -> Result<bool, Error> {
    let there = read_file(path)?;
    let without = without_cluster(there.clone(), name);
    let changed = there != without;
    if changed {
        replace_file(path, &to_yaml(&without)?)?;
    }
    Ok(changed)
}

/// True if the file has a cluster of that name.
pub fn has_cluster(path: &Path, name: &str) -> Result<bool, Error> {
    let all = list_entries(&read_file(path)?, "clusters");
    Ok(all
        .iter()
        .any(|entry| entry.get("name").and_then(Value::as_str) == Some(name)))
}

/// Gives a cluster that the file has the address and authorities of `added`, a kubeconfig of that cluster. Users, contexts and
/// other keys stay. An address for which `is_ours` is false is the user's own and stays too. Returns the former address, if it was
/// replaced.
pub fn follow_address(
    path: &Path,
    added: &str,
    is_ours: &dyn Fn(&str) -> bool,
) -> Result<Option<String>, Error> {
    let mut there = read_file(path)?;
    let added = parse(path, added)?;
    let Some(new) = list_entries(&added, "clusters").into_iter().next() else {
        return Ok(None);
    };
    let mut all = list_entries(&there, "clusters");
    let found = all
        .iter_mut()
        .find(|entry| entry.get("name") == new.get("name"));
    let (Some(Value::Object(of)), Some(Value::Object(new))) = (
        found.and_then(|entry| entry.get_mut("cluster")),
        new.get("cluster"),
    ) else {
        return Ok(None);
    };
    let former = of.get("server").and_then(Value::as_str).unwrap_or_default();
    let former = former.to_owned();
    let same = ADDRESS.iter().all(|key| of.get(*key) == new.get(*key));
    if same || !is_ours(&former) {
        return Ok(None);
    }
    // These two say the same as certificate-authority-data in another way, and kubectl refuses both.
    for key in ADDRESS
        .iter()
        .chain(&["certificate-authority", "insecure-skip-tls-verify"])
    {
        of.remove(*key);
    }
    of.extend(new.clone());
    there.insert("clusters".to_owned(), Value::Array(all));
    replace_file(path, &to_yaml(&there)?)?;
    Ok(Some(former))
}

/// Keys of a cluster that say where its API is and whom to trust.
const ADDRESS: [&str; 3] = ["server", "tls-server-name", "certificate-authority-data"];

const LISTS: [&str; 3] = ["clusters", "contexts", "users"];

fn merge_entries(mut there: Map<String, Value>, added: &Map<String, Value>) -> Map<String, Value> {
    there.entry("apiVersion").or_insert_with(|| json!("v1"));
    there.entry("kind").or_insert_with(|| json!("Config"));
    for list in LISTS {
        let new = list_entries(added, list);
        let mut all = list_entries(&there, list);
        all.retain(|entry| !new.iter().any(|new| new.get("name") == entry.get("name")));
        all.extend(new);
        there.insert(list.to_owned(), Value::Array(all));
    }
    if let Some(current) = added.get("current-context") {
        there.insert("current-context".to_owned(), current.clone());
    }
    there
}

fn without_cluster(mut there: Map<String, Value>, name: &str) -> Map<String, Value> {
    let named = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(name);
    for list in LISTS {
        let mut all = list_entries(&there, list);
        let before = all.len();
        all.retain(|entry| !named(entry));
        if all.len() != before {
            there.insert(list.to_owned(), Value::Array(all));
        }
    }
    if there.get("current-context").and_then(Value::as_str) == Some(name) {
        there.insert("current-context".to_owned(), json!(""));
    }
    there
}

fn list_entries(file: &Map<String, Value>, list: &str) -> Vec<Value> {
    file.get(list)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

fn read_file(path: &Path) -> Result<Map<String, Value>, Error> {
    match fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Ok(Map::new()),
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
        Err(source) => Err(file_error(path, source)),
    }
}

fn parse(path: &Path, text: &str) -> Result<Map<String, Value>, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error::Foreign {
        path: path.to_owned(),
        source: error.to_string().into(),
    })
}

/// Writes a temporary file and renames it. If the path is a link, replaces its target.
fn replace_file(path: &Path, text: &str) -> Result<(), Error> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = target
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let write_beside = || -> io::Result<()> {
        fs::create_dir_all(dir)?;
        let mut beside = tempfile::NamedTempFile::new_in(dir)?;
        beside
            .as_file()
            .set_permissions(fs::Permissions::from_mode(0o600))?;
        beside.write_all(text.as_bytes())?;
        beside.as_file().sync_all()?;
        beside.persist(&target)?;
        Ok(())
    };
    write_beside().map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_kubeconfig(name: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {name}\nclusters: [{{name: {name}, cluster: {{server: 'https://{name}'}}}}]\n\
             contexts: [{{name: {name}, context: {{cluster: {name}, user: {name}}}}}]\nusers: [{{name: {name}, user: {{}}}}]\n"
        )
    }

    #[test]
    fn what_others_put_there_stays_and_forgetting_undoes_writing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/config");
        write_entries(&path, &test_kubeconfig("other")).unwrap();
        let before = fs::read_to_string(&path).unwrap();
        write_entries(&path, &test_kubeconfig("ours")).unwrap();
        write_entries(&path, &test_kubeconfig("ours")).unwrap();
        let both = read_file(&path).unwrap();
        assert_eq!(list_entries(&both, "clusters").len(), 2);
        assert_eq!(both.get("current-context"), Some(&json!("ours")));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(remove_cluster(&path, "ours").unwrap());
        assert!(!remove_cluster(&path, "ours").unwrap());
        let after = fs::read_to_string(&path).unwrap();
        assert_eq!(
            after,
            before.replace("current-context: other", "current-context: \"\"")
        );
    }

    #[test]
    fn a_new_address_is_followed_and_everything_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let with = |server: &str, more: &str| {
            test_kubeconfig("ours").replace(
                "server: 'https://ours'",
                &format!("server: '{server}'{more}"),
            )
        };
        let new = with(
            "https://new",
            ", tls-server-name: api.internal.ours, certificate-authority-data: bmV3",
        );
        let follow = |is_ours: bool| follow_address(&path, &new, &|_| is_ours).unwrap();
        assert_eq!(follow(true), None, "there is no file");
        assert!(!path.exists());
        write_entries(&path, &test_kubeconfig("other")).unwrap();
        assert_eq!(follow(true), None, "the file lacks the cluster");
        let old = with(
            "https://old",
            ", certificate-authority: /ca, proxy-url: 'http://proxy'",
        )
        .replace("user: {}", "user: {token: secret}");
        write_entries(&path, &old).unwrap();
        write_entries(&path, &test_kubeconfig("other")).unwrap();
        let before = read_file(&path).unwrap();
        assert_eq!(follow(false), None, "the address is the user's");
        assert_eq!(read_file(&path).unwrap(), before);
        assert_eq!(follow(true), Some("https://old".to_owned()));
        assert_eq!(follow(true), None, "once");
        let after = read_file(&path).unwrap();
        for kept in ["users", "contexts", "current-context"] {
            assert_eq!(after.get(kept), before.get(kept), "{kept}");
        }
        let ours = list_entries(&after, "clusters");
        let ours = ours.iter().find(|entry| entry["name"] == "ours").unwrap();
        let expected = json!({
            "server": "https://new", "tls-server-name": "api.internal.ours",
            "certificate-authority-data": "bmV3", "proxy-url": "http://proxy",
        });
        assert_eq!(ours["cluster"], expected);
    }

    #[test]
    fn a_file_that_is_no_kubeconfig_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        fs::write(&path, "- a list\n").unwrap();
        assert!(matches!(
            write_entries(&path, &test_kubeconfig("ours")),
            Err(Error::Foreign { .. })
        ));
        assert_eq!(fs::read_to_string(&path).unwrap(), "- a list\n");
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_entries(&link, &test_kubeconfig("ours")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("ours"));
    }
}
