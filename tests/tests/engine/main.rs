//! What the engine promises, against the simulated cloud. The planner and the apply loop are the real ones.

mod applying;
mod killing;
mod planning;
mod strategies;
