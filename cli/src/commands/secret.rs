//! `kctl create secret`, `get secrets`, `delete secret`: secrets of the user in the state store, which instances read. Only
//! `get secret NAME -o plaintext` prints the content of one.

use super::assemble::StoredSecrets;
use super::etcd::snapshot::timed_name;
use super::removal::{Removal, confirm_removal};
use super::session::Session;
use super::spec_objects::read_text;
use crate::args::{CreateSecret, DeleteSecret, GetSecrets, SecretFormat, SecretName};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::{ClusterState, store_error};
use crate::ui::table;
use aws_client::store::{Expect, Object, StoreError};
use node::secret::{
    CILIUM_PASSWORD, DOCKER_CONFIG, ENCRYPTION_CONFIG, KEPT_ENCRYPTION_CONFIG, STORED, Secret,
    check_key_lengths, check_stored, cilium_key_id, cilium_key_length, lost_encryption_keys,
    read_cilium_key, read_stored, write_stored,
};
use node::yaml;
use serde::Serialize;
use spec::api::cluster::ClusterSpec;
use spec::read::ReadOptions;

pub async fn create_secret(
    args: &CreateSecret,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let cluster = session.cluster_name(args.cluster.as_deref()).await?;
    let state = ClusterState::read(&session.store, &cluster, ReadOptions::AS_STORED).await?;
    let name = args.secret.in_store();
    let secret = Secret::new(read_text(&args.file)?);
    check_stored(name, &secret).map_err(|(message, hint)| {
        CommandError::usage_error(format!("{}: {message}", args.file.display()), hint)
    })?;
    let object = write_stored(&secret).reveal().as_bytes().to_vec();
    let key = state.keys.secret(name);
    let former = match (args.secret, args.force) {
        (SecretName::EncryptionConfig | SecretName::CiliumPassword, true) => {
            session.store.get(&key).await.map_err(store_error)?
        }
        _ => None,
    };
    let changed = former.as_ref().filter(|former| former.bytes != object);
    match (changed, args.secret) {
        (Some(former), SecretName::CiliumPassword) => check_next_key(&cluster, former, &secret)?,
        (Some(former), _) => {
            if !args.drop_keys {
                check_keys_stay(&cluster, former, &secret)?;
            }
            keep_former(&state, former, session).await?;
        }
        (None, _) => {}
    }
    let expect = match (former, args.force) {
        (Some(former), _) => Expect::Version(former.version),
        (None, true) if args.secret == SecretName::DockerConfig => Expect::Any,
        // One that somebody stored meanwhile may be in use already.
        (None, _) => Expect::Absent,
    };
    let put = session.store.put(&key, object, expect);
    put.await.map_err(|error| match error {
        StoreError::Conflict { .. } if args.force => changed_meanwhile(&cluster, name),
        StoreError::Conflict { .. } => CommandError::from_message(
            ErrorKind::Precondition,
            format!("{cluster} has a secret {name} already"),
            format!("kctl create secret {name} -f FILE --force    replaces it"),
        ),
        error => store_error(error),
    })?;
    session
        .shell
        .print_done(&format!("{cluster} has the secret {name}"));
    session.shell.hint(&next_step(args.secret, &state));
    Ok(Outcome::Fine)
}

/// Fails if another key of cilium cannot take the place of the one that is there under traffic: nodes use the smaller one of the numbers that
/// two of them know, and after 15 the 1 (bpf/lib/ipsec.h of cilium), and running agents take no key of another length.
fn check_next_key(cluster: &str, former: &Object, new: &Secret) -> Result<(), CommandError> {
    let text = String::from_utf8_lossy(&former.bytes);
    let facts = |secret: &Secret| {
        let line = read_cilium_key(secret)?;
        Some((cilium_key_id(&line)?, cilium_key_length(&line)?))
    };
    let former = read_stored(&text).and_then(|former| facts(&former));
    let (Some((former, length)), Some((id, new_length))) = (former, facts(new)) else {
        return Ok(());
    };
    let next = former % 15 + 1;
    let refuse = |message: String, hint: String| {
        Err(CommandError::from_message(
            ErrorKind::Precondition,
            message,
            hint,
        ))
    };
    if id != next {
        return refuse(
            format!(
                "the new key has the number {id}, and that of {cluster} has {former}: nodes with the one would not understand those with the other"
            ),
            format!("begin it with {next}+, in hexadecimal digits from a random source as before"),
        );
    }
    if length != new_length {
        return refuse(
            format!(
                "the new key authenticates packets with another length than that of {cluster}: running agents would refuse it, and those of new nodes would not"
            ),
            "keep the algorithm and the last number; another length needs nodes without IPsec in between (enableEncryption: false, a rolling update)".to_owned(),
        );
    }
    Ok(())
}

