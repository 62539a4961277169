//! The lab's network as its users meet it: what reaches what, and what does not. Root only; says so when skipped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test"
)]

#[path = "network/bench.rs"]
mod bench;
#[path = "network/worlds.rs"]
mod worlds;

use bench::{Bench, possible, says};
use worlds::{A, B, C, D, world};

#[test]
fn a_security_group_decides_who_reaches_a_host() {
    if !possible("a_security_group_decides_who_reaches_a_host") {
        return;
    }
    let bench = Bench::new("net-groups", world());
    bench.serve(A, "0.0.0.0:8080", "a");
    bench.serve(A, "0.0.0.0:8081", "a");
    bench.serve(A, "0.0.0.0:9095", "a");
    // A peer group's member, from the port on; across zones a range; members of one group among themselves.
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
    assert_eq!(bench.ask(B, "10.1.1.11:9095"), says("a", "10.1.1.12"));
    assert_eq!(bench.ask(C, "10.1.1.11:8081"), says("a", "10.1.2.13"));
    // A port that nobody opened is silent, whether something listens or not.
    bench.dropped(B, "10.1.1.11:8081");
    bench.dropped(B, "10.1.1.11:22");
    let _ = D;
}
