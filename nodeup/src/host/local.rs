//! The machine as the engine's world: each kind of thing has a module that looks at it and one that changes it.

use super::failure::invalid;
use super::{
    Context, certificate, download, file, hosts_block, kernel, keyset_file, packages, tools, units,
    volume,
};
use engine::{Attrs, Class, Failure, Observed, Put, Refs, Removed, Resource, Snapshot, World};
use node::host::{HostResource, Thing};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// The machine, seen through what is wanted of it: it knows nothing of anything else.
#[derive(Clone)]
pub struct LocalHost {
    inner: Arc<Inner>,
}

struct Inner {
    desired: Vec<HostResource>,
    context: Context,
    /// Held while a package tool runs.
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
    /// The machine that is to have these.
    pub fn new(desired: Vec<HostResource>, context: Context) -> Self {
        Self {
            inner: Arc::new(Inner {
                desired,
                context,
                one_at_a_time: Mutex::new(()),
            }),
        }
    }

    /// Forgets what these units were started with, so that whatever happens from now on they are started again.
    pub(super) async fn forget_starts(&self, units: Vec<String>) -> Result<(), Failure> {
        self.blocking(move |inner| {
            units
                .iter()
                .try_for_each(|unit| units::forget(&inner.context.host, unit))
        })
        .await
    }

    /// Files and programs block: they have threads of their own.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|error| Err(invalid("working on the machine", &error.to_string())))
    }
}

impl Inner {
    /// One look at everything.
    fn observe(&self) -> Result<Snapshot<HostResource>, Failure> {
        let units = self
            .desired
            .iter()
            .filter_map(|resource| match &resource.thing {
                Thing::Unit(unit) => Some(unit.name.as_str()),
                _ => None,
            });
        let states = units::states(&self.context.host, &units.collect::<Vec<_>>())?;
        let mut items = BTreeMap::new();
        for want in &self.desired {
            let seen = match self.look(&want.thing, &states) {
                // What is mounted must be known before anything is mounted over it.
                Err(failure) if matches!(want.thing, Thing::Mount(_)) => return Err(failure),
                // The rest is made anew, which mends it or says what is in the way.
                Err(failure) => {
                    (self.context.tell)(&format!("{}: {failure}", want.id()));
                    None
                }
                Ok(seen) => seen,
            };
            if let Some(thing) = seen {
                items.insert(want.id(), observed(want, thing));
            }
        }
        self.see_what_units_follow(&mut items);
        Ok(Snapshot {
            items: items.into_values().collect(),
        })
    }

    /// One thing as it is; `None`: it is not there.
    fn look(
        &self,
        want: &Thing,
        states: &BTreeMap<String, units::State>,
    ) -> Result<Option<Thing>, Failure> {
        let context = &self.context;
        let host = &context.host;
        Ok(match want {
            Thing::Certificate(want) => {
                certificate::observe(host, context, want)?.map(Thing::Certificate)
            }
            Thing::Directory(want) => file::observe_folder(host, want)?.map(Thing::Directory),
            Thing::Download(want) => download::observe(host, want)?.map(Thing::Download),
            Thing::File(want) => file::observe(host, want)?.map(Thing::File),
            Thing::HostsBlock(want) => hosts_block::observe(host, want)?.map(Thing::HostsBlock),
            Thing::KernelModule(want) => {
                kernel::observe_module(host, want).map(Thing::KernelModule)
            }
            Thing::KeysetFile(want) => {
                keyset_file::observe(host, &context.signer, want)?.map(Thing::KeysetFile)
            }
            Thing::Link(want) => file::observe_link(host, want)?.map(Thing::Link),
            Thing::Mount(want) => volume::observe(host, want)?.map(Thing::Mount),
            Thing::Packages(want) => packages::observe(host, want)?.map(Thing::Packages),
            Thing::Propagation(want) => {
                kernel::observe_propagation(host, want)?.map(Thing::Propagation)
            }
            Thing::Sysctl(want) => kernel::observe_sysctl(host, want)?.map(Thing::Sysctl),
            Thing::Tools(want) => tools::observe(host, want)?.map(Thing::Tools),
            Thing::Unit(want) => {
                let state = states.get(&want.name).cloned().unwrap_or_default();
                units::observe(host, want, &state)?.map(Thing::Unit)
            }
        })
    }

