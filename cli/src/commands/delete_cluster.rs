//! `kctl delete cluster`: deletes all AWS resources of a cluster, then its objects in the state store.

use super::apply_plan::{PlanContext, with_lock};
use super::backups::{self, is_backup, is_encryption_key};
use super::cluster_scope::{ScopeTarget, cluster_scope};
use super::existing_cluster::ExistingCluster;
use super::session::Session;
use super::store_place::find_names_of_others;
use super::update::read_stored_own_tags;
use super::{observe, ownership};
use crate::agents::AgentBinaries;
use crate::args::{DeleteCluster, PlanFormat};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::interrupt::Interrupts;
use crate::kubeconfig;
use crate::plan_target::ClusterTarget;
use crate::state::{
    ClusterLock, ClusterState, LastOperation, LockKind, LockState, ObservedLock, StoreJournal,
    StoreKeys, load_keyset, locked_error, store_error,
};
use crate::ui::events::Events;
use crate::ui::plan::{self, PlanView};
use crate::ui::plan_json::PlanDocument;
use aws_client::store::{Entry, StoreError};
use aws_cloud::fleet::{detached_instances, terminate_instance};
use aws_cloud::{
    AwsWorld, CloudClients, classic_load_balancers, delete_classic_load_balancer, delete_interface,
    delete_object_records, foreign_interfaces, left_interfaces, object_record_names,
};
use cloud::Cloud;
use cloud::facts::{Facts, FactsWanted};
use cloud::ownership::OwnershipClaim;
use engine::{Class, Failure, Plan, Report, Snapshot};
use full::DnsKind;
use node::backup::BACKUP_SETTINGS_KEY;
use node::pki::{JsonWebKeySet, KUBERNETES_CA, SERVICE_ACCOUNT};
use node::secret::ENCRYPTION_CONFIG;
use spec::completed::CompletedCluster;
use std::collections::{BTreeMap, BTreeSet};

/// The cluster to delete.
struct Deletion {
    state: ClusterState,
    /// The completed spec of the last update; before the first update, the spec as written.
    completed: CompletedCluster,
    /// Issuers of service accounts' tokens that it has had, with their discovery store.
    issuers: BTreeMap<String, String>,
    /// The keys that verify those tokens.
    token_keys: Option<JsonWebKeySet>,
    clients: CloudClients,
    facts: Facts,
    target: ClusterTarget,
    /// Instances that a rolling update has detached from their groups.
    detached: Vec<String>,
    /// Classic load balancers of Services.
    classic_load_balancers: Vec<String>,
    /// Network interfaces with the cluster's tag that are attached to nothing.
    left_interfaces: Vec<String>,
    /// Id of the hosted zone.
    zone: Option<String>,
    /// Names that protokube has published there for Services, Ingresses and pods.
    object_names: Vec<String>,
    /// Evidence that resources belong to the cluster in this store.
    claim: OwnershipClaim,
}

/// Deletes a cluster, or shows what that would delete.
pub async fn run(args: &DeleteCluster, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session
        .explicit_cluster_name(args.cluster.as_deref())
        .await?;
    let keys = StoreKeys::new(&name);
    let listened = args.output == PlanFormat::Events;
    let events = listened.then(|| Events::begin(session.shell, "delete cluster", &name));
    let ended = if args.unregister {
        unregister_cluster(&name, &keys, args, session).await
    } else {
        plan_and_delete(&name, &keys, args, events, session).await
    };
    if let Some(events) = events {
        events.emit_end(&ended);
    }
    ended
}

