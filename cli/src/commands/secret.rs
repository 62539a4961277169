//! `kctl create secret`, `get secrets`, `delete secret`: what users put into the state store for machines. Only
//! `get secret NAME -o plaintext` shows what is in one.

use super::objects::read_text;
use super::session::Session;
use crate::args::{CreateSecret, DeleteSecret, GetSecrets, SecretFormat, SecretName};
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::state::{ClusterState, store_error};
use crate::ui::table;
use aws_client::store::{Expect, StoreError};
use node::secret::{ENCRYPTION_CONFIG, STORED, Secret, check_stored, read_stored, write_stored};
use node::yaml;
use serde::Serialize;
use spec::read::ReadOptions;

/// Secrets are put and looked at whatever this kctl can do with the spec.
const AS_STORED: ReadOptions = ReadOptions {
    allow_unsupported: true,
};

/// Puts one into the store.
pub async fn create(what: &CreateSecret, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let cluster = session.cluster(what.cluster.as_deref()).await?;
    let state = ClusterState::read(&session.store, &cluster, AS_STORED).await?;
    let name = what.secret.in_store();
    let secret = Secret::new(read_text(&what.file)?);
    check_stored(name, &secret).map_err(|(message, hint)| {
        CommandError::usage(format!("{}: {message}", what.file.display()), hint)
    })?;
    let expect = match what.force {
        true => Expect::Any,
        false => Expect::Absent,
    };
    let object = write_stored(&secret).reveal().as_bytes().to_vec();
    let key = state.keys.secret(name);
    let put = session.store.put(&key, object, expect);
    put.await.map_err(|error| match error {
        StoreError::Conflict { .. } => CommandError::said(
            Kind::Precondition,
            format!("{cluster} has a secret {name} already"),
            format!("kctl create secret {name} -f FILE --force    replaces it"),
        ),
        error => store_error(error),
    })?;
    session
        .shell
        .done(&format!("{cluster} has the secret {name}"));
    session.shell.hint(&next(what.secret, &state));
    Ok(Outcome::Fine)
}

/// What makes it act.
fn next(secret: SecretName, state: &ClusterState) -> String {
    let cluster = state.name();
    let asked = state.cluster.object.spec.encryption_config == Some(true);
    match secret {
        SecretName::EncryptionConfig if !asked => format!(
            "kctl edit cluster {cluster} --set spec.encryptionConfig=true    makes the API server use it"
        ),
        SecretName::EncryptionConfig => format!(
            "kctl update {cluster} --yes    brings new control planes that use it; those that use one already take this when they start again"
        ),
        SecretName::DockerConfig => format!(
            "kctl update {cluster} --yes    hands it to new machines; those that run take it when they are replaced"
        ),
    }
}

/// A secret in a list.
#[derive(Debug, Serialize)]
struct Named<'a> {
    name: &'a str,
}

/// Shows which there are, or what is in one.
pub async fn get(what: &GetSecrets, session: &Session<'_>) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let cluster = session.cluster(None).await?;
    let state = ClusterState::read(&session.store, &cluster, AS_STORED).await?;
    let wanted = what.secret.map(SecretName::in_store);
    let there = STORED.into_iter().filter(|name| has(&state, name));
    let found: Vec<Named<'_>> = there
        .filter(|name| wanted.is_none_or(|wanted| wanted == *name))
        .map(|name| Named { name })
        .collect();
    if let (Some(wanted), true) = (wanted, found.is_empty()) {
        return Err(absent(&cluster, wanted));
    }
    match what.output {
        SecretFormat::Plaintext => {
            let wanted = wanted.ok_or_else(|| {
                CommandError::usage("which secret?", "kctl get secret NAME -o plaintext")
            })?;
            session
                .shell
                .document(read(&state, wanted, session).await?.reveal())
        }
        SecretFormat::Json => {
            let text = serde_json::to_string_pretty(&found);
            session
                .shell
                .document(&text.failed("the secrets have no JSON form", DEFECT)?)
        }
        SecretFormat::Yaml => {
            let text = yaml::to_yaml(&found);
            session
                .shell
                .document(&text.failed("the secrets have no YAML form", DEFECT)?)
        }
        SecretFormat::Name => {
            let lines = found.iter().map(|one| format!("secret/{}\n", one.name));
            session.shell.result(&lines.collect::<String>())
        }
        SecretFormat::Table if found.is_empty() => {
            session
                .shell
                .note(&format!("{cluster} has no secrets of yours"));
            Ok(())
        }
        SecretFormat::Table => {
            let rows: Vec<_> = found.iter().map(|one| vec![one.name.to_owned()]).collect();
            session.shell.result(&table::render(&["NAME"], &rows))
        }
    }
}

