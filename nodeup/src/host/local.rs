//! The instance as the engine's `World`. Each kind of object has a module that observes and changes it.

use super::failure::permanent_failure;
use super::observed::check_observed;
use super::{
    HostContext, certificate, download, file, hosts_block, image, kernel, keyset_file, packages,
    tools, units, volume,
};
use engine::{Attrs, Class, Failure, Observed, Put, Refs, Removed, Resource, Snapshot, World};
use node::host::{HostObject, HostResource};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// The instance. Only desired objects are observed.
#[derive(Clone)]
pub struct LocalHost {
    inner: Arc<LocalHostInner>,
}

struct LocalHostInner {
    desired: Vec<HostResource>,
    context: HostContext,
    /// Locked while a package tool runs.
    one_at_a_time: Mutex<()>,
}

impl std::fmt::Debug for LocalHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalHost")
            .field("context", &self.inner.context)
            .finish_non_exhaustive()
    }
}

impl LocalHost {
    /// An instance with this desired state.
    pub fn new(desired: Vec<HostResource>, context: HostContext) -> Self {
        Self {
            inner: Arc::new(LocalHostInner {
                desired,
                context,
                one_at_a_time: Mutex::new(()),
            }),
        }
    }

    /// Deletes the start records of these units, so that they are restarted even if nodeup dies now.
    pub(super) async fn forget_starts(&self, units: Vec<String>) -> Result<(), Failure> {
        self.run_blocking(move |inner| {
            units
                .iter()
                .try_for_each(|unit| units::forget_start(&inner.context.host, unit))
        })
        .await
    }

    /// Runs blocking work on a separate thread.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&LocalHostInner) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|error| {
            Err(permanent_failure(
                "running blocking work",
                &error.to_string(),
            ))
        })
    }
}

impl LocalHostInner {
    /// Observes all desired objects.
    fn observe_all(&self) -> Result<Snapshot<HostResource>, Failure> {
        let units = self
            .desired
            .iter()
            .filter_map(|resource| match &resource.thing {
                HostObject::Unit(unit) => Some(unit.name.as_str()),
                _ => None,
            });
        let states = units::read_states(&self.context.host, &units.collect::<Vec<_>>())?;
        let mut items = BTreeMap::new();
        for want in &self.desired {
            let seen = match self.observe_object(&want.thing, &states) {
                // Mounts must be known, because otherwise something could be mounted over them.
                Err(failure) if matches!(want.thing, HostObject::Mount(_)) => return Err(failure),
                // Other objects count as missing; writing them repairs them or reports the cause.
                Err(failure) => {
                    (self.context.note)(&format!("{}: {failure}", want.id()));
                    None
                }
                Ok(seen) => seen,
            };
            if let Some(thing) = seen {
                items.insert(want.id(), to_observed(want, thing));
            }
        }
        self.mark_restarts(&mut items);
        Ok(Snapshot {
            items: items.into_values().collect(),
        })
    }

    /// Observes one object; `None` if it does not exist.
    fn observe_object(
        &self,
        want: &HostObject,
        states: &BTreeMap<String, units::UnitState>,
    ) -> Result<Option<HostObject>, Failure> {
        let context = &self.context;
        let host = &context.host;
        Ok(match want {
            HostObject::Certificate(want) => {
                certificate::observe_certificate(host, context, want)?.map(HostObject::Certificate)
            }
            HostObject::Directory(want) => {
                file::observe_folder(host, want)?.map(HostObject::Directory)
            }
            HostObject::Download(want) => {
                download::observe_download(host, want)?.map(HostObject::Download)
            }
            HostObject::File(want) => file::observe_file(host, want)?.map(HostObject::File),
            HostObject::HostsBlock(want) => {
                hosts_block::observe_hosts_block(host, want)?.map(HostObject::HostsBlock)
            }
            HostObject::Image(want) => image::observe_image(host, want)?.map(HostObject::Image),
            HostObject::KernelModule(want) => {
                kernel::observe_module(host, want).map(HostObject::KernelModule)
            }
            HostObject::KeysetFile(want) => {
                keyset_file::observe_keyset_file(host, &context.signer, want)?
                    .map(HostObject::KeysetFile)
            }
            HostObject::Link(want) => file::observe_link(host, want)?.map(HostObject::Link),
            HostObject::Mount(want) => volume::observe_mount(host, want)?.map(HostObject::Mount),
            HostObject::Packages(want) => {
                packages::observe_packages(host, want)?.map(HostObject::Packages)
            }
            HostObject::Propagation(want) => {
                kernel::observe_propagation(host, want)?.map(HostObject::Propagation)
            }
            HostObject::Sysctl(want) => kernel::observe_sysctl(host, want)?.map(HostObject::Sysctl),
            HostObject::Tools(want) => tools::observe_tools(host, want)?.map(HostObject::Tools),
            HostObject::Unit(want) => {
                let state = states.get(&want.name).cloned().unwrap_or_default();
                units::observe_unit(host, want, &state)?.map(HostObject::Unit)
            }
        })
    }

    /// Marks units for a restart that depend on an object which is not as desired.
    fn mark_restarts(&self, items: &mut BTreeMap<engine::Id, Observed<HostResource>>) {
        let differs: BTreeSet<_> = self
            .desired
            .iter()
            .filter(|want| want.thing.is_read_at_start())
            .filter(|want| {
                items
                    .get(&want.id())
                    .is_none_or(|have| have.resource != **want)
            })
            .map(Resource::id)
            .collect();
        for have in items.values_mut() {
            let follows = have
                .resource
                .needs
                .iter()
                .any(|need| differs.contains(need));
            if let HostObject::Unit(unit) = &mut have.resource.thing
                && follows
            {
                unit.starts_with.clear();
            }
        }
    }

