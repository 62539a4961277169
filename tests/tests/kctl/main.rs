//! The real `kctl` against the AWS simulator, as an operator would run it. Needs the binary: `make test` builds it
//! first; by hand, `cargo build --bin kctl`.

mod kctl;
mod kills;
mod life;
#[path = "../wire/simulator.rs"]
#[expect(dead_code, reason = "the wire tests use more of it")]
mod simulator;