/// Fails if a key of the encryption configuration that is there is missing in the new one: Secrets that are not encrypted anew, and those
/// in backups, could not be read any more.
fn check_keys_stay(cluster: &str, former: &Object, new: &Secret) -> Result<(), CommandError> {
    let text = String::from_utf8_lossy(&former.bytes);
    // One that cannot be read has no keys for anybody.
    let former = read_stored(&text).unwrap_or_else(|| Secret::new(""));
    let lost = lost_encryption_keys(&former, new);
    if lost.is_empty() {
        return Ok(());
    }
    let error = CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "the new {ENCRYPTION_CONFIG} of {cluster} lacks keys of the one that is there, and what they encrypted could not be read any more, \
             in backups too: {}",
            lost.join(", ")
        ),
        "add them after the new key: the first key of a provider encrypts, all decrypt",
    );
    Err(error.with_hint(
        "once every Secret was written anew, --drop-keys replaces it; the former one is kept beside it for backups",
    ))
}

/// Keeps the encryption configuration that is replaced or deleted: backups have Secrets that only its keys decrypt.
async fn keep_former(
    state: &ClusterState,
    former: &Object,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let name = timed_name(KEPT_ENCRYPTION_CONFIG);
    let key = state.keys.secret(&name);
    let put = session
        .store
        .put(&key, former.bytes.clone(), Expect::Absent);
    put.await.map_err(|error| match error {
        StoreError::Conflict { .. } => changed_meanwhile(state.name(), ENCRYPTION_CONFIG),
        error => store_error(error),
    })?;
    session.shell.note(&format!(
        "the former {ENCRYPTION_CONFIG} is kept as {}/{key}: without its keys nobody can read the Secrets in older backups",
        session.url
    ));
    Ok(())
}

fn changed_meanwhile(cluster: &str, name: &str) -> CommandError {
    CommandError::from_message(
        ErrorKind::Precondition,
        format!("somebody else has changed the secret {name} of {cluster} meanwhile"),
        "see what there is with `kctl get secrets`, and repeat the command",
    )
}

/// The hint after a secret was stored.
fn next_step(secret: SecretName, state: &ClusterState) -> String {
    let cluster = state.name();
    let asked = state.cluster.object.spec.encrypts_secrets();
    match secret {
        SecretName::EncryptionConfig if !asked => format!(
            "kctl edit cluster {cluster} --set spec.encryptionConfig=true    makes the API server use it"
        ),
        SecretName::EncryptionConfig => format!(
            "kctl update {cluster} --yes    launches new control planes with it; a control plane that already uses one reads the new one at its next start"
        ),
        SecretName::DockerConfig => format!(
            "kctl update {cluster} --yes    gives it to new instances; running instances get it when they are replaced"
        ),
        SecretName::CiliumPassword if !is_required(state, CILIUM_PASSWORD) => format!(
            "kctl edit cluster {cluster} --set spec.networking.cilium.enableEncryption=true    makes cilium use it"
        ),
        SecretName::CiliumPassword => format!(
            "kctl update {cluster} --yes    gives it to all nodes; they use the former one beside it for five minutes"
        ),
    }
}

/// A secret in a list.
#[derive(Debug, Serialize)]
struct SecretEntry<'a> {
    name: &'a str,
}

