//! Starts the roles of a control plane, each as a supervised task.

pub(crate) mod etcd;

use crate::api::ApiAccess;
use crate::bootstrap::{self, ApiNodes};
use crate::daemon::DaemonState;
use crate::identity::system_clock;
use crate::manifests::{self, HealthGates};
use crate::supervise::{Backoff, run_for, supervise_role};
use crate::thread::run_on_own_thread;
use crate::{
    addons, api, approval, health, labels, names, object_names, pod_ranges, readiness, removal,
    termination,
};
use aws_client::ec2_query::Ec2QueryClient;
use etcd::{find_local_etcd, start_etcd_roles};
use etcd_rules::backup::render_backup_metrics;
use etcd_store::FormationStore;
use ipnet::IpNet;
use node::config::Networking;
use node::host::signing_duration;
use node::pki::{KUBERNETES_CA, Keyset, LEAF_VALIDITY};
use node::ports;
use protokube_role::current_waits::WaitsReporter;
use protokube_role::keysets::read_keyset_object;
use protokube_role::lock::lock_ignoring_poison;
use protokube_role::log::{Log, RoleLog};
use protokube_role::pace::{PollPace, sleep_for};
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::task::JoinSet;

/// Intervals of the roles of etcd members.
pub const MEMBER_PACE: PollPace = PollPace {
    quick: Duration::from_secs(2),
    waiting: Duration::from_secs(15),
    rest: Duration::from_mins(1),
    sleep: sleep_for,
};

/// Intervals of the role names.
pub const NAMES_PACE: PollPace = PollPace {
    quick: Duration::from_secs(5),
    waiting: Duration::from_secs(30),
    rest: Duration::from_mins(1),
    sleep: sleep_for,
};

/// Interval of reading the list of ready API servers.
pub const READY_PACE: Duration = Duration::from_secs(5);

/// Interval of looking which members run here, for their names in the hosted zone. Each look reads the formation records.
pub const OWN_MEMBERS_PACE: Duration = Duration::from_secs(30);

/// Intervals of the role object-names. The time between calls of Route 53 leaves four of the five that it allows per second to others.
pub const OBJECT_NAMES_PACE: object_names::PublishPace = object_names::PublishPace {
    look: Duration::from_secs(5),
    call: Duration::from_secs(1),
    idle: Duration::from_secs(15),
    sleep: sleep_for,
};

/// Time after which the role object-names reads its settings and the zone again, which somebody may have changed by hand.
const OBJECT_NAMES_LIFE: Duration = Duration::from_mins(10);

/// Interval of checking the local API server: half the timeout of a load balancer.
const OWN_READY_PACE: Duration = Duration::from_secs(2);

/// Starts all roles. Dropping the set ends them.
pub fn start_roles(daemon: &Arc<DaemonState>) -> JoinSet<()> {
    let mut set = JoinSet::new();
    if let Err(error) = names::restore_names(&daemon.host) {
        RoleLog::for_role("names").report_error("last known names", &error);
    }
    start_etcd_roles(&mut set, daemon);
    add_role(&mut set, "health", daemon, serve_health);
    add_role(&mut set, "ready", daemon, follow_readiness);
    add_role(&mut set, "manifests", daemon, write_manifests);
    add_role(&mut set, "names", daemon, name_members);
    add_role(&mut set, "dns", daemon, publish_names);
    add_role(&mut set, "dns-members", daemon, publish_members);
    let problems = Arc::new(object_names::ProblemLog::new(Log::stderr(), "object-names"));
    add_role(&mut set, "object-names", daemon, move |daemon| {
        publish_object_names(daemon, Arc::clone(&problems))
    });
    add_role(&mut set, "bootstrap", daemon, serve_workers);
    add_role(&mut set, "approval", daemon, approve_requests);
    add_role(&mut set, "labels", daemon, label_nodes);
    add_role(&mut set, "pod-ranges", daemon, assign_pod_ranges);
    add_role(&mut set, "removal", daemon, remove_nodes);
    add_role(&mut set, "termination", daemon, handle_terminations);
    add_role(&mut set, "addons", daemon, apply_addons);
    add_role(&mut set, "report", daemon, report_waits);
    set
}

