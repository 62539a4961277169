//! What the tests share: the simulated cloud.

pub mod sim;