/// Lists the secrets, or prints one.
pub async fn show_secrets(args: &GetSecrets, session: &Session<'_>) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let cluster = session.cluster_name(None).await?;
    let state = ClusterState::read(&session.store, &cluster, ReadOptions::AS_STORED).await?;
    let wanted = args.secret.map(SecretName::in_store);
    let there = STORED.into_iter().filter(|name| has_secret(&state, name));
    let found: Vec<SecretEntry<'_>> = there
        .filter(|name| wanted.is_none_or(|wanted| wanted == *name))
        .map(|name| SecretEntry { name })
        .collect();
    if let (Some(wanted), true) = (wanted, found.is_empty()) {
        return Err(absent_error(&cluster, wanted));
    }
    match args.output {
        SecretFormat::Plaintext => {
            let wanted = wanted.ok_or_else(|| {
                CommandError::usage_error("which secret?", "kctl get secret NAME -o plaintext")
            })?;
            session
                .shell
                .print_document(read_secret(&state, wanted, session).await?.reveal())
        }
        SecretFormat::Json => {
            let text = serde_json::to_string_pretty(&found);
            session
                .shell
                .print_document(&text.or_failed("the secrets have no JSON form", DEFECT)?)
        }
        SecretFormat::Yaml => {
            let text = yaml::to_yaml(&found);
            session
                .shell
                .print_document(&text.or_failed("the secrets have no YAML form", DEFECT)?)
        }
        SecretFormat::Name => {
            let lines = found.iter().map(|one| format!("secret/{}\n", one.name));
            session.shell.print_result(&lines.collect::<String>())
        }
        SecretFormat::Table if found.is_empty() => {
            session.shell.note(&format!("{cluster} has no secrets"));
            Ok(())
        }
        SecretFormat::Table => {
            let rows: Vec<_> = found.iter().map(|one| vec![one.name.to_owned()]).collect();
            session.shell.print_result(&table::render(&["NAME"], &rows))
        }
    }
}

async fn read_secret(
    state: &ClusterState,
    name: &str,
    session: &Session<'_>,
) -> Result<Secret, CommandError> {
    let key = state.keys.secret(name);
    let object = session.store.get(&key).await.map_err(store_error)?;
    let object = object.ok_or_else(|| absent_error(state.name(), name))?;
    let text = String::from_utf8(object.bytes).ok();
    // An error must not contain any part of the text.
    text.as_deref().and_then(read_stored).ok_or_else(|| {
        CommandError::usage_error(
            format!("{key} is not a secret in kOps' format"),
            format!("kctl create secret {name} -f FILE --force    writes it anew"),
        )
    })
}

pub async fn delete_secret(
    args: &DeleteSecret,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let cluster = session.cluster_name(None).await?;
    let state = ClusterState::read(&session.store, &cluster, ReadOptions::AS_STORED).await?;
    let name = args.secret.in_store();
    if !has_secret(&state, name) {
        return Err(absent_error(&cluster, name));
    }
    if is_required(&state, name) {
        let (why, hint) = match args.secret {
            SecretName::CiliumPassword => (
                "encrypts packets with IPsec, and its nodes start with a key only",
                "kctl create secret ciliumpassword -f FILE --force    replaces it",
            ),
            _ => (
                "says encryptionConfig: true, and without it nothing that is encrypted can be read",
                "decrypt everything first, and set spec.encryptionConfig to false",
            ),
        };
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("{name} is needed: the spec of {cluster} {why}"),
            hint,
        ));
    }
    let removal = Removal {
        what: &format!("the secret {name}"),
        cluster: &cluster,
        preview: format!("The secret {name} of {cluster} would be deleted."),
        command: &format!("kctl delete secret {name} --name {cluster} --yes"),
        effect: "deletes it",
    };
    if !confirm_removal(&removal, args.yes, session.shell).await? {
        return Ok(Outcome::Fine);
    }
    let key = state.keys.secret(name);
    let former = match args.secret {
        SecretName::EncryptionConfig => session.store.get(&key).await.map_err(store_error)?,
        SecretName::DockerConfig | SecretName::CiliumPassword => None,
    };
    if let Some(former) = &former {
        keep_former(&state, former, session).await?;
    }
    let expect = former.map_or(Expect::Any, |former| Expect::Version(former.version));
    let deleted = session.store.delete(&key, expect);
    deleted.await.map_err(|error| match error {
        StoreError::Conflict { .. } => changed_meanwhile(&cluster, name),
        error => store_error(error),
    })?;
    session
        .shell
        .print_done(&format!("took the secret {name} out of {cluster}"));
    session.shell.hint(&format!(
        "kctl update {cluster} --yes    is needed before new instances start: they would wait for the secret"
    ));
    Ok(Outcome::Fine)
}