fn add_role<F>(
    set: &mut JoinSet<()>,
    name: &str,
    daemon: &Arc<DaemonState>,
    role: impl Fn(Arc<DaemonState>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    spawn_supervised(set, new_role_log(daemon, name), daemon, role);
}

fn spawn_supervised<C, F>(
    set: &mut JoinSet<()>,
    role_log: RoleLog,
    context: &Arc<C>,
    role: impl Fn(Arc<C>) -> F + Send + Sync + 'static,
) where
    C: Send + Sync + 'static,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let context = Arc::clone(context);
    set.spawn(async move {
        match supervise_role(role_log, Backoff::default(), || role(Arc::clone(&context))).await {}
    });
}

/// The log of a role, which also records waits for the report in the state store.
fn new_role_log(daemon: &DaemonState, role: &str) -> RoleLog {
    RoleLog::for_role(role).recording_waits(&daemon.current_waits, "")
}

/// The value of a flag of a static pod, given with its `=`.
fn find_flag(daemon: &DaemonState, name: &str) -> Option<String> {
    let pods = daemon
        .config
        .control_plane
        .iter()
        .flat_map(|own| own.static_pods.values());
    let mut flags = pods
        .flat_map(|pod| &pod.spec.containers)
        .flat_map(|container| &container.args);
    flags.find_map(|flag| flag.strip_prefix(name).map(str::to_owned))
}

async fn write_manifests(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let own = find_local_etcd(&daemon).into_iter();
    let etcd = own.map(|etcd| (etcd.cluster.name, etcd.ports.health));
    let gates = HealthGates::new(etcd, daemon.settled.subscribe());
    let pods = daemon.config.control_plane.as_ref();
    let pods = pods
        .map(|control_plane| control_plane.static_pods.clone())
        .unwrap_or_default();
    let role_log = new_role_log(&daemon, "manifests");
    manifests::write_manifests(&daemon.host, &pods, &gates, &daemon.probe, &role_log).await
}

async fn name_members(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let control_plane = daemon.config.control_plane.iter();
    let formations = control_plane
        .flat_map(|control_plane| &control_plane.etcd)
        .map(|etcd| {
            let formation = FormationStore::new(&daemon.store, &etcd.name);
            (etcd.name.clone(), formation)
        });
    let members = names::MemberNames {
        host: &daemon.host,
        ec2: &*daemon.ec2,
        config: &daemon.config,
        formations: formations.collect(),
        instance: &daemon.instance,
        pace: NAMES_PACE,
    };
    members.keep_names().await
}

/// Publishes names in the cluster's hosted zone, if it has one. The zone is read at each start of the role.
async fn publish_names(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let Some(zone) = names::read_zone_id(&daemon.store).await? else {
        return std::future::pending().await;
    };
    let records = names::Route53 {
        clients: daemon.clients.clone(),
        zone,
    };
    let servers = names::ApiEndpoints {
        access: daemon.api.clone(),
        ready: daemon.ready.subscribe(),
    };
    let zone = names::ZonePublisher {
        ec2: &*daemon.ec2,
        records: &records,
        servers: &servers,
        config: &daemon.config,
        pace: (READY_PACE, sleep_for),
    };
    run_for(api::CLIENT_LIFE, zone.keep_published()).await
}

/// Publishes the names of this instance's etcd members in the cluster's hosted zone, if it has one. Needs no API server.
async fn publish_members(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let Some(zone) = names::read_zone_id(&daemon.store).await? else {
        return std::future::pending().await;
    };
    let records = names::Route53 {
        clients: daemon.clients.clone(),
        zone,
    };
    let own = find_local_etcd(&daemon);
    let members = own
        .iter()
        .map(|etcd| (etcd.build_settings(), etcd.open_formation()));
    let publisher = names::MemberPublisher {
        host: &daemon.host,
        records: &records,
        members: members.collect(),
        address: daemon.address,
        pace: (OWN_MEMBERS_PACE, sleep_for),
    };
    run_for(api::CLIENT_LIFE, publisher.keep_published()).await
}

