//! The roles of a control plane, each a supervised task of its own.

use crate::bootstrap::{self, ApiNodes};
use crate::daemon::Daemon;
use crate::etcd::{self, Formation, Http, Member, Peer, Settings};
use crate::identity::system_clock;
use crate::keysets::keyset;
use crate::log::{Log, Voice};
use crate::manifests::{self, Gates};
use crate::pace::{Pace, sleep};
use crate::standing::Report;
use crate::supervise::{Backoff, for_a_while, supervise};
use crate::thread::on_own_thread;
use crate::{addons, api, approval, health, labels, names, readiness, removal};
use aws_client::machine::Machine;
use node::components::{EtcdMemberNames, KUBERNETES, etcd_ports};
use node::config::{EtcdCluster, etcd_members};
use node::host::signing_duration;
use node::pki::{KUBERNETES_CA, Keyset, LEAF_VALIDITY};
use node::ports;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::task::JoinSet;

/// Time between looks at a member's volume while it is not up, and afterwards.
pub const MEMBER_PACE: Pace = Pace {
    quick: Duration::from_secs(2),
    waiting: Duration::from_secs(15),
    rest: Duration::from_mins(1),
    sleep,
};

/// Time between looks at where machines are.
pub const NAMES_PACE: Pace = Pace {
    quick: Duration::from_secs(5),
    waiting: Duration::from_secs(30),
    rest: Duration::from_mins(1),
    sleep,
};

/// Time between looks at which API servers are ready, which this machine's own says.
pub const READY_PACE: Duration = Duration::from_secs(5);

/// Time between questions to this machine's own, half of what a load balancer waits.
const OWN_READY_PACE: Duration = Duration::from_secs(2);

/// Starts them all. Dropping the set ends them.
pub fn start(daemon: &Arc<Daemon>) -> JoinSet<()> {
    let mut set = JoinSet::new();
    if let Err(error) = names::restore(&daemon.host) {
        Voice::of("names").failed("last known names", &error);
    }
    for (index, etcd) in own_etcd(daemon).into_iter().enumerate() {
        if let Some(member) = member(daemon, &etcd, index) {
            let voice = voice_of(daemon, &etcd);
            let context = Arc::new(member);
            let role = async |member: Arc<Member<Machine, Http>>| member.run().await;
            spawn(&mut set, voice, &context, role);
        }
    }
    add(&mut set, "health", daemon, serve_health);
    add(&mut set, "ready", daemon, follow_readiness);
    add(&mut set, "manifests", daemon, write_manifests);
    add(&mut set, "names", daemon, name_members);
    add(&mut set, "dns", daemon, publish_names);
    add(&mut set, "bootstrap", daemon, serve_workers);
    add(&mut set, "approval", daemon, approve);
    add(&mut set, "labels", daemon, label);
    add(&mut set, "removal", daemon, remove_nodes);
    add(&mut set, "addons", daemon, apply_addons);
    add(&mut set, "report", daemon, report);
    set
}

fn add<F>(
    set: &mut JoinSet<()>,
    name: &str,
    daemon: &Arc<Daemon>,
    role: impl Fn(Arc<Daemon>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    spawn(set, voice(daemon, name), daemon, role);
}

fn spawn<C, F>(
    set: &mut JoinSet<()>,
    voice: Voice,
    context: &Arc<C>,
    role: impl Fn(Arc<C>) -> F + Send + Sync + 'static,
) where
    C: Send + Sync + 'static,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let context = Arc::clone(context);
    set.spawn(async move {
        match supervise(voice, Backoff::default(), || role(Arc::clone(&context))).await {}
    });
}

/// Of a role, on the console and where operators of a machine that joined look.
fn voice(daemon: &Daemon, role: &str) -> Voice {
    Voice::of(role).standing_in(&daemon.standing, "")
}

/// Of the role of an etcd cluster's member, named where the machine's group has one only.
fn voice_of(daemon: &Daemon, etcd: &EtcdCluster) -> Voice {
    let about = match &etcd_members(&daemon.config, etcd)[..] {
        [member] => format!("member {member}"),
        _ => String::new(),
    };
    Voice::of(format!("etcd-{}", etcd.name)).standing_in(&daemon.standing, &about)
}

/// The etcd clusters of which this machine's group runs a member.
fn own_etcd(daemon: &Daemon) -> Vec<EtcdCluster> {
    let config = &daemon.config;
    let all = config.control_plane.iter().flat_map(|of| &of.etcd);
    let own = all.filter(|etcd| !etcd_members(config, etcd).is_empty());
    own.cloned().collect()
}

/// `None` for an etcd cluster whose ports nobody knows: validation refuses those.
fn member(daemon: &Daemon, etcd: &EtcdCluster, index: usize) -> Option<Member<Machine, Http>> {
    let ports = etcd_ports(&etcd.name)?;
    let names = EtcdMemberNames::of(etcd, &daemon.config.cluster);
    let running = Http {
        probe: daemon.probe.clone(),
        health: format!("http://127.0.0.1:{}", ports.health),
        peer: Peer {
            host: daemon.host.clone(),
            certificates: format!("{KUBERNETES}/{}", names.prefix),
            names,
            address: daemon.address,
            port: ports.peer,
        },
    };
    let settings = Settings {
        config: Arc::clone(&daemon.config),
        etcd: etcd.clone(),
        first_device: index,
        instance: daemon.instance.clone(),
        zone: daemon.zone.clone(),
        pace: MEMBER_PACE,
        token: etcd::token,
    };
    Some(Member::new(
        settings,
        Arc::clone(&daemon.machine),
        daemon.host.clone(),
        Formation::of(&daemon.store, &etcd.name),
        running,
        Arc::clone(&daemon.settled),
        voice_of(daemon, etcd),
    ))
}

