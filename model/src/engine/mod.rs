//! The engine: desired state and observed state in, a plan out, the plan applied step by step.
//! It knows nothing of AWS or of hosts; both are a [`World`] of some kind of [`Resource`].

mod event;
mod failure;
mod plan;
mod resource;
mod snapshot;
mod text;
mod world;

pub use event::Event;
pub use failure::{Class, Failure};
pub use plan::{Action, FieldChange, Plan, Reason, Step};
pub use resource::{Id, Ref, Resource};
pub use snapshot::{Attrs, Observed, Snapshot};
pub use text::{Part, Text};
pub use world::{Clock, Journal, Put, Refs, Removed, World};