async fn plan_and_delete(
    name: &str,
    keys: &StoreKeys,
    args: &DeleteCluster,
    events: Option<Events<'_>>,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let deletion = read_cluster(name, session).await?;
    if let Some(events) = events {
        events.emit_target(&deletion.target);
    }
    let ClusterTarget {
        cluster,
        account,
        region,
    } = &deletion.target;
    let line = format!("Cluster {cluster}  account {account}  {region}");
    let programs = args.output.is_for_programs();
    if programs {
        session.shell.note(&line);
    } else {
        session.shell.print_result(&format!("{line}\n\n"))?;
    }
    if args.yes || (session.shell.can_ask() && !programs) {
        return with_lock(
            session,
            keys,
            "delete cluster",
            args.lock_wait,
            async |lock, interrupts| {
                check_no_rolling_update(keys, session).await?;
                let deletion = match deletion.state.is_current(&session.store).await? {
                    true => deletion,
                    false => self::read_cluster(name, session).await?,
                };
                delete_under_lock(&deletion, args, events, session, lock, interrupts).await
            },
        )
        .await;
    }
    let journal = StoreJournal::read(&session.store, keys, &deletion.state.entries).await?;
    let aws_world = aws_world(&deletion, &journal, session);
    let interrupts = Interrupts::default();
    let context = plan_context(
        &deletion,
        session,
        &aws_world,
        &journal,
        &interrupts,
        events,
        programs,
    );
    let snapshot = context.observe_cloud().await?;
    check_owner(&deletion, &snapshot, session).await?;
    let plan = super::update::explain_plan_error(engine::plan(&[], &snapshot))?;
    show_besides(&plan, &deletion, session).await?;
    show_plan(&plan, &deletion, args, None, events, session).await?;
    session.shell.hint(&format!(
        "kctl delete cluster {name} --yes    deletes all of it"
    ));
    Ok(Outcome::Fine)
}

/// The cluster's resources in AWS, as a deletion would find them. Changes nothing.
pub async fn observe_resources(
    name: &str,
    session: &Session<'_>,
) -> Result<Snapshot<Cloud>, CommandError> {
    let deletion = read_cluster(name, session).await?;
    let keys = &deletion.state.keys;
    let journal = StoreJournal::read(&session.store, keys, &deletion.state.entries).await?;
    let world = aws_world(&deletion, &journal, session);
    let interrupts = Interrupts::default();
    let context = plan_context(
        &deletion,
        session,
        &world,
        &journal,
        &interrupts,
        None,
        true,
    );
    context.observe_cloud().await
}

/// The cluster, without names that it shares with another one, whose records stay: a copied spec that was never made has names of a cluster
/// that runs.
async fn read_without_names_of_others(
    name: &str,
    session: &Session<'_>,
) -> Result<ExistingCluster, CommandError> {
    let mut cluster = ExistingCluster::read(name, session).await?;
    for (taken, other) in find_names_of_others(&cluster.completed, session).await? {
        session.shell.note(&format!(
            "the record {taken} stays: it is a name of the cluster {other}"
        ));
        cluster.completed.client_names.remove(&taken);
    }
    Ok(cluster)
}

