//! `kctl create|promote|trust|distrust keypair`: the steps of a rotation. Each changes keysets in the state store; `update` and `rolling-update`
//! bring the change to instances. A step that would cut instances off is refused.

mod holders;
mod published;
mod signatures;
mod steps;

use super::apply_plan::with_lock;
use super::existing_cluster::ExistingCluster;
use super::session::Session;
use super::spec_log::log_spec_changes;
use super::spec_objects::read_text;
use crate::args::{CreateKeypair, DistrustKeypair, PromoteKeypair, TrustKeypair};
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::state::{
    ClusterState, PublicKeys, SpecChange, load_versioned, store_error, store_keyset,
};
use aws_client::store::Version;
use engine::Action;
use fleet::KeyHolder;
pub use holders::read_key_holders;
use node::pki::{
    KUBERNETES_CA, Keyset, SERVICE_ACCOUNT, STATE_SIGNER, count_certificates, is_rotatable,
    is_self_issued, keyset_names, private_key_block,
};
use node::secret::Secret;
use spec::read::nearest;
use steps::{Brought, add_key, distrust_keys, find_hindrances_between, promote_key, trust_keys};
use time::OffsetDateTime;

/// The word for every keyset.
const ALL: &str = "all";

/// etcd clusters of every cluster.
const ETCD: [&str; 2] = ["main", "events"];

/// What the user asks of keysets.
enum Step<'a> {
    Create(&'a CreateKeypair, Brought),
    Promote(&'a PromoteKeypair),
    Trust(&'a TrustKeypair),
    Distrust(&'a DistrustKeypair),
}

/// A keyset that is to be stored.
struct Changed {
    keyset: Keyset,
    /// `None`: it is new.
    version: Option<Version>,
    /// What was done.
    done: Vec<String>,
    /// Why it should not be.
    hindrances: Vec<String>,
}

/// Adds a key to a keyset, or to each.
pub async fn create(args: &CreateKeypair, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if args.keyset == ALL && (args.cert.is_some() || args.key.is_some()) {
        return Err(CommandError::usage_error(
            "one certificate or key cannot be that of all keysets",
            "name one keyset, or leave out --cert and --key",
        ));
    }
    let certificate = args.cert.as_deref().map(read_text).transpose()?;
    if let (Some(text), Some(file)) = (&certificate, &args.cert)
        && count_certificates(text) > 1
    {
        session.shell.warning(&format!(
            "{} has several certificates: the first one is taken, as in kOps, and instances trust it alone",
            file.display()
        ));
    }
    if let (Some(text), Some(file)) = (&certificate, &args.cert)
        && args.keyset != SERVICE_ACCOUNT
        && is_self_issued(text) == Some(false)
    {
        session.shell.warning(&format!(
            "{} is an intermediate authority: Kubernetes accepts it as a root, but clients with OpenSSL that want its whole chain (Python before \
             3.13) do not",
            file.display()
        ));
    }
    if certificate.is_some() || args.key.is_some() {
        session.shell.warning(&format!(
            "{} lets in everybody for whom this key has ever signed: bring only one that was made for this keyset of this cluster, and signs for nothing else",
            args.keyset
        ));
    }
    let key = match &args.key {
        Some(file) => {
            let text = Secret::new(read_text(file)?);
            let block = private_key_block(&text).ok_or_else(|| {
                CommandError::usage_error(
                    format!("{} has no private key in PEM", file.display()),
                    "give the file with the block that ends in PRIVATE KEY",
                )
            })?;
            Some(block)
        }
        None => None,
    };
    let brought = Brought { certificate, key };
    change_keysets(&args.keyset, &Step::Create(args, brought), session).await
}

/// Lets a key sign.
pub async fn promote(
    args: &PromoteKeypair,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    check_no_id_of_all(&args.keyset, args.id.is_some())?;
    change_keysets(&args.keyset, &Step::Promote(args), session).await
}

/// Trusts keys again.
pub async fn trust(args: &TrustKeypair, session: &Session<'_>) -> Result<Outcome, CommandError> {
    check_no_id_of_all(&args.keyset, true)?;
    change_keysets(&args.keyset, &Step::Trust(args), session).await
}

/// Trusts keys no longer.
pub async fn distrust(
    args: &DistrustKeypair,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    check_no_id_of_all(&args.keyset, !args.ids.is_empty())?;
    change_keysets(&args.keyset, &Step::Distrust(args), session).await
}

fn check_no_id_of_all(keyset: &str, has_id: bool) -> Result<(), CommandError> {
    if keyset == ALL && has_id {
        return Err(CommandError::usage_error(
            "an id belongs to one keyset",
            "name the keyset instead of `all`: `kctl get keypairs` lists them",
        ));
    }
    Ok(())
}

impl Step<'_> {
    fn command(&self) -> &'static str {
        match self {
            Self::Create(..) => "create keypair",
            Self::Promote(_) => "promote keypair",
            Self::Trust(_) => "trust keypair",
            Self::Distrust(_) => "distrust keypair",
        }
    }

    fn is_forced(&self) -> bool {
        match self {
            Self::Create(args, _) => args.force,
            Self::Promote(args) => args.force,
            Self::Trust(_) => false,
            Self::Distrust(args) => args.force,
        }
    }

    /// True if the instances have to be ready for it.
    fn needs_instances(&self) -> bool {
        match self {
            Self::Create(args, _) => args.primary,
            Self::Promote(_) | Self::Distrust(_) => true,
            Self::Trust(_) => false,
        }
    }
}

/// Makes the step in all keysets or in none, under the lock.
async fn change_keysets(
    word: &str,
    step: &Step<'_>,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let cluster = ExistingCluster::read(&name, session).await?;
    let keys = cluster.state.keys.clone();
    let body = async |_: &_, _: &_| {
        // Again: somebody may have changed it before the lock was taken.
        let cluster = ExistingCluster::read(&name, session).await?;
        let (store, state) = (&session.store, &cluster.state);
        let public = PublicKeys::read(store, &state.keys, &state.entries).await?;
        let keysets = choose_keysets(word, &public, state, step, session).await?;
        let holders = match step.needs_instances() && keysets.iter().any(has_instances) {
            true => Box::pin(read_key_holders(&cluster, session)).await?,
            false => Vec::new(),
        };
        let mut changes = Vec::new();
        for (keyset, version) in keysets {
            let known = KnownKeys {
                holders: &holders,
                public: &public.keysets,
            };
            let changed = change_keyset(keyset, version, step, &known, &cluster, session).await?;
            changes.extend(changed);
        }
        check_hindrances(&changes, step, session)?;
        store_changes(&changes, step, &cluster, session).await?;
        if matches!(step, Step::Promote(_))
            && changes.iter().any(|one| one.keyset.name == KUBERNETES_CA)
        {
            session.shell.hint(
                "pods that are older than the youngest control plane may trust only the former authority: start them anew before the update, for example \
                 with `kubectl rollout restart`",
            );
        }
        Ok(!changes.is_empty())
    };
    let changed = with_lock(session, &keys, step.command(), None, body).await?;
    if changed {
        session.shell.hint(&format!(
            "kctl update {name} --yes    then kctl rolling-update {name} --yes: instances have it once they are replaced"
        ));
    }
    Ok(Outcome::Fine)
}

/// What the keys of a step are compared with.
struct KnownKeys<'a> {
    holders: &'a [KeyHolder],
    /// All keysets of the cluster, without private keys.
    public: &'a [Keyset],
}

