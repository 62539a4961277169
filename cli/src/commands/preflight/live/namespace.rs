//! The namespace in which pods try connections. It is deleted in every end but that of kctl itself; then a later run deletes it.

use super::pods::LIFE;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::interrupt::Interrupts;
use crate::ui::Shell;
use engine::error_chain;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Error};
use node::digest::to_hex;
use node::names::PREFLIGHT_LABEL;
use serde_json::json;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Time for the namespace to go, with its pods.
const GONE: Duration = Duration::from_mins(1);

/// Time for the namespace to get its service account, without which it takes no pod.
const ACCOUNT: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_secs(1);

/// The account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

/// How names of these namespaces begin. Random bytes follow, as hexadecimal digits.
const NAME: &str = "kctl-preflight-";
const RANDOM_BYTES: usize = 4;

/// The value of the label of these namespaces.
const LABELLED: &str = "true";

/// The label that says what pods of a namespace may be.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

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
        // Not given up half-way: what is being made could appear after it was deleted.
        let worked = match create(client, &name).await {
            Ok(own) => {
                delete_expired(client, shell, &own).await;
                tokio::select! {
                    biased;
                    () = stopped.notified() => None,
                    worked = work(name.as_str()) => Some(worked),
                }
            }
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
        shell.warning(&format!("{}: {why}", left_words(&name)));
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
        "delete it with `kubectl delete namespace {name}`, or leave it to a later run: its pods end by themselves within {} minutes",
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
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).or_failed(
        "could not get random numbers from the system",
        "report this: it is a defect of kctl",
    )?;
    Ok(format!("{NAME}{}", to_hex(&random)))
}

fn is_random_name(name: &str) -> bool {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.strip_prefix(NAME)
        .is_some_and(|digits| digits.len() == 2 * RANDOM_BYTES && digits.bytes().all(is_digit))
}

/// What the API says of an error.
pub(super) fn api_message(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => error_chain(other),
    }
}

/// Makes the namespace. Its pods have the network of their node and a file of it, which only the profile `privileged` allows.
async fn create(client: &Client, name: &str) -> Result<Namespace, String> {
    let object = json!({
        "metadata": {
            "name": name,
            "labels": {PREFLIGHT_LABEL: LABELLED, ENFORCE: "privileged"},
        },
    });
    let object: Namespace = serde_json::from_value(object).map_err(|error| error.to_string())?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = namespaces.create(&PostParams::default(), &object).await;
    let made = made
        .map_err(|error| format!("the namespace {name} was not made: {}", api_message(&error)))?;
    allow_all(client, name).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    let ends = Instant::now() + ACCOUNT;
    loop {
        let why = match accounts.get_opt(DEFAULT_ACCOUNT).await {
            Ok(Some(_)) => return Ok(made),
            Ok(None) => "kube-controller-manager has not made it".to_owned(),
            Err(error) => api_message(&error),
        };
        if Instant::now() >= ends {
            return Err(format!(
                "the namespace {name} has no service account: {why}"
            ));
        }
        sleep(PAUSE).await;
    }
}

/// Lets pods of the namespace connect with everybody, as far as it is theirs to say: some clusters give each new namespace a policy that denies
/// all, and with some network plugins no policy at all does. Policies of the whole cluster stay.
async fn allow_all(client: &Client, name: &str) -> Result<(), String> {
    let policy = json!({
        "metadata": {"name": "all"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{}], "egress": [{}]},
    });
    let policy: NetworkPolicy =
        serde_json::from_value(policy).map_err(|error| error.to_string())?;
    let policies: Api<NetworkPolicy> = Api::namespaced(client.clone(), name);
    let made = policies.create(&PostParams::default(), &policy).await;
    made.map(drop).map_err(|error| {
        format!(
            "the namespace {name} got no network policy: {}",
            api_message(&error)
        )
    })
}

/// Lets the namespace take no more pods like those that it has: if kctl is killed, nobody else can use what it leaves. Kubernetes warns of
/// pods that run, and leaves them.
pub(super) async fn forbid_more_pods(client: &Client, name: &str) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": {ENFORCE: "restricted"}}}));
    let restricted = namespaces
        .patch(name, &PatchParams::default(), &patch)
        .await;
    restricted.map(drop).map_err(|error| {
        let why = api_message(&error);
        format!("the namespace {name} was not restricted after its pods were made: {why}")
    })
}