/// The keys that have ever verified tokens of service accounts.
async fn read_token_keys(
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<Option<JsonWebKeySet>, CommandError> {
    if state
        .find_entry(&state.keys.keyset(SERVICE_ACCOUNT))
        .is_none()
    {
        return Ok(None);
    }
    let keyset = load_keyset(&session.store, &state.keys, SERVICE_ACCOUNT).await?;
    let keys = JsonWebKeySet::ever_trusted(&keyset).or_failed(
        "the keys that verify tokens of service accounts cannot be read",
        "restore pki/private/service-account from the versions of the bucket",
    )?;
    Ok(Some(keys))
}

/// The records that protokube has made for objects, in the cluster's zone.
async fn find_object_names(
    clients: &CloudClients,
    zone: Option<&str>,
    name: &str,
) -> Result<Vec<String>, CommandError> {
    let Some(zone) = zone else {
        return Ok(Vec::new());
    };
    let found = object_record_names(clients, zone, name).await;
    found.map_err(observe::aws_error)
}

async fn read_cluster(name: &str, session: &Session<'_>) -> Result<Deletion, CommandError> {
    let ExistingCluster {
        state,
        completed,
        clients,
        ..
    } = read_without_names_of_others(name, session).await?;
    let wanted = FactsWanted {
        hosted_zones: completed.dns != DnsKind::None,
        ..FactsWanted::default()
    };
    let detached = async {
        let detached = detached_instances(&clients, name).await;
        detached.map_err(observe::aws_error)
    };
    let balancers = async {
        let found = classic_load_balancers(&clients, name).await;
        found.map_err(observe::aws_error)
    };
    let interfaces = async {
        let found = left_interfaces(&clients, name).await;
        found.map_err(observe::aws_error)
    };
    let (facts, last_operation, detached, classic_load_balancers, left_interfaces) = tokio::try_join!(
        observe::account_facts(&clients, &wanted),
        LastOperation::read(&session.store, &state.keys, &state.entries),
        detached,
        balancers,
        interfaces,
    )?;
    ownership::check_same_account(name, &facts.account, last_operation.as_ref())?;
    let zone = completed.hosted_zone(&facts.hosted_zones);
    let own_tags = read_stored_own_tags(&state, session).await?;
    let issuers = own_tags
        .map(|own| own.issuers().clone())
        .unwrap_or_default();
    let token_keys = match issuers.is_empty() {
        true => None,
        false => read_token_keys(&state, session).await?,
    };
    let authority = match state.find_entry(&state.keys.keyset(KUBERNETES_CA)) {
        Some(_) => Some(load_keyset(&session.store, &state.keys, KUBERNETES_CA).await?),
        None => None,
    };
    let claim = ownership::ownership_claim(&state, authority.as_ref(), last_operation.as_ref());
    // What was never made has no records: they are those of a cluster of the same name in another store.
    let of_names = zone.as_deref().filter(|_| claim.has_acted);
    let object_names = find_object_names(&clients, of_names, name).await?;
    let target = ClusterTarget {
        cluster: name.to_owned(),
        account: facts.account.clone(),
        region: clients.region().to_owned(),
    };
    Ok(Deletion {
        state,
        completed,
        issuers,
        token_keys,
        clients,
        facts,
        target,
        detached,
        classic_load_balancers,
        left_interfaces,
        zone,
        object_names,
        claim,
    })
}

fn aws_world(deletion: &Deletion, journal: &StoreJournal<'_>, session: &Session<'_>) -> AwsWorld {
    let target = ScopeTarget {
        account: deletion.target.account.clone(),
        partition: deletion.facts.partition.clone(),
        region: deletion.target.region.clone(),
        hosted_zone: deletion.zone.clone(),
        generation: journal.generation(),
        own_tags: None,
        issuers: deletion.issuers.clone(),
        token_keys: deletion.token_keys.clone(),
        signer: None,
    };
    let scope = cluster_scope(
        &deletion.completed,
        target,
        Vec::new(),
        true,
        AgentBinaries::default().asset_source(),
    );
    AwsWorld::new(deletion.clients.clone(), session.store.clone(), scope)
}

fn plan_context<'a>(
    deletion: &'a Deletion,
    session: &'a Session<'a>,
    world: &'a AwsWorld,
    journal: &'a StoreJournal<'a>,
    interrupts: &'a Interrupts,
    events: Option<Events<'a>>,
    programs: bool,
) -> PlanContext<'a> {
    PlanContext {
        session,
        target: &deletion.target,
        keys: &deletion.state.keys,
        entries: &deletion.state.entries,
        world,
        journal,
        interrupts,
        events,
        for_programs: programs,
        write_first: None,
        members: Vec::new(),
    }
}

