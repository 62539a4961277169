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
pub use judge::{Truth, judge};
pub use run::{Converged, End, carry_out, converge, look, settle_reads, update};
pub use shape::{Shape, history};
pub use state::{Body, Object, Read, State};