/// A secret that the spec needs and the store lacks.
pub struct MissingSecret {
    /// What would not work.
    pub why: &'static str,
    /// The command that comes next.
    pub next: String,
}

/// The first secret for which instances would wait for ever.
pub fn find_missing_secret(state: &ClusterState) -> Option<MissingSecret> {
    let needs = [
        (
            ENCRYPTION_CONFIG,
            "Secrets are to be encrypted in etcd (spec.encryptionConfig or spec.profile), and there is no secret encryptionconfig: no API server would start",
        ),
        (
            CILIUM_PASSWORD,
            "cilium encrypts packets with IPsec, and there is no secret ciliumpassword: no node would become ready",
        ),
    ];
    let mut missing = needs.into_iter();
    let missing = missing.find(|(name, _)| is_required(state, name) && !has_secret(state, name));
    missing.map(|(name, why)| MissingSecret {
        why,
        next: format!(
            "kctl create secret {name} -f FILE --name {}    puts it there",
            state.name()
        ),
    })
}

/// Fails if instances would wait for a secret that does not exist.
pub fn check_required_secrets(state: &ClusterState) -> Result<(), CommandError> {
    find_missing_secret(state).map_or(Ok(()), |missing| Err(missing.into()))
}

impl From<MissingSecret> for CommandError {
    fn from(missing: MissingSecret) -> Self {
        Self::from_message(ErrorKind::Precondition, missing.why, missing.next)
    }
}

/// Fails if no API server would start with a key of the encryption configuration that is stored. No part of the observation: whoever only
/// plans may be one who must not read secrets (docs/operations/plans.md).
pub async fn check_encryption_config(
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if !is_required(state, ENCRYPTION_CONFIG) {
        return Ok(());
    }
    let secret = read_secret(state, ENCRYPTION_CONFIG, session).await?;
    check_key_lengths(&secret).map_err(|(message, hint)| {
        let message = format!(
            "secret {ENCRYPTION_CONFIG}: {message}: no API server would start with it"
        );
        CommandError::usage_error(message, hint).with_hint(format!(
            "kctl create secret {ENCRYPTION_CONFIG} -f FILE --name {} --force    replaces it; leave its other keys in FILE",
            state.name()
        ))
    })
}

/// Reads what becomes part of the desired state.
pub async fn read_stored_secrets(
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<StoredSecrets, CommandError> {
    let ipsec_key = if is_required(state, CILIUM_PASSWORD) {
        let secret = read_secret(state, CILIUM_PASSWORD, session).await?;
        check_stored(CILIUM_PASSWORD, &secret).map_err(|(message, hint)| {
            CommandError::usage_error(format!("secret {CILIUM_PASSWORD}: {message}"), hint)
        })?;
        read_cilium_key(&secret)
    } else {
        None
    };
    Ok(StoredSecrets {
        docker_config: has_secret(state, DOCKER_CONFIG),
        ipsec_key,
    })
}

/// True if the spec needs any secret.
pub fn needs_secrets(spec: &ClusterSpec) -> bool {
    STORED.iter().any(|name| needs_secret(spec, name))
}

/// True if the spec needs the secret.
fn is_required(state: &ClusterState, name: &str) -> bool {
    needs_secret(&state.cluster.object.spec, name)
}

fn needs_secret(spec: &ClusterSpec, name: &str) -> bool {
    if name == CILIUM_PASSWORD {
        let networking = spec.networking.as_ref();
        let cilium = networking.and_then(|networking| networking.cilium.as_ref());
        return cilium.is_some_and(|cilium| cilium.uses_ipsec());
    }
    let own = spec.kube_api_server.as_ref();
    // With `encryptionProviderConfig` the user provides the file.
    let own = own.and_then(|config| config.encryption_provider_config.as_ref());
    name == ENCRYPTION_CONFIG && spec.encrypts_secrets() && own.is_none()
}

/// True if the store has the secret.
pub fn has_secret(state: &ClusterState, name: &str) -> bool {
    let key = state.keys.secret(name);
    state.entries.iter().any(|entry| entry.key == key)
}

fn absent_error(cluster: &str, name: &str) -> CommandError {
    CommandError::usage_error(
        format!("{cluster} has no secret {name}"),
        format!("kctl create secret {name} -f FILE    puts one there"),
    )
}