async fn delete_under_lock(
    deletion: &Deletion,
    args: &DeleteCluster,
    events: Option<Events<'_>>,
    session: &Session<'_>,
    lock: &ClusterLock,
    interrupts: &Interrupts,
) -> Result<Outcome, CommandError> {
    let name = deletion.state.name();
    let resumed = lock.times_resumed();
    let journal = StoreJournal::read(
        &session.store,
        &deletion.state.keys,
        &deletion.state.entries,
    )
    .await?;
    let world = aws_world(deletion, &journal, session);
    let programs = args.output.is_for_programs();
    let context = plan_context(
        deletion, session, &world, &journal, interrupts, events, programs,
    );
    let snapshot = context.observe_cloud().await?;
    check_owner(deletion, &snapshot, session).await?;
    let plan = super::update::explain_plan_error(engine::plan(&[], &snapshot))?;
    let json = args.output == PlanFormat::Json;
    show_besides(&plan, deletion, session).await?;
    if !json {
        show_plan(&plan, deletion, args, None, events, session).await?;
    }
    let question =
        format!("All of this is deleted, and nothing brings it back. Type {name} to go on:");
    if !args.yes && !session.shell.confirm(&question, name).await {
        return Err(CommandError::from_message(
            ErrorKind::Usage,
            format!("{name} was not deleted"),
            format!("type its name, or: kctl delete cluster {name} --yes"),
        ));
    }
    if !args.delete_backups && !args.no_last_backup {
        let volumes = backups::LastVolumes::find(&snapshot, &deletion.state);
        Box::pin(backups::take_last(name, volumes, session)).await?;
    }
    check_not_paused(lock, resumed, name)?;
    delete_besides(deletion).await.map_err(observe::aws_error)?;
    let mut report = Report::default();
    if !plan.is_empty() {
        report = context
            .apply_plan("delete cluster", &plan, &snapshot, None, lock)
            .await?;
        let again = format!("kctl delete cluster {name} --yes");
        if let Some(error) = PlanContext::incomplete_error(&report, &again) {
            return Err(error.with_hint("the spec is kept until everything in AWS is gone"));
        }
    }
    // Until its instances are gone, protokube makes them again.
    if let Some(zone) = deletion.zone.as_ref().filter(|_| deletion.claim.has_acted) {
        let deleted = delete_object_records(&deletion.clients, zone, name).await;
        deleted.map_err(observe::aws_error)?;
    }
    if json {
        show_plan(&plan, deletion, args, Some(&report), events, session).await?;
    }
    delete_from_store(name, &deletion.state.keys, args, session).await
}

/// Fails if the lock was paused since it was `resumed` so often: a computer may have slept for a night between the plan and the last
/// snapshot, which nobody would call the last any more, and the deletion.
fn check_not_paused(lock: &ClusterLock, resumed: u64, name: &str) -> Result<(), CommandError> {
    if lock.times_resumed() == resumed {
        return Ok(());
    }
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        "the lock was paused since the plan was made, so the plan and the last snapshot may be outdated: nothing was deleted",
        format!("repeat the command: kctl delete cluster {name}"),
    ))
}

/// Fails if what would be deleted is of another cluster, or operated from another state store.
async fn check_owner(
    deletion: &Deletion,
    snapshot: &Snapshot<Cloud>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let state = &deletion.state;
    ownership::check_ownership(&deletion.claim, snapshot, state, session)?;
    Box::pin(ownership::check_place_to_delete(snapshot, state, session)).await
}

/// Says what is deleted besides what the plan has, and what is in the way.
async fn show_besides(
    plan: &Plan<Cloud>,
    deletion: &Deletion,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let besides = [
        (
            "A rolling update that did not end has detached instances from their Auto Scaling groups; they will be terminated",
            &deletion.detached,
        ),
        (
            "Services have classic load balancers; they will be deleted",
            &deletion.classic_load_balancers,
        ),
        (
            "A network plugin has left network interfaces; they will be deleted",
            &deletion.left_interfaces,
        ),
        (
            "Services, Ingresses and pods have names in the hosted zone; their records will be deleted",
            &deletion.object_names,
        ),
    ];
    for (sentence, names) in besides {
        if !names.is_empty() {
            let line = format!("{sentence}: {}", names.join(", "));
            session.shell.note(&line);
        }
    }
    let deleted = plan.steps.values().filter_map(|step| step.before.as_ref());
    let mut going: BTreeSet<String> = deleted.map(|one| one.physical.clone()).collect();
    going.extend(deletion.classic_load_balancers.iter().cloned());
    going.extend(deletion.left_interfaces.iter().cloned());
    let name = deletion.state.name();
    let foreign = foreign_interfaces(&deletion.clients, name, &going).await;
    let foreign = foreign.map_err(observe::aws_error)?;
    if !foreign.is_empty() {
        session.shell.warning(&format!(
            "network interfaces that are not the cluster's are in its VPC, subnets or security groups, which AWS deletes only after \
             them; kctl does not touch them: {}",
            foreign.join(", ")
        ));
    }
    Ok(())
}

