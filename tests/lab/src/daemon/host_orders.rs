//! Machines and volumes under orders: each has at most one work going, on a thread of its own; its end is told to the
//! rounds.

use super::orders::{self, HostStatus, Order, VolumeAttachment, VolumeOrder};
use crate::aws_state::{AwsState, HostReport, Instance, InstanceState, Volume};
use crate::host::{self, DetachResult, Host, HostSpec, HostState, Images, VolumeSpec};
use crate::lab_paths::LabPaths;
use crate::ledger::Ledger;
use crate::network::detach_host;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// How long a machine that AWS ends may take; then it is switched off. AWS waits longer, a test should not.
const PATIENCE: Duration = Duration::from_secs(30);

/// Until a volume that is in use, or whose machine just dies, is looked at again.
const AGAIN: Duration = Duration::from_secs(1);

/// The result of an order that ended.
#[derive(Debug)]
pub enum FinishedOrder {
    Machine {
        instance: String,
        order: Order,
        reboots: u32,
        result: Result<()>,
    },
    Volume {
        volume: String,
        /// Size in GiB.
        size: u32,
        /// `None`: nothing came of it yet, it stays `attaching` or `detaching`.
        order: Option<VolumeOrder>,
    },
}

/// What is known of all machines and volumes.
pub struct HostOrders {
    place: LabPaths,
    ledger: Arc<Ledger>,
    images: Images,
    told: UnboundedSender<FinishedOrder>,
    machines: BTreeMap<String, HostStatus>,
    /// Attachments by volume id.
    attached: BTreeMap<String, VolumeAttachment>,
    /// Ids of instances and volumes with work going.
    busy: BTreeSet<String>,
}

impl HostOrders {
    pub fn new(
        place: &LabPaths,
        ledger: &Arc<Ledger>,
        images: Images,
        told: UnboundedSender<FinishedOrder>,
    ) -> Self {
        Self {
            place: place.clone(),
            ledger: Arc::clone(ledger),
            images,
            told,
            machines: BTreeMap::new(),
            attached: BTreeMap::new(),
            busy: BTreeSet::new(),
        }
    }

    /// Begins what the world asks for and is not going yet; what needs no work is in the report.
    pub fn begin_orders(&mut self, world: &AwsState) -> HostReport {
        let mut report = HostReport::default();
        for instance in &world.instances {
            if self.busy.contains(&instance.id) {
                continue;
            }
            let now = self.machines.get(&instance.id).copied();
            match orders::next_host_order(instance, now) {
                None => {}
                // Never booted: there is nothing to switch off.
                Some(Order::Stop) if now.is_none() => {
                    report
                        .instances
                        .insert(instance.id.clone(), InstanceState::Stopped);
                }
                Some(order) => self.begin_host_order(instance, order),
            }
        }
        for volume in &world.volumes {
            if !self.busy.contains(&volume.id) {
                self.begin_volume_order(volume);
            }
        }
        report
    }

    fn begin_host_order(&mut self, instance: &Instance, order: Order) {
        tracing::info!(instance = instance.id, ?order, "begin");
        self.busy.insert(instance.id.clone());
        let (place, ledger) = (self.place.clone(), Arc::clone(&self.ledger));
        let (images, told) = (self.images.clone(), self.told.clone());
        let (id, reboots) = (instance.id.clone(), instance.reboots);
        let spec = HostSpec {
            instance: id.clone(),
            instance_type: instance.instance_type.clone(),
            image: instance.image.clone(),
            mac: instance.mac.clone(),
        };
        tokio::task::spawn_blocking(move || {
            let result = match order {
                Order::Boot => host::boot_host(&place, &ledger, &images, &spec).map(drop),
                Order::Start => host::start_host(&place, &ledger, &id).map(drop),
                Order::Reboot => host::reboot_host(&place, &ledger, &id, PATIENCE),
                Order::Stop => host::stop_host(&place, &id, PATIENCE),
                Order::Terminate => host::terminate_host(&place, &id, PATIENCE)
                    .and_then(|()| detach_host(&place, &id).map_err(Into::into)),
            };
            // Nobody listens when the daemon ends.
            let _ = told.send(FinishedOrder::Machine {
                instance: id,
                order,
                reboots,
                result,
            });
        });
    }

