//! Rounds of the daemon: a world, a verdict of a health check or the end of some work begins one; each does what can be
//! done now, and reports what was done.

use super::host_orders::{FinishedOrder, HostOrders};
use super::simulator::SimulatorClient;
use crate::aws_state::{AwsState, HostReport, InstanceState};
use crate::host::Images;
use crate::lab_paths::LabPaths;
use crate::ledger::Ledger;
use crate::network::{Router, TargetHealth, attach_host, attach_machine};
use anyhow::{Context, Result, anyhow};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long the simulator may hold a question for changes.
const POLL: Duration = Duration::from_secs(20);

/// How often consoles are looked at.
const CONSOLES: Duration = Duration::from_secs(2);

/// All that a round needs.
pub struct Rounds {
    place: LabPaths,
    ledger: Arc<Ledger>,
    /// Taken while it works on a thread of its own.
    router: Option<Router>,
    simulator: Arc<SimulatorClient>,
    worlds: watch::Sender<Arc<AwsState>>,
    verdicts: watch::Receiver<TargetHealth>,
    machines: HostOrders,
    /// Instances that have a link: it is made once, since a host that boots again moves it to a new namespace.
    linked: BTreeSet<String>,
    /// Instances are virtual machines.
    virtual_machines: bool,
    done: mpsc::UnboundedReceiver<FinishedOrder>,
    /// Size of each console when it was told.
    consoles: BTreeMap<String, usize>,
}

impl Rounds {
    pub fn new(
        place: &LabPaths,
        ledger: &Arc<Ledger>,
        images: Images,
        router: Router,
        simulator: SimulatorClient,
        worlds: watch::Sender<Arc<AwsState>>,
        verdicts: watch::Receiver<TargetHealth>,
    ) -> Self {
        let (told, done) = mpsc::unbounded_channel();
        Self {
            place: place.clone(),
            ledger: Arc::clone(ledger),
            router: Some(router),
            simulator: Arc::new(simulator),
            worlds,
            verdicts,
            virtual_machines: matches!(images, Images::Machines(_)),
            machines: HostOrders::new(place, ledger, images, told),
            linked: BTreeSet::new(),
            done,
            consoles: BTreeMap::new(),
        }
    }

    /// Goes round until something fails that no round can mend.
    pub async fn run(mut self) -> Result<()> {
        let (news, mut worlds) = mpsc::channel(1);
        let asked = Arc::clone(&self.simulator);
        let mut serial = self.worlds.borrow().serial;
        let poll = async move {
            loop {
                let world = asked.fetch_world(Some(serial), POLL).await?;
                if world.serial != serial {
                    serial = world.serial;
                    news.send(world)
                        .await
                        .map_err(|_| anyhow!("the rounds ended"))?;
                }
            }
        };
        let rounds = async {
            self.run_round(None).await?;
            let mut consoles = tokio::time::interval(CONSOLES);
            consoles.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    world = worlds.recv() => {
                        let world = world.context("the simulator is not asked any more")?;
                        self.run_round(Some(world)).await?;
                    }
                    changed = self.verdicts.changed() => {
                        changed.context("nobody checks targets any more")?;
                        let targets = self.verdicts.borrow_and_update().clone();
                        self.simulator.send_report(&HostReport { targets, ..HostReport::default() }).await?;
                        self.run_round(None).await?;
                    }
                    done = self.done.recv() => {
                        let done = done.context("no work is done any more")?;
                        let report = self.machines.finish_order(done)?;
                        self.simulator.send_report(&report).await?;
                        self.run_round(None).await?;
                    }
                    _ = consoles.tick() => self.report_consoles().await?,
                }
            }
        };
        tokio::select! {
            ended = poll => ended,
            ended = rounds => ended,
        }
    }

    /// One round: links for new machines, then filters and routes, then everybody learns of the world, then machines and
    /// volumes get their orders.
    async fn run_round(&mut self, world: Option<AwsState>) -> Result<()> {
        let world = world.map_or_else(|| Arc::clone(&self.worlds.borrow()), Arc::new);
        let mut router = self.router.take().context("a round ended within a round")?;
        let (place, ledger) = (self.place.clone(), Arc::clone(&self.ledger));
        let (seen, health) = (Arc::clone(&world), self.verdicts.borrow().clone());
        let linked = std::mem::take(&mut self.linked);
        let machines = self.virtual_machines;
        let work = move || -> Result<(Router, BTreeSet<String>)> {
            let linked = attach_links(&place, &ledger, &seen, &linked, machines)?;
            router.apply_world(&seen, &health)?;
            Ok((router, linked))
        };
        let (router, linked) = tokio::task::spawn_blocking(work).await??;
        (self.router, self.linked) = (Some(router), linked);
        self.worlds.send_if_modified(|now| {
            let new = now.serial != world.serial;
            *now = Arc::clone(&world);
            new
        });
        let report = self.machines.begin_orders(&world);
        if report != HostReport::default() {
            self.simulator.send_report(&report).await?;
        }
        Ok(())
    }

    /// Tells new console text, and machines that switched themselves off.
    async fn report_consoles(&mut self) -> Result<()> {
        let mut report = self.machines.switched_off()?;
        for (instance, text) in self.machines.read_consoles()? {
            if self.consoles.insert(instance.clone(), text.len()) != Some(text.len()) {
                report.consoles.insert(instance, console_tail(&text));
            }
        }
        if report != HostReport::default() {
            self.simulator.send_report(&report).await?;
        }
        Ok(())
    }
}

/// Base64 of the last 64 KiB, which is what EC2 keeps.
fn console_tail(text: &[u8]) -> String {
    use base64::Engine;
    let from = text.len().saturating_sub(64 << 10);
    base64::engine::general_purpose::STANDARD.encode(text.get(from..).unwrap_or_default())
}

/// Links for instances that are to have one and are not among those that do; all that do then.
fn attach_links(
    place: &LabPaths,
    ledger: &Ledger,
    world: &AwsState,
    linked: &BTreeSet<String>,
    machines: bool,
) -> Result<BTreeSet<String>> {
    use InstanceState::{Pending, Running};
    let there = |state| matches!(state, Pending | Running);
    let mut now = BTreeSet::new();
    for instance in world.instances.iter().filter(|one| there(one.state)) {
        now.insert(instance.id.clone());
        if linked.contains(&instance.id) {
            continue;
        }
        if machines {
            attach_machine(place, instance)?;
        } else {
            attach_host(place, ledger, instance)?;
        }
    }
    Ok(now)
}