    /// Observes one object of the desired state.
    fn observe_one(&self, want: &HostObject) -> Result<Option<HostObject>, Failure> {
        let states = match want {
            HostObject::Unit(unit) => units::read_states(&self.context.host, &[&unit.name])?,
            _ => BTreeMap::new(),
        };
        self.observe_object(want, &states)
    }

    /// The result of a change: an object that is usable must be observed as desired.
    fn finish_change(
        &self,
        want: &HostResource,
        waiting_for: Option<String>,
    ) -> Result<Put, Failure> {
        if waiting_for.is_none() {
            check_observed(&want.thing, self.observe_one(&want.thing)?)?;
        }
        Ok(to_put(want, waiting_for))
    }

    /// Changes one object. Returns what is being waited for, if it is not usable yet.
    fn put_object(
        &self,
        want: &HostObject,
        have: Option<&HostObject>,
    ) -> Result<Option<String>, Failure> {
        let context = &self.context;
        let host = &context.host;
        match want {
            HostObject::Certificate(want) => {
                let have = match have {
                    Some(HostObject::Certificate(have)) => Some(have),
                    _ => None,
                };
                certificate::put_certificate(host, context, want, have)?;
            }
            HostObject::Directory(want) => file::put_folder(host, want)?,
            HostObject::Download(want) => download::put_download(host, &context.cache, want)?,
            HostObject::File(want) => file::put_file(host, want)?,
            HostObject::HostsBlock(want) => hosts_block::put_hosts_block(host, want)?,
            HostObject::Image(want) => image::put_image(host, &context.cache, want)?,
            HostObject::KernelModule(want) => kernel::load_module(host, want)?,
            HostObject::KeysetFile(want) => {
                keyset_file::put_keyset_file(host, &context.signer, want)?;
            }
            HostObject::Link(want) => file::put_link(host, want)?,
            HostObject::Mount(want) => {
                let have = match have {
                    Some(HostObject::Mount(have)) => Some(have),
                    _ => None,
                };
                volume::put_mount(host, want, have)?;
            }
            HostObject::Packages(want) => {
                packages::install_packages(host, &self.one_at_a_time, want)?;
            }
            HostObject::Propagation(want) => kernel::put_propagation(host, want)?,
            HostObject::Sysctl(want) => kernel::put_sysctl(host, want, &*context.note)?,
            HostObject::Tools(want) => tools::put_tools(host, want)?,
            HostObject::Unit(want) => {
                let have = match have {
                    Some(HostObject::Unit(have)) => Some(have),
                    _ => None,
                };
                return units::put_unit(host, want, have);
            }
        }
        Ok(None)
    }
}

fn to_observed(want: &HostResource, thing: HostObject) -> Observed<HostResource> {
    Observed {
        physical: want.id().to_string(),
        resource: HostResource {
            thing,
            needs: want.needs.clone(),
        },
        attrs: Attrs::new(),
        created: None,
        uses: BTreeSet::new(),
        in_use: false,
    }
}

fn to_put(want: &HostResource, waiting_for: Option<String>) -> Put {
    Put {
        physical: want.id().to_string(),
        attrs: Attrs::new(),
        waiting_for,
    }
}

impl World<HostResource> for LocalHost {
    async fn observe(&self) -> Result<Snapshot<HostResource>, Failure> {
        self.run_blocking(LocalHostInner::observe_all).await
    }

    async fn find(
        &self,
        want: &HostResource,
        _refs: &Refs,
    ) -> Result<Option<Observed<HostResource>>, Failure> {
        let want = want.clone();
        self.run_blocking(move |inner| {
            let thing = inner.observe_one(&want.thing)?;
            Ok(thing.map(|thing| to_observed(&want, thing)))
        })
        .await
    }

    async fn put(
        &self,
        want: &HostResource,
        have: Option<&Observed<HostResource>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        let (want, have) = (want.clone(), have.map(|have| have.resource.thing.clone()));
        self.run_blocking(move |inner| {
            let waiting_for = inner.put_object(&want.thing, have.as_ref())?;
            inner.finish_change(&want, waiting_for)
        })
        .await
    }

    async fn remove(&self, have: &Observed<HostResource>) -> Result<Removed, Failure> {
        Err(never_removed(have))
    }

    async fn ready(&self, want: &HostResource, _physical: &str) -> Result<Put, Failure> {
        let want = want.clone();
        self.run_blocking(move |inner| {
            let waiting_for = match &want.thing {
                HostObject::Unit(unit) => units::check_started(&inner.context.host, unit)?,
                _ => None,
            };
            inner.finish_change(&want, waiting_for)
        })
        .await
    }

    async fn gone(&self, have: &Observed<HostResource>) -> Result<Removed, Failure> {
        Err(never_removed(have))
    }
}

/// Nothing is ever removed from an instance. Only desired objects are observed, so no plan contains a removal.
fn never_removed(have: &Observed<HostResource>) -> Failure {
    Failure {
        class: Class::Denied,
        ..permanent_failure(
            &format!("removing {}", have.physical),
            "nothing is removed from an instance; it changes by being replaced",
        )
    }
}
