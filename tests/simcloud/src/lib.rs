//! A cloud in memory with AWS' rules and AWS' faults, virtual time, and a judge who knows the truth.
//! The planner and the apply loop under test are the real ones. Everything follows from a seed.

mod clock;
mod cloud;
mod faults;
mod journal;
mod judge;
mod rules;
mod run;
mod shape;
mod state;
mod verbs;
mod world;

pub use clock::{SimClock, block_on};
pub use cloud::SimCloud;
pub use faults::{Faults, Kill, Rng};
pub use judge::{StateDifference, judge_state};
pub use run::{
    ConvergeResult, RunEnd, carry_out, observe_cloud, run_until_converged, run_update, settle_reads,
};
pub use shape::{ClusterShape, cluster_history};
pub use state::{Body, Object, ReadScope, State};