/// Deletes what the plan does not have.
async fn delete_besides(deletion: &Deletion) -> Result<(), Failure> {
    let clients = &deletion.clients;
    for instance in &deletion.detached {
        forgive_gone(terminate_instance(clients, instance, false).await)?;
    }
    for balancer in &deletion.classic_load_balancers {
        forgive_gone(delete_classic_load_balancer(clients, balancer).await)?;
    }
    for interface in &deletion.left_interfaces {
        forgive_gone(delete_interface(clients, interface).await)?;
    }
    Ok(())
}

/// What is gone already need not be deleted: AWS may list it for a while.
fn forgive_gone(deleted: Result<(), Failure>) -> Result<(), Failure> {
    match deleted {
        Err(failure) if failure.class == Class::Gone => Ok(()),
        deleted => deleted,
    }
}

async fn show_plan(
    plan: &Plan<Cloud>,
    deletion: &Deletion,
    args: &DeleteCluster,
    report: Option<&Report>,
    events: Option<Events<'_>>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if let Some(events) = events {
        events.emit_plan(plan, &[]);
        return Ok(());
    }
    if args.output == PlanFormat::Json {
        let text = serde_json::to_string_pretty(&PlanDocument::new(plan, &deletion.target, report));
        return session.shell.print_document(&text.or_failed(
            "the plan has no JSON form",
            "report this: it is a defect of kctl",
        )?);
    }
    let view = PlanView {
        plan,
        wide: args.output == PlanFormat::Wide,
        paint: session.shell.paint(),
        stand_ins: &[],
    };
    let keys = &deletion.state.keys;
    let all = session
        .store
        .list(&keys.prefix(), None)
        .await
        .map_err(store_error)?;
    let store = store_summary(keys, &all, args, session).await?;
    let text = format!(
        "{}{}\n{store}",
        plan::render(view),
        plan::summary_line(plan)
    );
    session.shell.print_result(&text)
}

/// Describes what is deleted from the store.
async fn store_summary(
    keys: &StoreKeys,
    all: &[Entry],
    args: &DeleteCluster,
    session: &Session<'_>,
) -> Result<String, CommandError> {
    let backups = all.iter().filter(|entry| is_backup(keys, entry)).count();
    let is_key = |entry: &&Entry| is_encryption_key(keys, entry);
    let encryption = all.iter().filter(is_key).count();
    let stay = match (backups, encryption > 0) {
        (0, _) => KEY.to_owned(),
        (backups, false) => format!("{backups} objects of etcd backups"),
        (backups, true) => format!("{backups} objects of etcd backups and {KEY}"),
    };
    let outlive = backups + encryption;
    let (deleted, backups) = match (outlive, args.delete_backups) {
        (0, _) => (all.len(), String::new()),
        // AWS stays as it is, and the cluster may run on: what is outside of its folder stays too, and the keys for it.
        (_, true) if args.unregister => (
            all.len() - encryption,
            format!(
                ", {backups} of them of etcd backups; backups in other places stay, and the secret {ENCRYPTION_CONFIG} with them"
            ),
        ),
        (_, true) => (all.len(), format!(", {backups} of them of etcd backups")),
        (_, false) => (
            all.len() - outlive,
            format!("; {stay} stay (--delete-backups deletes them too)"),
        ),
    };
    let kept = match session.store.keeps_versions().await {
        Ok(false) => "",
        Ok(true) => KEPT,
        Err(StoreError::Denied { .. }) => PERHAPS_KEPT,
        Err(error) => return Err(store_error(error)),
    };
    Ok(format!(
        "Then {} objects below {}/{} will be deleted: the spec, keys and certificates, and the log of operations{backups}.\n{kept}",
        deleted,
        session.url,
        keys.prefix()
    ))
}

/// What stays beside backups.
const KEY: &str =
    "the secret encryptionconfig, without which nobody can read the Secrets in backups,";

/// In a bucket with versioning, S3 only adds a delete marker: all versions stay.
const KEPT: &str = "The bucket has versioning: earlier versions of all of it, private keys too, stay there and can be read, until a \
                    lifecycle rule (NoncurrentVersionExpiration) or `aws s3api delete-objects` removes them.\n";