    fn begin_volume_order(&mut self, volume: &Volume) {
        let attached = self.attached.get(&volume.id);
        let is_on = |instance: &str| {
            !self.busy.contains(instance)
                && self
                    .machines
                    .get(instance)
                    .is_some_and(|machine| machine.on)
        };
        let Some(order) = orders::next_volume_order(volume, attached, is_on) else {
            return;
        };
        tracing::info!(volume = volume.id, ?order, "begin");
        self.busy.insert(volume.id.clone());
        let (place, ledger) = (self.place.clone(), Arc::clone(&self.ledger));
        let (told, id, size) = (self.told.clone(), volume.id.clone(), volume.size);
        tokio::task::spawn_blocking(move || {
            let done = change_volume(&place, &ledger, &id, size, &order).unwrap_or_else(|error| {
                // A machine can die at any moment; to AWS a volume of such a machine just takes longer.
                tracing::warn!(volume = id, ?order, "not yet: {error:#}");
                false
            });
            if !done {
                std::thread::sleep(AGAIN);
            }
            let _ = told.send(FinishedOrder::Volume {
                volume: id,
                size,
                order: done.then_some(order),
            });
        });
    }

    /// Takes note of work that ended; what AWS is to be told.
    pub fn finish_order(&mut self, done: FinishedOrder) -> Result<HostReport> {
        let mut report = HostReport::default();
        match done {
            FinishedOrder::Machine {
                instance,
                order,
                reboots,
                result,
            } => {
                result.with_context(|| format!("{order:?} of {instance}"))?;
                tracing::info!(instance, ?order, "done");
                self.busy.remove(&instance);
                let told = match order {
                    Order::Boot | Order::Start | Order::Reboot => InstanceState::Running,
                    Order::Stop => InstanceState::Stopped,
                    Order::Terminate => InstanceState::Terminated,
                };
                let on = told == InstanceState::Running;
                if told == InstanceState::Terminated {
                    self.machines.remove(&instance);
                    self.attached.retain(|_, to| to.instance != instance);
                } else {
                    self.machines
                        .insert(instance.clone(), HostStatus { on, reboots });
                }
                report.instances.insert(instance, told);
            }
            FinishedOrder::Volume {
                volume,
                size,
                order,
            } => {
                self.busy.remove(&volume);
                if order.is_some() {
                    tracing::info!(volume, ?order, "done");
                }
                match order {
                    Some(VolumeOrder::Attach { instance, .. }) => {
                        let attached = VolumeAttachment { instance, size };
                        self.attached.insert(volume.clone(), attached);
                        report.volumes.insert(volume, "attached".to_owned());
                    }
                    Some(VolumeOrder::Grow { instance, .. }) => {
                        self.attached
                            .insert(volume, VolumeAttachment { instance, size });
                    }
                    Some(VolumeOrder::Detach { .. }) => {
                        self.attached.remove(&volume);
                        report.volumes.insert(volume, "detached".to_owned());
                    }
                    None => {}
                }
            }
        }
        Ok(report)
    }

    /// Machines that switched themselves off, which AWS sees as stopped. A crash it does not see.
    pub fn switched_off(&mut self) -> Result<HostReport> {
        let mut report = HostReport::default();
        let busy = &self.busy;
        for (instance, machine) in &mut self.machines {
            if !machine.on || busy.contains(instance) {
                continue;
            }
            let host = Host::read_host(&self.place, instance)?;
            if host.end_state(&self.place)? == Some(HostState::Off) {
                machine.on = false;
                report
                    .instances
                    .insert(instance.clone(), InstanceState::Stopped);
            }
        }
        Ok(report)
    }

    /// The consoles of all machines, whole.
    pub fn read_consoles(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let ids = self.machines.keys().filter(|id| !self.busy.contains(*id));
        ids.map(|id| Ok((id.clone(), host::read_console(&self.place, id)?)))
            .collect()
    }
}

/// Attaches, detaches or lets grow; whether that is done. What is in use stays, as on AWS, until nobody in the machine uses it.
fn change_volume(
    place: &LabPaths,
    ledger: &Ledger,
    volume: &str,
    size: u32,
    order: &VolumeOrder,
) -> Result<bool> {
    match order {
        VolumeOrder::Attach { instance, device } | VolumeOrder::Grow { instance, device } => {
            if matches!(order, VolumeOrder::Attach { .. }) {
                std::thread::sleep(host::attachment_delay(place)?);
            }
            let spec = VolumeSpec {
                id: volume.to_owned(),
                size,
                device: device.clone(),
            };
            host::attach_volume(place, ledger, instance, &spec)?;
            Ok(true)
        }
        VolumeOrder::Detach { instance } => {
            let detached = host::detach_volume(place, instance, volume, false)?;
            Ok(detached == DetachResult::Done)
        }
    }
}