async fn write_manifests(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let own = own_etcd(&daemon).into_iter();
    let etcd = own.filter_map(|etcd| {
        let ports = etcd_ports(&etcd.name)?;
        Some((etcd.name, ports.health))
    });
    let gates = Gates::new(etcd, daemon.settled.subscribe());
    let pods = daemon.config.control_plane.as_ref();
    let pods = pods.map(|of| of.static_pods.clone()).unwrap_or_default();
    let voice = voice(&daemon, "manifests");
    manifests::run(&daemon.host, &pods, &gates, &daemon.probe, &voice).await
}

async fn name_members(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let control_plane = daemon.config.control_plane.iter();
    let formations = control_plane.flat_map(|of| &of.etcd).map(|etcd| {
        let formation = Formation::of(&daemon.store, &etcd.name);
        (etcd.name.clone(), formation)
    });
    let members = names::Members {
        host: &daemon.host,
        ec2: &*daemon.machine,
        config: &daemon.config,
        formations: formations.collect(),
        instance: &daemon.instance,
        pace: NAMES_PACE,
    };
    members.keep().await
}

/// The names in the cluster's zone, if it has one. Which zone that is, is read anew with each start of the role.
async fn publish_names(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let Some(zone) = names::zone_of(&daemon.store).await? else {
        return std::future::pending().await;
    };
    let records = names::Route53 {
        clients: daemon.clients.clone(),
        zone,
    };
    let servers = names::Endpoints {
        client: client(&daemon).await?,
        ready: daemon.ready.subscribe(),
    };
    let zone = names::Zone {
        ec2: &*daemon.machine,
        records: &records,
        servers: &servers,
        config: &daemon.config,
        pace: (READY_PACE, sleep),
    };
    for_a_while(api::CLIENT_LIFE, zone.keep()).await
}

async fn follow_readiness(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let health = format!("http://127.0.0.1:{}", ports::API_HEALTH);
    let (probe, ready) = (&daemon.probe, &daemon.ready);
    let voice = voice(&daemon, "ready");
    readiness::follow(&health, probe, ready, OWN_READY_PACE, &voice).await
}

/// kubelet ends an API server whose health nobody tells it: a disk that hangs, or a log that is not read, must not hold this up.
async fn serve_health(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let context = health::Context {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, ports::API_HEALTH)),
        server: api::url(&daemon.config),
        trust_bundle: daemon.config.ca_certificates.clone(),
        authority: authority(&daemon).await?,
        clock: system_clock(),
        validity: LEAF_VALIDITY,
    };
    on_own_thread("health", move || health::serve(context)).await
}

async fn serve_workers(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let context = bootstrap::Context {
        listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, ports::BOOTSTRAP)),
        cluster: daemon.config.cluster.clone(),
        account: bootstrap::account(&daemon.machine).await?,
        trust_bundle: daemon.config.ca_certificates.clone(),
        authority: authority(&daemon).await?,
        machine: Machine::clone(&daemon.machine),
        store: daemon.store.clone(),
        nodes: Arc::new(ApiNodes::new(client(&daemon).await?)),
        clock: system_clock(),
        signing: signing_duration(&daemon.config),
        ready: daemon.ready.subscribe(),
        log: Log::stderr(),
        told: bootstrap::TOLD,
        pause: bootstrap::PAUSE,
    };
    for_a_while(api::CLIENT_LIFE, bootstrap::serve(Arc::new(context))).await
}

async fn approve(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let (machine, log) = (Machine::clone(&daemon.machine), Log::stderr());
    let role = approval::run(
        client(&daemon).await?,
        machine,
        &daemon.config.cluster,
        &log,
    );
    for_a_while(api::CLIENT_LIFE, role).await
}

async fn label(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let (machine, log) = (Machine::clone(&daemon.machine), Log::stderr());
    let role = labels::run(
        client(&daemon).await?,
        machine,
        &daemon.config.cluster,
        &log,
    );
    for_a_while(api::CLIENT_LIFE, role).await
}

async fn remove_nodes(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let (machine, log) = (Machine::clone(&daemon.machine), Log::stderr());
    let role = removal::run(
        client(&daemon).await?,
        machine,
        &daemon.instance,
        removal::Pace::default(),
        &log,
    );
    for_a_while(api::CLIENT_LIFE, role).await
}

async fn apply_addons(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let voice = voice(&daemon, "addons");
    let role = addons::run(client(&daemon).await?, daemon.store.clone(), voice);
    for_a_while(api::CLIENT_LIFE, role).await
}

async fn report(daemon: Arc<Daemon>) -> anyhow::Result<()> {
    let report = Report {
        store: &daemon.store,
        standing: &daemon.standing,
        instance: &daemon.instance,
        voice: Voice::of("report"),
        clock: OffsetDateTime::now_utc,
        sleep,
    };
    report.keep().await
}

async fn client(daemon: &Daemon) -> anyhow::Result<kube::Client> {
    let url = api::url(&daemon.config);
    api::client(&daemon.store, &url, OffsetDateTime::now_utc()).await
}

async fn authority(daemon: &Daemon) -> anyhow::Result<Arc<Keyset>> {
    Ok(Arc::new(keyset(&daemon.store, KUBERNETES_CA).await?))
}