/// Deletes the namespace, and waits until it is gone. An error says what is in the way.
async fn delete(client: &Client, name: &str) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let ends = Instant::now() + GONE;
    loop {
        // Again and again: a call may get lost, and a deletion that is under way goes on.
        let why = match namespaces.delete(name, &DeleteParams::default()).await {
            Err(Error::Api(status)) if status.code == 404 => return Ok(()),
            Ok(deleted) => {
                let in_the_way = deleted.left().as_ref().and_then(obstacle_words);
                in_the_way.unwrap_or_else(|| format!("it is not gone after {} s", GONE.as_secs()))
            }
            Err(error) => format!("{}; {}", api_message(&error), next_words(name)),
        };
        if Instant::now() >= ends {
            return Err(why);
        }
        sleep(PAUSE).await;
    }
}

/// What Kubernetes says is in the way of a deletion that is under way: another API that does not answer, such as that of metrics-server, keeps
/// every namespace.
fn obstacle_words(namespace: &Namespace) -> Option<String> {
    const OBSTACLES: [&str; 4] = [
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "NamespaceDeletionContentFailure",
        "NamespaceContentRemaining",
    ];
    let conditions = namespace.status.as_ref()?.conditions.as_ref()?.iter();
    let true_ones = conditions.filter(|one| one.status == "True");
    let obstacles = true_ones.filter(|one| OBSTACLES.contains(&one.type_.as_str()));
    let messages: Vec<&str> = obstacles.filter_map(|one| one.message.as_deref()).collect();
    (!messages.is_empty()).then(|| {
        format!(
            "it is being deleted, and goes by itself once this is mended: {}",
            messages.join("; ")
        )
    })
}

/// Deletes what earlier runs left that were killed: namespaces whose pods have ended. `own` is that of this run.
async fn delete_expired(client: &Client, shell: &Shell, own: &Namespace) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let of_preflight = ListParams::default().labels(&format!("{PREFLIGHT_LABEL}={LABELLED}"));
    let Ok(list) = namespaces.list(&of_preflight).await else {
        // A later run does it.
        return;
    };
    let expired = list.items.into_iter().filter(|one| is_expired(one, own));
    for metadata in expired.map(|namespace| namespace.metadata) {
        let Some(name) = metadata.name else {
            continue;
        };
        // What was listed: not one of that name that is newer, and not one that somebody has taken over since.
        let listed = Preconditions {
            resource_version: metadata.resource_version,
            uid: metadata.uid,
        };
        let parameters = DeleteParams::default().preconditions(listed);
        match namespaces.delete(&name, &parameters).await {
            Ok(_) => shell.note(&format!("namespace {name} of an earlier run is deleted")),
            Err(error) => shell.warning(&format!("{}: {}", left_words(&name), api_message(&error))),
        }
    }
}

/// True if a run made it whose pods have ended. The label alone does not say so: whoever may label a namespace could have it deleted. Both
/// times are of the API's clock, because that of this machine may be wrong.
fn is_expired(namespace: &Namespace, own: &Namespace) -> bool {
    let made = |one: &Namespace| {
        let time = one.metadata.creation_timestamp.as_ref()?;
        Some(time.0.as_second())
    };
    let times = made(own).zip(made(namespace));
    let age = times.map(|(now, then)| now.saturating_sub(then));
    let life = i64::try_from(LIFE.as_secs()).unwrap_or(i64::MAX);
    let name = namespace.metadata.name.as_deref();
    let is_going = namespace.metadata.deletion_timestamp.is_some();
    name.is_some_and(is_random_name) && !is_going && age > Some(2 * life)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacles_of(conditions: &serde_json::Value) -> Option<String> {
        let namespace = json!({"metadata": {}, "status": {"conditions": conditions}});
        obstacle_words(&serde_json::from_value(namespace).unwrap())
    }

    #[test]
    fn a_namespace_that_stays_says_what_keeps_it() {
        let condition = |name: &str, status: &str, message: &str| json!({"type": name, "status": status, "message": message});
        let found = "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1";
        let failure = condition("NamespaceDeletionDiscoveryFailure", "True", found);
        let parsed = condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "fine",
        );
        let words = obstacles_of(&json!([parsed, failure])).unwrap();
        assert!(words.ends_with(found), "{words}");
        assert_eq!(obstacles_of(&json!([parsed])), None);
        assert_eq!(obstacles_of(&json!([])), None);
    }
}