const PERHAPS_KEPT: &str = "If the bucket has versioning (s3:GetBucketVersioning, which would say so, is denied), earlier versions of all of \
                            it, private keys too, stay there and can be read.\n";

/// Deletes the cluster's folder. The spec goes last, so that the command can be repeated after a failure.
async fn delete_from_store(
    name: &str,
    keys: &StoreKeys,
    args: &DeleteCluster,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let store = &session.store;
    let all_backups_go =
        args.delete_backups && !args.unregister && backups::delete_backups(name, session).await?;
    let entries = store
        .list(&keys.prefix(), None)
        .await
        .map_err(store_error)?;
    let settings = keys.key_below(BACKUP_SETTINGS_KEY);
    let last = [
        settings.clone(),
        keys.config(),
        keys.lock(LockKind::Changes),
    ];
    // The keys by which the API server encrypted Secrets are needed as long as any backup is left, be it here or in another store.
    let kept = |entry: &&Entry| {
        is_backup(keys, entry) && !args.delete_backups
            || is_encryption_key(keys, entry) && !all_backups_go
    };
    let keeps_key = entries
        .iter()
        .filter(kept)
        .any(|one| is_encryption_key(keys, one));
    let keeps = entries.iter().filter(kept).any(|one| is_backup(keys, one));
    if keeps {
        backups::mark_kept(keys, session).await?;
    }
    let first: Vec<String> = entries
        .iter()
        .filter(|entry| !kept(entry))
        .map(|entry| entry.key.clone())
        .filter(|key| !last.contains(key))
        .collect();
    store.delete_all(&first).await.map_err(store_error)?;
    // Without the settings, a repeated command would not know of backups that were passed over.
    let last = [settings, keys.config()];
    store.delete_all(&last).await.map_err(store_error)?;
    // Cleanup only: a kubeconfig that is missing or not writable is not an error.
    let forgotten = kubeconfig::kubeconfig_path(None)
        .and_then(|path| Ok((kubeconfig::remove_cluster(&path, name)?, path)));
    if let Ok((true, path)) = forgotten {
        session
            .shell
            .note(&format!("took {name} out of {}", path.display()));
    }
    session.shell.print_done(&format!("deleted cluster {name}"));
    if keeps {
        session.shell.note(&format!(
            "kept the backups of etcd below {}/{}",
            session.url,
            keys.key_below("backups/")
        ));
    }
    if keeps_key {
        session.shell.note(&format!(
            "kept {}/{}: with another key nobody can read the Secrets in the backups",
            session.url,
            keys.secret(ENCRYPTION_CONFIG)
        ));
    }
    Ok(Outcome::Fine)
}

async fn unregister_cluster(
    name: &str,
    keys: &StoreKeys,
    args: &DeleteCluster,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    session.check_cluster_exists(name).await?;
    let all = session
        .store
        .list(&keys.prefix(), None)
        .await
        .map_err(store_error)?;
    let words = store_summary(keys, &all, args, session).await?;
    session
        .shell
        .note(&format!("AWS stays as it is. {}", words.trim_end()));
    let question = format!("Type {name} to go on:");
    if !args.yes && !session.shell.confirm(&question, name).await {
        return Err(CommandError::from_message(
            ErrorKind::Usage,
            format!("{name} was not unregistered"),
            format!("type its name, or: kctl delete cluster {name} --unregister --yes"),
        ));
    }
    with_lock(
        session,
        keys,
        "delete cluster",
        args.lock_wait,
        async |_, _| {
            check_no_rolling_update(keys, session).await?;
            delete_from_store(name, keys, args, session).await
        },
    )
    .await
}

/// Fails while instances are replaced: a rolling update stops when it notices the lock for changes, which may take minutes.
async fn check_no_rolling_update(
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let lock = ObservedLock::read(&session.store, keys, LockKind::RollingUpdate).await?;
    match lock.filter(|lock| matches!(lock.state(), LockState::Alive(_))) {
        None => Ok(()),
        Some(lock) => Err(locked_error(&lock, keys, LockKind::RollingUpdate, "")),
    }
}
