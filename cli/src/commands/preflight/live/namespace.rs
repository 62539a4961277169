//! The namespace in which pods try connections. It is deleted in every end but that of kctl itself; then the next run deletes it.

use super::pods::LIFE;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::interrupt::Interrupts;
use crate::ui::Shell;
use engine::error_chain;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, Error};
use node::digest::to_hex;
use node::names::PREFLIGHT_LABEL;
use serde_json::json;
use std::pin::pin;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Time for the namespace to go, with its pods.
const GONE: Duration = Duration::from_mins(1);

/// Time for the namespace to get its service account, without which it takes no pod.
const ACCOUNT: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_secs(1);

/// The account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

/// Does some work in a new namespace, and deletes that afterwards. Whatever the work was, the namespace is gone, or a warning says that it
/// is not. The error is that of an interrupt.
pub(super) async fn in_own_namespace<T>(
    client: &Client,
    shell: &Shell,
    work: impl AsyncFnOnce(&str) -> Result<T, String>,
) -> Result<Result<T, String>, CommandError> {
    let name = random_name()?;
    let (interrupts, stopped) = (Interrupts::default(), Notify::new());
    interrupts.start_applying();
    let on_first = || {
        shell.note(&format!(
            "stopping: namespace {name} is deleted first (Ctrl-C again leaves at once)"
        ));
        stopped.notify_one();
    };
    let mut leave = pin!(interrupts.wait_to_leave(on_first));
    let whole = async {
        delete_expired(client, shell).await;
        if interrupts.is_stopping() {
            return (None, Ok(()));
        }
        // Not given up half-way: what is being made could appear after it was deleted.
        let worked = match create(client, &name).await {
            Ok(()) => tokio::select! {
                biased;
                () = stopped.notified() => None,
                worked = work(name.as_str()) => Some(worked),
            },
            Err(why) => Some(Err(why)),
        };
        (worked, delete(client, &name).await)
    };
    let (worked, deleted) = tokio::select! {
        biased;
        () = &mut leave => return Err(left_behind(&name)),
        ended = whole => ended,
    };
    if let Err(why) = deleted {
        shell.warning(&format!(
            "{}: {why}; {}",
            left_words(&name),
            next_words(&name)
        ));
    }
    worked.ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Interrupted,
            "interrupted",
            "repeat the command: nothing in AWS was changed",
        )
    })
}

fn left_words(name: &str) -> String {
    format!("namespace {name} is left behind")
}

fn next_words(name: &str) -> String {
    format!(
        "delete it with `kubectl delete namespace {name}`, or leave it to the next run: its pods end by themselves within {} minutes",
        LIFE.as_secs() / 60
    )
}

fn left_behind(name: &str) -> CommandError {
    CommandError::from_message(
        ErrorKind::Interrupted,
        format!("interrupted: {}", left_words(name)),
        next_words(name),
    )
}

fn random_name() -> Result<String, CommandError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).or_failed(
        "could not get random numbers from the system",
        "report this: it is a defect of kctl",
    )?;
    Ok(format!("kctl-preflight-{}", to_hex(&random)))
}

/// What the API says of an error.
pub(super) fn words_of(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => error_chain(other),
    }
}

/// Makes the namespace. Its pods have the network of their node and a file of it, which only the profile `privileged` allows.
async fn create(client: &Client, name: &str) -> Result<(), String> {
    let object = json!({
        "metadata": {
            "name": name,
            "labels": {PREFLIGHT_LABEL: "true", "pod-security.kubernetes.io/enforce": "privileged"},
        },
    });
    let object: Namespace = serde_json::from_value(object).map_err(|error| error.to_string())?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = namespaces.create(&PostParams::default(), &object).await;
    made.map_err(|error| format!("the namespace {name} was not made: {}", words_of(&error)))?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    let ends = Instant::now() + ACCOUNT;
    loop {
        let why = match accounts.get_opt(DEFAULT_ACCOUNT).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => "kube-controller-manager has not made it".to_owned(),
            Err(error) => words_of(&error),
        };
        if Instant::now() >= ends {
            return Err(format!(
                "the namespace {name} has no service account: {why}"
            ));
        }
        sleep(PAUSE).await;
    }
}

/// Deletes the namespace, and waits until it is gone. An error says what is in the way.
async fn delete(client: &Client, name: &str) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let ends = Instant::now() + GONE;
    loop {
        // Again and again: a call may get lost, and a deletion that is under way goes on.
        let why = match namespaces.delete(name, &DeleteParams::default()).await {
            Err(Error::Api(status)) if status.code == 404 => return Ok(()),
            Ok(_) => format!("it is not gone after {} s", GONE.as_secs()),
            Err(error) => words_of(&error),
        };
        if Instant::now() >= ends {
            return Err(why);
        }
        sleep(PAUSE).await;
    }
}

/// Deletes what earlier runs left that were killed: namespaces whose pods have ended.
async fn delete_expired(client: &Client, shell: &Shell) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let of_preflight = ListParams::default().labels(PREFLIGHT_LABEL);
    let Ok(list) = namespaces.list(&of_preflight).await else {
        // The API says what is wrong when the next one is made.
        return;
    };
    let now = OffsetDateTime::now_utc().unix_timestamp();
    let life = i64::try_from(LIFE.as_secs()).unwrap_or(i64::MAX);
    for namespace in list.items {
        let created = namespace.metadata.creation_timestamp.as_ref();
        let age = created.map(|time| now.saturating_sub(time.0.as_second()));
        let Some(name) = namespace.metadata.name.filter(|_| age > Some(2 * life)) else {
            continue;
        };
        let deleted = namespaces.delete(&name, &DeleteParams::default()).await;
        match deleted {
            Ok(_) => shell.note(&format!("namespace {name} of an earlier run is deleted")),
            Err(error) => shell.warning(&format!("{}: {}", left_words(&name), words_of(&error))),
        }
    }
}