/// Instances have keys of every keyset that exists, but the one that signs objects of the state store.
fn has_instances((keyset, version): &(Keyset, Option<Version>)) -> bool {
    keyset.name != STATE_SIGNER && version.is_some()
}

/// The keysets that the word names, with their versions. `all` are those that kOps rotates.
async fn choose_keysets(
    word: &str,
    public: &PublicKeys,
    state: &ClusterState,
    step: &Step<'_>,
    session: &Session<'_>,
) -> Result<Vec<(Keyset, Option<Version>)>, CommandError> {
    let (store, keys) = (&session.store, &state.keys);
    let there: Vec<&str> = public.keysets.iter().map(|set| set.name.as_str()).collect();
    let rotatable = |name: &&str| is_rotatable(name);
    if word == ALL {
        let names = there.iter().copied().filter(rotatable);
        let mut all = Vec::new();
        for name in names.filter(|name| *name != STATE_SIGNER) {
            let (keyset, version) = load_versioned(store, keys, name).await?;
            all.push((keyset, Some(version)));
        }
        if all.is_empty() {
            return Err(CommandError::usage_error(
                "the cluster has no keysets yet",
                "make the cluster first with `kctl update --yes`",
            ));
        }
        return Ok(all);
    }
    if there.contains(&word) && is_rotatable(word) {
        let (keyset, version) = load_versioned(store, keys, word).await?;
        return Ok(vec![(keyset, Some(version))]);
    }
    let mut known: Vec<String> = keyset_names(ETCD);
    known.push(STATE_SIGNER.to_owned());
    // As in kOps, the first key of a keyset may be brought before the first update makes one.
    if let (Step::Create(args, _), true) = (step, known.iter().any(|name| name == word)) {
        if !args.primary {
            return Err(CommandError::usage_error(
                format!("the keyset {word} does not exist yet: its first key signs"),
                format!(
                    "kctl create keypair {word} --primary, or let `kctl update --yes` make one"
                ),
            ));
        }
        public.check_none_lost(&[word.to_owned()], keys)?;
        let keyset = Keyset {
            name: word.to_owned(),
            primary: String::new(),
            items: Vec::new(),
        };
        return Ok(vec![(keyset, None)]);
    }
    let near: Vec<&str> = there.iter().copied().filter(rotatable).collect();
    Err(CommandError::usage_error(
        format!("there is no keyset {word} whose keys can be rotated"),
        nearest::hint(word, &near),
    ))
}