    /// A unit that runs with something that is not as wanted any more has to be started again once that is mended.
    fn see_what_units_follow(&self, items: &mut BTreeMap<engine::Id, Observed<HostResource>>) {
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
            if let Thing::Unit(unit) = &mut have.resource.thing
                && follows
            {
                unit.starts_with.clear();
            }
        }
    }

    /// Makes one thing as wanted. What is being waited for, if it is not usable yet.
    fn put(&self, want: &Thing, have: Option<&Thing>) -> Result<Option<String>, Failure> {
        let context = &self.context;
        let host = &context.host;
        match want {
            Thing::Certificate(want) => {
                let have = match have {
                    Some(Thing::Certificate(have)) => Some(have),
                    _ => None,
                };
                certificate::put(host, context, want, have)?;
            }
            Thing::Directory(want) => file::put_folder(host, want)?,
            Thing::Download(want) => download::put(host, &context.cache, want)?,
            Thing::File(want) => file::put(host, want)?,
            Thing::HostsBlock(want) => hosts_block::put(host, want)?,
            Thing::KernelModule(want) => kernel::load(host, want)?,
            Thing::KeysetFile(want) => keyset_file::put(host, &context.signer, want)?,
            Thing::Link(want) => file::put_link(host, want)?,
            Thing::Mount(want) => {
                let have = match have {
                    Some(Thing::Mount(have)) => Some(have),
                    _ => None,
                };
                volume::put(host, want, have)?;
            }
            Thing::Packages(want) => packages::install(host, &self.one_at_a_time, want)?,
            Thing::Propagation(want) => kernel::share(host, want)?,
            Thing::Sysctl(want) => kernel::put_sysctl(host, want, &*context.tell)?,
            Thing::Tools(want) => tools::put(host, want)?,
            Thing::Unit(want) => {
                let have = match have {
                    Some(Thing::Unit(have)) => Some(have),
                    _ => None,
                };
                return units::put(host, want, have);
            }
        }
        Ok(None)
    }
}

fn observed(want: &HostResource, thing: Thing) -> Observed<HostResource> {
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

fn put_as(want: &HostResource, waiting_for: Option<String>) -> Put {
    Put {
        physical: want.id().to_string(),
        attrs: Attrs::new(),
        waiting_for,
    }
}

impl World<HostResource> for LocalHost {
    async fn observe(&self) -> Result<Snapshot<HostResource>, Failure> {
        self.blocking(Inner::observe).await
    }

    async fn find(
        &self,
        want: &HostResource,
        _refs: &Refs,
    ) -> Result<Option<Observed<HostResource>>, Failure> {
        let want = want.clone();
        self.blocking(move |inner| {
            let states = match &want.thing {
                Thing::Unit(unit) => units::states(&inner.context.host, &[&unit.name])?,
                _ => BTreeMap::new(),
            };
            let thing = inner.look(&want.thing, &states)?;
            Ok(thing.map(|thing| observed(&want, thing)))
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
        self.blocking(move |inner| {
            let waiting_for = inner.put(&want.thing, have.as_ref())?;
            Ok(put_as(&want, waiting_for))
        })
        .await
    }

    async fn remove(&self, have: &Observed<HostResource>) -> Result<Removed, Failure> {
        Err(never_removed(have))
    }

    async fn ready(&self, want: &HostResource, _physical: &str) -> Result<Put, Failure> {
        let want = want.clone();
        self.blocking(move |inner| {
            let waiting_for = match &want.thing {
                Thing::Unit(unit) => units::came_up(&inner.context.host, unit)?,
                _ => None,
            };
            Ok(put_as(&want, waiting_for))
        })
        .await
    }

    async fn gone(&self, have: &Observed<HostResource>) -> Result<Removed, Failure> {
        Err(never_removed(have))
    }
}

/// Nothing is ever taken off a machine: what is not wanted is not looked at, so that no plan can say so.
fn never_removed(have: &Observed<HostResource>) -> Failure {
    Failure {
        class: Class::Denied,
        ..invalid(
            &format!("removing {}", have.physical),
            "machines change by being replaced",
        )
    }
}
