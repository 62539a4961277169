//! `kctl create|promote|trust|distrust keypair`: the steps of a rotation. Each changes keysets in the state store; `update` and `rolling-update`
//! bring the change to instances. A step that would cut instances off is refused.

mod holders;
mod signatures;

use super::apply_plan::with_lock;
use super::existing_cluster::ExistingCluster;
use super::session::Session;
use super::spec_log::log_spec_changes;
use super::spec_objects::read_text;
use crate::args::{CreateKeypair, DistrustKeypair, PromoteKeypair, TrustKeypair};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::{
    ClusterState, PublicKeys, SpecChange, load_versioned, store_error, store_keyset,
};
use aws_client::store::Version;
use engine::Action;
use fleet::{KeyHolder, KeyStep, find_hindrances};
pub use holders::read_key_holders;
use node::pki::{
    KUBERNETES_CA, Keyset, KeysetItem, Refused, SERVICE_ACCOUNT, STATE_SIGNER, SystemKeys,
    check_brought, check_own_key, count_certificates, is_rotatable, is_self_issued, keyset_names,
    mint_further, private_key_block,
};
use node::secret::Secret;
use spec::read::nearest;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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

/// What the user brings.
#[derive(Default)]
struct Brought {
    certificate: Option<String>,
    key: Option<Secret>,
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
    let hindrances = match keyset.name == STATE_SIGNER {
        true if matches!(step, Step::Distrust(_)) => {
            signatures::find_unsigned(&keyset, &cluster.state.keys, session).await?
        }
        true => Vec::new(),
        false => find_hindrances_between(&before, &keyset, known.holders, now),
    };
    Ok(Some(Changed {
        keyset,
        version,
        done,
        hindrances,
    }))
}

/// What keeps the instances of a keyset from the change.
fn find_hindrances_between(
    before: &Keyset,
    after: &Keyset,
    holders: &[KeyHolder],
    now: OffsetDateTime,
) -> Vec<String> {
    let mut lines = Vec::new();
    // The first key of a keyset is nobody's before.
    if before.primary != after.primary && !before.items.is_empty() {
        let step = KeyStep::Promote(&after.primary);
        lines.extend(find_hindrances(after, step, holders, now));
    }
    let trusted = after.ids().trusted;
    let mut lost = before.ids().trusted;
    lost.retain(|id| !trusted.contains(id));
    if !lost.is_empty() {
        let step = KeyStep::Distrust(&lost);
        lines.extend(find_hindrances(after, step, holders, now));
    }
    lines
}

fn add_key(
    keyset: &mut Keyset,
    args: &CreateKeypair,
    brought: &Brought,
    all: &[Keyset],
    now: OffsetDateTime,
) -> Result<String, CommandError> {
    let name = keyset.name.clone();
    let item = new_item(keyset, brought, now)?;
    check_own_key(keyset, &item, all).map_err(refused)?;
    let can_sign = item.key.is_some();
    let id = keyset.add(item, now).or_failed(
        format!("the key cannot be added to {name}"),
        "check the clock, and try again",
    )?;
    if args.primary {
        keyset.promote(&id).map_err(refused)?;
    }
    let state = match (args.primary, can_sign) {
        (true, _) => "it signs now",
        (false, true) => "it is trusted, and signs once it is promoted",
        (false, false) => "it is trusted, and cannot sign",
    };
    Ok(format!("{name} has the new key {id}: {state}"))
}

fn promote_key(keyset: &mut Keyset, args: &PromoteKeypair) -> Result<Vec<String>, CommandError> {
    let newest = || keyset.successor().map(|item| item.id.clone());
    let Some(id) = args.id.clone().or_else(newest) else {
        return Ok(Vec::new());
    };
    keyset.promote(&id).map_err(refused)?;
    Ok(vec![format!("{} signs with {id} now", keyset.name)])
}

fn trust_keys(keyset: &mut Keyset, args: &TrustKeypair) -> Result<Vec<String>, CommandError> {
    let mut done = Vec::new();
    for id in &args.ids {
        keyset.trust(id).map_err(refused)?;
        done.push(format!("{} trusts {id}", keyset.name));
    }
    Ok(done)
}

fn distrust_keys(
    keyset: &mut Keyset,
    args: &DistrustKeypair,
    now: OffsetDateTime,
) -> Result<Vec<String>, CommandError> {
    let ids = match args.ids.is_empty() {
        true => keyset.predecessors(),
        false => args.ids.clone(),
    };
    let time = now.replace_nanosecond(0).unwrap_or(now);
    let time = time.format(&Rfc3339).or_failed(
        "the clock shows no time that can be written",
        "set the clock",
    )?;
    let mut done = Vec::new();
    for id in &ids {
        keyset.distrust(id, &time).map_err(refused)?;
        done.push(format!("{} does not trust {id} any more", keyset.name));
    }
    Ok(done)
}

/// The key that is brought, or a new one.
fn new_item(
    keyset: &Keyset,
    brought: &Brought,
    now: OffsetDateTime,
) -> Result<KeysetItem, CommandError> {
    let name = &keyset.name;
    let key = brought.key.as_ref();
    if name == STATE_SIGNER && (key.is_some() || brought.certificate.is_some()) {
        return Err(CommandError::usage_error(
            format!("the keys of {name} are kctl's own"),
            format!("kctl create keypair {name}    makes one"),
        ));
    }
    match &brought.certificate {
        Some(certificate) => check_brought(keyset, certificate, key, now).map_err(refused),
        None => {
            let made = mint_further(keyset, key, &mut SystemKeys::issuing_at(now));
            let made = made.or_usage_error(
                format!("no certificate for {name} could be made"),
                "give an RSA or ECDSA key in PEM, without a passphrase",
            )?;
            // The same rules as for a certificate that is brought.
            check_brought(keyset, &made.certificate, made.key.as_ref(), now).map_err(refused)
        }
    }
}

/// The command error of a step that a keyset does not allow.
fn refused(error: Refused) -> CommandError {
    let hint = match &error {
        Refused::NoKey { keyset, .. } => {
            format!("kctl get keypairs {keyset} --distrusted    lists its keys")
        }
        Refused::Distrusted { keyset, id } => {
            format!("kctl trust keypair {keyset} {id}    trusts it again")
        }
        Refused::NoPrivateKey { keyset, .. } => {
            format!("kctl create keypair {keyset} --cert FILE --key FILE    adds one that can sign")
        }
        Refused::Primary { keyset, .. } => {
            format!("kctl promote keypair {keyset} ID    lets another one sign first")
        }
        Refused::OtherKeyset { keyset, .. } => {
            format!("kctl create keypair {keyset}    makes one, or bring another one")
        }
        Refused::Certificate { .. } | Refused::Key { .. } | Refused::Unusable { .. } => {
            "give the certificate of an authority (--cert) and its private key (--key), both PEM"
                .to_owned()
        }
    };
    CommandError::new(ErrorKind::Usage, error, hint)
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
