//! Objects of users that are stored with the spec and applied as an addon: `kctl create -f`, `replace -f`, `get`, `edit` and `delete`.

use super::edit::Editor;
use super::session::Session;
use super::spec_log;
use super::store_objects::StorePolicy;
use crate::args::{DeleteObject, EditObjects, GetObjects, ListFormat};
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::state::{
    ClusterState, OwnFiles, SpecChange, StoreKeys, unreadable_error, write_own_objects,
};
use crate::ui::table;
use engine::Action;
use node::addons::{ObjectKey, OwnObject, read_own_objects};
use serde_json::Value;
use spec::read::ReadOptions;

/// Adds objects of files to those of a cluster, or replaces them, as [`check_policy`] has allowed. `own` are the cluster's.
pub async fn store_objects(
    command: &str,
    keys: &StoreKeys,
    objects: &[OwnObject],
    own: &OwnFiles,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let default = own.find_file(&keys.own_objects());
    let mut merged: Vec<Value> = default
        .iter()
        .flat_map(|file| file.objects.iter().map(|own| own.object.clone()))
        .collect();
    let mut changes = Vec::new();
    for one in objects {
        let key = ObjectKey::of(&one.object);
        let same = |object: &Value| key.is_the_same(&ObjectKey::of(object));
        match merged.iter_mut().find(|object| same(object)) {
            Some(stored) if *stored == one.object => {
                session.shell.note(&format!("unchanged {key}"));
            }
            Some(stored) => {
                stored.clone_from(&one.object);
                changes.push(change(&key, Action::Update));
            }
            None => {
                merged.push(one.object.clone());
                changes.push(change(&key, Action::Create));
            }
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    let version = default.map(|file| &file.version);
    write_own_objects(&session.store, keys, &merged, version).await?;
    for change in &changes {
        session
            .shell
            .print_done(&format!("stored {}", change.object));
    }
    spec_log::log_spec_changes(command, keys, changes, session).await;
    Ok(())
}

/// Checks that objects may be stored: what is new, what replaces another one, and what another file has.
pub fn check_policy(
    objects: &[OwnObject],
    own: &OwnFiles,
    keys: &StoreKeys,
    policy: StorePolicy,
) -> Result<(), CommandError> {
    for (index, one) in objects.iter().enumerate() {
        let key = ObjectKey::of(&one.object);
        let same = |other: &OwnObject| key.is_the_same(&ObjectKey::of(&other.object));
        if let Some(other) = objects.iter().take(index).find(|other| same(other)) {
            return Err(CommandError::usage_error(
                format!(
                    "{}: {key} is given twice, the first time in {}",
                    one.place, other.place
                ),
                "remove one of them",
            ));
        }
        let stored = own.files.iter().find(|file| file.objects.iter().any(same));
        match stored {
            Some(file) if file.key != keys.own_objects() => {
                return Err(CommandError::usage_error(
                    format!("{key} is in {} already", file.key),
                    "change that file of the state store, or remove the object there",
                ));
            }
            Some(_) if !policy.replace => {
                return Err(CommandError::from_message(
                    ErrorKind::Precondition,
                    format!("{key} exists already"),
                    "change it with `kctl replace -f` or `kctl edit objects`",
                ));
            }
            None if !policy.create => {
                return Err(CommandError::usage_error(
                    format!("{key} does not exist yet"),
                    "create it with `kctl create -f` or `kctl replace --force -f`",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn change(key: &ObjectKey, action: Action) -> SpecChange {
    // No digests: one of a Secret could be guessed from.
    SpecChange {
        object: key.to_string(),
        action,
        fields: None,
        before: None,
        after: None,
    }
}

/// `kctl get objects`.
pub async fn show_objects(args: &GetObjects, session: &Session<'_>) -> Result<(), CommandError> {
    let name = session.cluster_name(None).await?;
    let state = ClusterState::read(&session.store, &name, ReadOptions::AS_STORED).await?;
    let own = OwnFiles::read(&session.store, &state.keys, &state.entries).await?;
    let wanted = |own: &&OwnObject| {
        let key = ObjectKey::of(&own.object);
        args.object
            .as_ref()
            .is_none_or(|wanted| key.name == *wanted)
    };
    let found: Vec<&OwnObject> = own.objects().filter(wanted).collect();
    if let (Some(wanted), true) = (&args.object, found.is_empty()) {
        return Err(CommandError::usage_error(
            format!("{name} has no object {wanted}"),
            "kctl get objects    lists them",
        ));
    }
    let values: Vec<&Value> = found.iter().map(|own| &own.object).collect();
    match args.form.output {
        ListFormat::Yaml | ListFormat::Json => {
            super::get::print_documents(session, &values, args.form, args.object.is_some())
        }
        ListFormat::Name => {
            let line = |value: &&Value| {
                let key = ObjectKey::of(value);
                format!("{}/{}\n", key.kind.to_lowercase(), key.name)
            };
            let lines: String = values.iter().map(line).collect();
            session.shell.print_result(&lines)
        }
        _ if values.is_empty() => {
            session
                .shell
                .note(&format!("{name} has no objects of its own"));
            session.shell.hint("kctl create -f FILE    stores some");
            Ok(())
        }
        ListFormat::Table | ListFormat::Wide => {
            let prefix = state.keys.prefix();
            let rows = found.iter().map(|own| {
                let key = ObjectKey::of(&own.object);
                let place = own.place.strip_prefix(&prefix).unwrap_or(&own.place);
                let file = place.split(", line").next().unwrap_or(place);
                vec![
                    key.kind,
                    key.namespace.unwrap_or_default(),
                    key.name,
                    file.to_owned(),
                ]
            });
            let rows: Vec<Vec<String>> = rows.collect();
            let headers = ["KIND", "NAMESPACE", "NAME", "FILE"];
            session.shell.print_result(&table::render(&headers, &rows))
        }
    }
}

/// `kctl edit objects`: all objects of `default` in an editor. What is taken out is removed by the next update.
pub async fn edit_objects(
    args: &EditObjects,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let state = ClusterState::read(&session.store, &name, ReadOptions::AS_STORED).await?;
    let keys = &state.keys;
    let own = OwnFiles::read(&session.store, keys, &state.entries).await?;
    let key = keys.own_objects();
    let default = own.find_file(&key);
    let mut editor = Editor::open(&key, default.map_or("", |file| &file.text))?;
    let Some(text) = editor.run_editor()? else {
        session.shell.note("nothing changed");
        session
            .shell
            .hint("kctl delete object KIND NAME    removes the last one");
        return Ok(Outcome::Fine);
    };
    let mut kept =
        |error: CommandError| error.with_hint(format!("your text is in {}", editor.keep_file()));
    let objects =
        read_own_objects("your text", &text).map_err(|error| kept(unreadable_error(error)))?;
    let others = OwnFiles {
        files: own
            .files
            .iter()
            .filter(|file| file.key != key)
            .cloned()
            .collect(),
        others: Vec::new(),
    };
    let policy = StorePolicy {
        create: true,
        replace: false,
    };
    check_policy(&objects, &others, keys, policy).map_err(&mut kept)?;
    let former: &[OwnObject] = default.map_or(&[], |file| &file.objects);
    let changes = differences(former, &objects);
    let values: Vec<Value> = objects.into_iter().map(|own| own.object).collect();
    let version = default.map(|file| &file.version);
    let written = write_own_objects(&session.store, keys, &values, version).await;
    written.map_err(kept)?;
    for change in &changes {
        let word = match change.action {
            Action::Delete => "removed",
            _ => "stored",
        };
        session
            .shell
            .print_done(&format!("{word} {}", change.object));
    }
    spec_log::log_spec_changes("edit", keys, changes, session).await;
    session.shell.hint(&next_step(&name));
    Ok(Outcome::Fine)
}

/// What was added, changed and removed.
fn differences(before: &[OwnObject], after: &[OwnObject]) -> Vec<SpecChange> {
    let find = |all: &[OwnObject], key: &ObjectKey| {
        let mut all = all.iter();
        let found = all.find(|own| ObjectKey::of(&own.object) == *key);
        found.map(|own| own.object.clone())
    };
    let mut found = Vec::new();
    for own in after {
        let key = ObjectKey::of(&own.object);
        match find(before, &key) {
            None => found.push(change(&key, Action::Create)),
            Some(former) if former != own.object => found.push(change(&key, Action::Update)),
            Some(_) => {}
        }
    }
    let keys = before.iter().map(|own| ObjectKey::of(&own.object));
    let gone = keys.filter(|key| find(after, key).is_none());
    found.extend(gone.map(|key| change(&key, Action::Delete)));
    found
}

fn next_step(cluster: &str) -> String {
    format!("kctl update {cluster}    shows what would change in the cluster's addons")
}

/// `kctl delete object`.
pub async fn delete_object(
    args: &DeleteObject,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let state = ClusterState::read(&session.store, &name, ReadOptions::AS_STORED).await?;
    let keys = &state.keys;
    let own = OwnFiles::read(&session.store, keys, &state.entries).await?;
    let matches = |own: &OwnObject| {
        let key = ObjectKey::of(&own.object);
        key.kind.eq_ignore_ascii_case(&args.kind)
            && key.name == args.object
            && (args.namespace.is_none() || key.namespace == args.namespace)
    };
    let found: Vec<ObjectKey> = own
        .objects()
        .filter(|own| matches(own))
        .map(|own| ObjectKey::of(&own.object))
        .collect();
    let [key] = found.as_slice() else {
        let what = format!("{} {}", args.kind, args.object);
        let (sentence, hint) = match found.len() {
            0 => (
                format!("{name} has no object {what}"),
                "kctl get objects    lists them",
            ),
            count => (
                format!("{name} has {count} objects {what}"),
                "say which one with --namespace",
            ),
        };
        return Err(CommandError::usage_error(sentence, hint));
    };
    let file = own
        .files
        .iter()
        .find(|file| file.objects.iter().any(matches));
    let Some(file) = file.filter(|file| file.key == keys.own_objects()) else {
        let place = file.map_or("another file", |file| file.key.as_str());
        return Err(CommandError::usage_error(
            format!("{key} is in {place}, which kctl does not write"),
            "change or remove that file of the state store",
        ));
    };
    if !args.yes {
        session.shell.print_result(&format!(
            "{key} would be taken out of the objects of {name}.\n"
        ))?;
        session.shell.hint("--yes takes it out");
        return Ok(Outcome::Fine);
    }
    let rest: Vec<Value> = file
        .objects
        .iter()
        .filter(|own| !matches(own))
        .map(|own| own.object.clone())
        .collect();
    write_own_objects(&session.store, keys, &rest, Some(&file.version)).await?;
    let changes = vec![change(key, Action::Delete)];
    spec_log::log_spec_changes("delete object", keys, changes, session).await;
    session
        .shell
        .print_done(&format!("took {key} out of the objects of {name}"));
    session.shell.hint(&format!(
        "kctl update {name} --yes    removes it from the cluster"
    ));
    Ok(Outcome::Fine)
}
