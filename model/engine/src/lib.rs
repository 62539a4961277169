//! The engine: desired state and observed state in, a plan out, the plan applied step by step.
//! It knows nothing of AWS or of hosts; both are a [`World`] of some kind of [`Resource`].

mod apply;
mod check;
mod decide;
mod diff;
mod duplicates;
mod event;
mod failure;
mod options;
mod order;
mod plan;
mod plan_differences;
mod planner;
mod queue;
mod resource;
mod settle;
mod snapshot;
mod text;
mod work;
mod world;

pub use apply::{Report, apply};
pub use diff::changes;
pub use event::Event;
pub use failure::{Class, Failure, error_chain};
pub use options::{EngineContext, Options};
pub use plan::{Action, FORMAT, FieldChange, Kept, Plan, PlanError, Reason, Step, Why};
pub use plan_differences::{PlanDifference, plan_differences};
pub use planner::plan;
pub use resource::{Id, Ref, Resource};
pub use settle::observe_settled;
pub use snapshot::{Attrs, Observed, Snapshot};
pub use text::{Part, Text, shared_text};
pub use world::{Clock, Journal, NoJournal, Noted, Put, Refs, Removed, World};
