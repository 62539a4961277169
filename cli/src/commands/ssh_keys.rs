//! Public SSH keys in the state store, where the name of each is its fingerprint: `kctl delete sshpublickey`, and what `create -f` and
//! `replace -f` do about keys that are there.

use super::removal::{Removal, confirm_removal};
use super::session::Session;
use super::spec_log;
use crate::args::DeleteSshKeys;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::state::{ClusterState, SpecChange, store_error};
use engine::Action;
use spec::api::{Object, SSHCredential};
use spec::read::{Document, ReadOptions, nearest};

/// Fails if the cluster has another key already: instances get one only.
pub fn check_is_first(
    key: &SSHCredential,
    state: Option<&ClusterState>,
) -> Result<(), CommandError> {
    let own = stored_name(&key.spec.public_key);
    let mut stored = state.map(stored_names).unwrap_or_default();
    stored.retain(|name| own.as_ref() != Some(name));
    let Some(other) = stored.first() else {
        return Ok(());
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "SSHCredential {}: the cluster has the SSH key {} already, and instances get one only",
            key.metadata.name,
            fingerprint(other)
        ),
        "`kctl replace -f FILE` puts this one in its place",
    ))
}

/// Deletes the keys in whose place those of files were stored. Files without a key replace none.
pub async fn delete_replaced(
    state: &ClusterState,
    documents: &[Document],
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let new = documents
        .iter()
        .filter_map(|document| match &document.object {
            Object::SSHCredential(key) => stored_name(&key.spec.public_key),
            _ => None,
        });
    let new: Vec<String> = new.collect();
    let mut former = stored_names(state);
    former.retain(|name| !new.is_empty() && !new.contains(name));
    delete_keys("replace", &former, state, session).await
}

/// Runs `kctl delete sshpublickey`.
pub async fn run_delete(
    args: &DeleteSshKeys,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let cluster = session.cluster_name(None).await?;
    let state = ClusterState::read(&session.store, &cluster, ReadOptions::AS_STORED).await?;
    let names = find_keys(&args.fingerprints, &state)?;
    let shown: Vec<String> = names.iter().map(|name| fingerprint(name)).collect();
    let what = format!("SSH key {}", shown.join(" and "));
    let command = format!(
        "kctl delete sshpublickey {} --name {cluster} --yes",
        shown.join(" ")
    );
    let removal = Removal {
        what: &what,
        cluster: &cluster,
        preview: format!("{what} of {cluster} would be deleted."),
        command: &command,
        effect: "deletes it",
    };
    if !confirm_removal(&removal, args.yes, session.shell).await? {
        return Ok(Outcome::Fine);
    }
    delete_keys("delete sshpublickey", &names, &state, session).await?;
    session.shell.hint(&format!(
        "kctl update {cluster} --yes    launches new instances without it; running instances keep it until they are replaced"
    ));
    Ok(Outcome::Fine)
}

/// The named keys; without names all, of which there has to be one.
fn find_keys(fingerprints: &[String], state: &ClusterState) -> Result<Vec<String>, CommandError> {
    let stored = stored_names(state);
    let shown: Vec<String> = stored.iter().map(|name| fingerprint(name)).collect();
    let known: Vec<&str> = shown.iter().map(String::as_str).collect();
    if fingerprints.is_empty() && stored.is_empty() {
        return Err(CommandError::usage_error(
            format!("{} has no SSH keys", state.name()),
            "name another cluster with --name",
        ));
    }
    if fingerprints.is_empty() {
        return Ok(stored);
    }
    let names = fingerprints.iter().map(|given| {
        let name = given.to_ascii_lowercase().replace(':', "");
        match stored.contains(&name) {
            true => Ok(name),
            false => Err(CommandError::usage_error(
                format!("{} has no SSH key {given}", state.name()),
                nearest::hint(given, &known),
            )),
        }
    });
    names.collect()
}

/// Deletes keys, and logs it.
async fn delete_keys(
    command: &str,
    names: &[String],
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if names.is_empty() {
        return Ok(());
    }
    let objects: Vec<String> = names.iter().map(|name| state.keys.ssh_key(name)).collect();
    let deleted = session.store.delete_all(&objects).await;
    deleted.map_err(store_error)?;
    let change = |name: &String| SpecChange {
        object: format!("SSHCredential {}", fingerprint(name)),
        action: Action::Delete,
        fields: None,
        before: None,
        after: None,
    };
    let changes = names.iter().map(change).collect();
    spec_log::log_spec_changes(command, &state.keys, changes, session).await;
    for name in names {
        let done = format!("took SSH key {} out of {}", fingerprint(name), state.name());
        session.shell.print_done(&done);
    }
    Ok(())
}

/// The names of the stored keys: fingerprints without colons.
pub fn stored_names(state: &ClusterState) -> Vec<String> {
    let prefix = state.keys.ssh_key_prefix();
    let keys = state.entries.iter();
    keys.filter_map(|entry| entry.key.strip_prefix(&prefix))
        .map(str::to_owned)
        .collect()
}

/// The name under which a key is stored; `None` if it is not a public key.
fn stored_name(public_key: &str) -> Option<String> {
    node::names::ssh_fingerprint(public_key).map(|pairs| pairs.replace(':', ""))
}

/// A stored key's fingerprint, in pairs of digits.
pub fn fingerprint(name: &str) -> String {
    let digits: Vec<char> = name.chars().collect();
    let pairs = digits.chunks(2).map(String::from_iter);
    pairs.collect::<Vec<String>>().join(":")
}
