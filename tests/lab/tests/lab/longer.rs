//! Longer scenarios with one control plane and two workers: certificate renewal, hosted zones, figures. `make soak` and `make bench`
//! run them.

mod figures;
mod renewals;
mod zone;

use super::run_steps;
use anyhow::Result;

#[test]
#[ignore = "prints figures: make bench"]
fn figures() -> Result<()> {
    run_steps("figures", "t-joining", &figures::STEPS)
}

#[test]
#[ignore = "twenty minutes, mostly waiting: make soak"]
fn kubelets_renew_their_certificates() -> Result<()> {
    run_steps(
        "kubelets_renew_their_certificates",
        "t-renewals",
        &renewals::STEPS,
    )
}

#[test]
#[ignore = "four minutes: make soak"]
fn names_and_routes_follow_machines() -> Result<()> {
    run_steps("names_and_routes_follow_machines", "t-zone", &zone::STEPS)
}

#[test]
#[ignore = "two minutes: make soak"]
fn names_may_be_private() -> Result<()> {
    run_steps("names_may_be_private", "t-private", &zone::PRIVATE_STEPS)
}