async fn read(
    state: &ClusterState,
    name: &str,
    session: &Session<'_>,
) -> Result<Secret, CommandError> {
    let key = state.keys.secret(name);
    let object = session.store.get(&key).await.map_err(store_error)?;
    let object = object.ok_or_else(|| absent(state.name(), name))?;
    let text = String::from_utf8(object.bytes).ok();
    // Neither the text nor a part of it may stand in an error.
    text.as_deref().and_then(read_stored).ok_or_else(|| {
        CommandError::usage(
            format!("{key} is no secret as kOps writes it"),
            format!("kctl create secret {name} -f FILE --force    writes it anew"),
        )
    })
}

/// Takes one out of the store.
pub async fn delete(what: &DeleteSecret, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let cluster = session.cluster(None).await?;
    let state = ClusterState::read(&session.store, &cluster, AS_STORED).await?;
    let name = what.secret.in_store();
    if !has(&state, name) {
        return Err(absent(&cluster, name));
    }
    if needed(&state, name) {
        return Err(CommandError::said(
            Kind::Precondition,
            format!(
                "{name} is needed: the spec of {cluster} says encryptionConfig: true, and without it nothing that is encrypted can be read"
            ),
            "decrypt everything first, and set spec.encryptionConfig to false",
        ));
    }
    let question = format!("Take the secret {name} out of {cluster}? Type yes:");
    if !what.yes && !session.shell.asks() {
        session
            .shell
            .result(&format!("The secret {name} of {cluster} would be deleted."))?;
        session.shell.hint(&format!(
            "kctl delete secret {name} --name {cluster} --yes    deletes it"
        ));
        return Ok(Outcome::Fine);
    }
    if !what.yes && !session.shell.confirm(&question, "yes").await {
        return Err(CommandError::said(
            Kind::Usage,
            format!("the secret {name} was not deleted"),
            format!("kctl delete secret {name} --name {cluster} --yes"),
        ));
    }
    let key = state.keys.secret(name);
    let deleted = session.store.delete(&key, Expect::Any);
    deleted.await.map_err(store_error)?;
    session
        .shell
        .done(&format!("took the secret {name} out of {cluster}"));
    session.shell.hint(&format!(
        "kctl update {cluster} --yes    is needed before new machines start: they would wait for it"
    ));
    Ok(Outcome::Fine)
}

/// Fails if machines would wait for a secret that is not there.
pub fn are_there(state: &ClusterState) -> Result<(), CommandError> {
    if !needed(state, ENCRYPTION_CONFIG) || has(state, ENCRYPTION_CONFIG) {
        return Ok(());
    }
    Err(CommandError::said(
        Kind::Precondition,
        "spec.encryptionConfig is true, and there is no secret encryptionconfig: no API server would start",
        format!(
            "kctl create secret encryptionconfig -f FILE --name {}    puts it there",
            state.name()
        ),
    ))
}

/// True if the spec asks for it.
fn needed(state: &ClusterState, name: &str) -> bool {
    let spec = &state.cluster.object.spec;
    let own = spec.kube_api_server.as_ref();
    // With a file of their own users bring it themselves.
    let own = own.and_then(|config| config.encryption_provider_config.as_ref());
    name == ENCRYPTION_CONFIG && spec.encryption_config == Some(true) && own.is_none()
}

/// True if the store has it.
pub fn has(state: &ClusterState, name: &str) -> bool {
    let key = state.keys.secret(name);
    state.entries.iter().any(|entry| entry.key == key)
}

fn absent(cluster: &str, name: &str) -> CommandError {
    CommandError::usage(
        format!("{cluster} has no secret {name}"),
        format!("kctl create secret {name} -f FILE    puts one there"),
    )
}
