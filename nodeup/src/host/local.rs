//! The machine as the engine's world.

use super::Context;
use model::engine::{Class, Failure, Observed, Put, Refs, Removed, Snapshot, World};
use model::host::HostResource;
use std::sync::Arc;

/// The machine, seen through what is wanted of it: it knows nothing of anything else.
#[derive(Clone, Debug)]
pub struct LocalHost {
    desired: Arc<Vec<HostResource>>,
    context: Arc<Context>,
}

impl LocalHost {
    /// The machine that is to have these.
    pub fn new(desired: Vec<HostResource>, context: Context) -> Self {
        Self {
            desired: Arc::new(desired),
            context: Arc::new(context),
        }
    }
}

fn not_yet() -> Failure {
    Failure {
        class: Class::Invalid,
        call: "changing the machine".to_owned(),
        code: String::new(),
        message: "not there yet".to_owned(),
        hint: None,
        request_id: None,
    }
}

impl World<HostResource> for LocalHost {
    async fn observe(&self) -> Result<Snapshot<HostResource>, Failure> {
        let _ = (&self.desired, &self.context);
        Err(not_yet())
    }

    async fn find(
        &self,
        _want: &HostResource,
        _refs: &Refs,
    ) -> Result<Option<Observed<HostResource>>, Failure> {
        Err(not_yet())
    }

    async fn put(
        &self,
        _want: &HostResource,
        _have: Option<&Observed<HostResource>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        Err(not_yet())
    }

    async fn remove(&self, _have: &Observed<HostResource>) -> Result<Removed, Failure> {
        Err(not_yet())
    }

    async fn ready(&self, _want: &HostResource, _physical: &str) -> Result<Put, Failure> {
        Err(not_yet())
    }

    async fn gone(&self, _have: &Observed<HostResource>) -> Result<Removed, Failure> {
        Err(not_yet())
    }
}