/// Publishes the names of Services, Ingresses and pods, if the completed spec says so.
async fn publish_object_names(
    daemon: Arc<DaemonState>,
    problems: Arc<object_names::ProblemLog>,
) -> anyhow::Result<()> {
    let publish = async {
        let settings = object_names::read_settings(&daemon.store, &daemon.config).await?;
        let Some(settings) = settings else {
            return std::future::pending().await;
        };
        // Before that there are no objects to list.
        daemon.ready.subscribe().wait_for(|ready| *ready).await?;
        let api = daemon.api.client().await?;
        let life = api.life();
        let records = names::Route53 {
            clients: daemon.clients.clone(),
            zone: settings.zone.clone(),
        };
        let servers = names::ApiEndpoints {
            access: daemon.api.clone(),
            ready: daemon.ready.subscribe(),
        };
        let role = object_names::ObjectNames {
            objects: object_names::NamedObjects {
                client: api.client,
                watch_ingress: settings.watch_ingress,
                namespace: settings.namespace.clone(),
            },
            servers: &servers,
            records: &records,
            settings,
            address: daemon.address,
            role_log: &RoleLog::for_role("object-names"),
            problems: &problems,
            pace: OBJECT_NAMES_PACE,
        };
        run_for(life, role.keep_published()).await
    };
    run_for(OBJECT_NAMES_LIFE, publish).await
}

async fn follow_readiness(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let health = format!("http://127.0.0.1:{}", ports::API_HEALTH);
    let (probe, ready) = (&daemon.probe, &daemon.ready);
    let role_log = new_role_log(&daemon, "ready");
    readiness::follow_readiness(&health, probe, ready, OWN_READY_PACE, &role_log).await
}

/// Serves health on a separate thread: kubelet kills the API server if its probes are not answered, so a hanging disk or a blocked
/// log must not delay them.
async fn serve_health(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let context = health::HealthContext {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, ports::API_HEALTH)),
        server: api::api_server_url(&daemon.config),
        trust_bundle: daemon.config.ca_certificates.clone(),
        authority: read_own_authority(&daemon).await?,
        clock: system_clock(),
        validity: LEAF_VALIDITY,
        metrics: Arc::new(move || render_backup_metrics(&lock_ignoring_poison(&daemon.backups))),
    };
    run_on_own_thread("health", move || health::serve_health(context)).await
}

/// The addresses of pods, if no instance can have one: with networks whose addresses kctl gives out. They are outside of the VPC.
fn find_pod_range(daemon: &DaemonState) -> Option<IpNet> {
    let config = &daemon.config;
    if !matches!(
        config.networking,
        Networking::Calico
            | Networking::Cilium { in_vpc: false, .. }
            | Networking::Flannel(_)
            | Networking::KubeRouter
            | Networking::Kindnet
            | Networking::Kubenet
    ) {
        return None;
    }
    let range = find_flag(daemon, "--cluster-cidr=")?;
    let range: IpNet = range.parse().ok()?;
    (!range.contains(&daemon.address)).then_some(range)
}

