//! The rules of a rolling update: which instances are replaced, in which order and how many at a time, what each waits
//! for, and what stops it. Plain data and pure functions: [`decide`] is asked again after every observation, so a
//! rolling update that was interrupted goes on with the next one.

mod decide;
mod observe;
mod observed;
mod obstacles;
mod quorum;
mod record;
mod settings;
mod stop;

pub use decide::{Action, Decision, Progress, State, decide};
pub use observe::{
    ClusterState, EXCLUDED_BY, GroupLimits, NEEDS_UPDATE_ANNOTATION, Selection, TAINT, observe,
};
pub use observed::{
    Condition, Mark, Observed, RollingGroup, RollingInstance, RollingNode, Traffic, WarmInstance,
};
pub use obstacles::{Obstacle, find_obstacles};
pub use quorum::{EtcdCluster, EtcdMember, Refusal, Survival, find_hidden_problems, would_survive};
pub use record::Record;
pub use settings::{OnDrainTimeout, Settings, resolve_surge, resolve_unavailable};
pub use stop::Stop;
