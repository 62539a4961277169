//! The engine: desired state and observed state in, a plan out, the plan applied step by step.
//! It knows nothing of AWS or of hosts; both are a [`World`] of some kind of [`Resource`].

mod check;
mod diff;
mod duplicates;
mod event;
mod failure;
mod order;
mod plan;
mod planner;
mod resource;
mod snapshot;
mod text;
mod world;

pub use event::Event;
pub use failure::{Class, Failure};
pub use plan::{Action, FORMAT, FieldChange, Plan, PlanError, Reason, Step};
pub use planner::plan;
pub use resource::{Id, Ref, Resource};
pub use snapshot::{Attrs, Observed, Snapshot};
pub use text::{Part, Text};
pub use world::{Clock, Journal, Put, Refs, Removed, World};