/// The keyset after the step; `None`: the step changes nothing in it.
async fn change_keyset(
    before: Keyset,
    version: Option<Version>,
    step: &Step<'_>,
    known: &KnownKeys<'_>,
    cluster: &ExistingCluster,
    session: &Session<'_>,
) -> Result<Option<Changed>, CommandError> {
    let now = OffsetDateTime::now_utc();
    let mut keyset = before.clone();
    let done = match step {
        Step::Create(args, brought) => {
            vec![add_key(&mut keyset, args, brought, known.public, now)?]
        }
        Step::Promote(args) => promote_key(&mut keyset, args)?,
        Step::Trust(args) => trust_keys(&mut keyset, args)?,
        Step::Distrust(args) => distrust_keys(&mut keyset, args, now)?,
    };
    if keyset == before {
        let what = match step {
            Step::Promote(_) => "no key that is newer than the one that signs",
            Step::Distrust(_) => "no trusted key that is older than the one that signs",
            _ => "nothing to change",
        };
        let name = &before.name;
        session.shell.note(&format!("{name}: {what}"));
        return Ok(None);
    }
    let mut hindrances = match keyset.name == STATE_SIGNER {
        true if matches!(step, Step::Distrust(_)) => {
            signatures::find_unsigned(&keyset, &cluster.state.keys, session).await?
        }
        true => Vec::new(),
        false => find_hindrances_between(&before, &keyset, known.holders, now),
    };
    // Before the first update nobody has a token yet.
    let signs_anew = keyset.primary != before.primary && !before.items.is_empty();
    if keyset.name == SERVICE_ACCOUNT && signs_anew {
        hindrances.extend(published::find_unpublished(&keyset, cluster).await?);
    }
    Ok(Some(Changed {
        keyset,
        version,
        done,
        hindrances,
    }))
}

/// Fails if a step would cut something off, unless it is forced.
fn check_hindrances(
    changes: &[Changed],
    step: &Step<'_>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let lines = changes.iter().flat_map(|changed| {
        let lines = changed.hindrances.iter();
        lines.map(|line| format!("{}: {line}", changed.keyset.name))
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return Ok(());
    }
    if step.is_forced() {
        for line in &lines {
            session.shell.warning(line);
        }
        return Ok(());
    }
    let what = match step {
        Step::Distrust(_) => "the key is not distrusted, because it is in use",
        _ => "the key is not promoted, because others would not accept what it signs",
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        format!("{what}: {}", lines.join("; ")),
        "bring the former step to every instance first: `kctl update --yes`, then `kctl rolling-update --yes`; or wait for as long as it says",
    )
    .with_hint("--force does it nevertheless; what is cut off comes back when it is replaced"))
}

/// Stores the keysets, each only if it is still what was read, and what follows from them.
async fn store_changes(
    changes: &[Changed],
    step: &Step<'_>,
    cluster: &ExistingCluster,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let (store, keys) = (&session.store, &cluster.state.keys);
    let mut logged = Vec::new();
    let mut stored = Ok(());
    for changed in changes {
        stored = store_keyset(store, keys, &changed.keyset, changed.version.clone()).await;
        if stored.is_err() {
            break;
        }
        logged.push(SpecChange {
            object: format!("Keyset {}", changed.keyset.name),
            action: match changed.version {
                Some(_) => Action::Update,
                None => Action::Create,
            },
            fields: Some(changed.done.len()),
            before: None,
            after: None,
        });
        for line in &changed.done {
            session.shell.print_done(line);
        }
    }
    log_spec_changes(step.command(), keys, logged, session).await;
    stored?;
    if changes.is_empty() {
        return Ok(());
    }
    // A kill before this leaves a file that is known to be old by the versions in it.
    let (all, after) = (keys.prefix(), keys.before_listed());
    let entries = store.list(&all, Some(&after)).await.map_err(store_error)?;
    let mut public = PublicKeys::read(store, keys, &entries).await?;
    public.write(store, keys).await
}