/// The address of a listener at every address of the instance. That of IPv6 takes IPv4 connections too.
fn every_address(daemon: &DaemonState) -> IpAddr {
    if daemon.config.ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// Serves joining on a separate thread, because everybody in the network can keep it busy.
async fn serve_workers(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let authority = read_authority(&daemon).await?;
    let context = bootstrap::EndpointContext {
        listen: SocketAddr::new(every_address(&daemon), ports::BOOTSTRAP),
        pods: find_pod_range(&daemon),
        cluster: daemon.config.cluster.clone(),
        account: bootstrap::read_account(&daemon.ec2).await?,
        trust_bundle: daemon.config.ca_certificates.clone(),
        own_keys: daemon.config.held_ids(&authority),
        authority,
        ec2: Ec2QueryClient::clone(&daemon.ec2),
        store: daemon.store.clone(),
        // Clients belong to the thread that they are made on.
        nodes: Arc::new(ApiNodes::new(api_access(&daemon))),
        clock: system_clock(),
        signing: signing_duration(&daemon.config),
        ready: daemon.ready.subscribe(),
        log: Log::stderr(),
        log_interval: bootstrap::LOG_INTERVAL,
        request_interval: bootstrap::REQUEST_INTERVAL,
    };
    let serve = move || bootstrap::serve_endpoint(Arc::new(context));
    run_for(api::CLIENT_LIFE, run_on_own_thread("bootstrap", serve)).await
}

async fn approve_requests(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let (ec2, log) = (Ec2QueryClient::clone(&daemon.ec2), Log::stderr());
    let api = daemon.api.client().await?;
    let life = api.life();
    let role = approval::approve_requests(api.client, ec2, &daemon.config.cluster, &log);
    run_for(life, role).await
}

async fn label_nodes(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let (ec2, log) = (Ec2QueryClient::clone(&daemon.ec2), Log::stderr());
    let api = daemon.api.client().await?;
    let life = api.life();
    let role = labels::label_nodes(api.client, ec2, &daemon.config.cluster, &log);
    run_for(life, role).await
}

/// Gives Nodes their ranges for pods, if these come from AWS.
async fn assign_pod_ranges(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    if !daemon.config.ipv6 {
        return std::future::pending().await;
    }
    daemon.ready.subscribe().wait_for(|ready| *ready).await?;
    let (ec2, log) = (Ec2QueryClient::clone(&daemon.ec2), Log::stderr());
    let api = daemon.api.client().await?;
    let life = api.life();
    let servers = names::ApiEndpoints {
        access: daemon.api.clone(),
        ready: daemon.ready.subscribe(),
    };
    let role = pod_ranges::PodRanges {
        client: api.client,
        ec2,
        cluster: &daemon.config.cluster,
        servers: &servers,
        address: daemon.address,
        pace: pod_ranges::PodRangePace::default(),
        log: &log,
    };
    run_for(life, role.assign_ranges()).await
}

async fn remove_nodes(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let (ec2, log) = (Ec2QueryClient::clone(&daemon.ec2), Log::stderr());
    let api = daemon.api.client().await?;
    let life = api.life();
    let role = removal::remove_stale_nodes(
        api.client,
        ec2,
        &daemon.instance,
        removal::RemovalPace::default(),
        &log,
    );
    run_for(life, role).await
}

async fn handle_terminations(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let control_plane = daemon.config.control_plane.as_ref();
    let Some(settings) = control_plane.and_then(|own| own.termination.as_ref()) else {
        return std::future::pending().await;
    };
    // Before that there are no Nodes to drain.
    daemon.ready.subscribe().wait_for(|ready| *ready).await?;
    let api = daemon.api.client().await?;
    let life = api.life();
    let role = termination::TerminationRole {
        client: api.client,
        ec2: &daemon.ec2,
        config: &daemon.config,
        store: &daemon.store,
        settings,
        pace: termination::TerminationPace::default(),
        clock: OffsetDateTime::now_utc,
        log: &Log::stderr(),
    };
    run_for(life, role.handle_messages()).await
}

async fn apply_addons(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let role_log = new_role_log(&daemon, "addons");
    let role = addons::keep_addons(daemon.api.clone(), daemon.signed.clone(), role_log);
    run_for(api::CLIENT_LIFE, role).await
}

async fn report_waits(daemon: Arc<DaemonState>) -> anyhow::Result<()> {
    let report = WaitsReporter {
        store: &daemon.store,
        current_waits: &daemon.current_waits,
        instance: &daemon.instance,
        role_log: RoleLog::for_role("report"),
        clock: OffsetDateTime::now_utc,
        sleep: sleep_for,
    };
    report.keep_report().await
}

/// Access to this instance's API server with clients of its own.
fn api_access(daemon: &DaemonState) -> ApiAccess {
    let url = api::api_server_url(&daemon.config);
    ApiAccess::issuing(&daemon.store, url, system_clock())
}

/// The authority with the keys of this instance's NodeConfig.
async fn read_own_authority(daemon: &DaemonState) -> anyhow::Result<Arc<Keyset>> {
    let authority = read_keyset_object(&daemon.store, KUBERNETES_CA).await?;
    Ok(Arc::new(daemon.config.held_keys(authority)))
}

async fn read_authority(daemon: &DaemonState) -> anyhow::Result<Arc<Keyset>> {
    Ok(Arc::new(
        read_keyset_object(&daemon.store, KUBERNETES_CA).await?,
    ))
}
