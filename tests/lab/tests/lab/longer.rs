//! Longer scenarios with one control plane and two workers: certificate renewal, hosted zones, figures. `make soak` and `make bench`
//! run them.

mod figures;
mod renewals;
mod rolled;
mod zone;

use super::{run_steps, start_lab};
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
#[ignore = "ten minutes: make soak"]
fn a_rolling_update_replaces_every_instance() -> Result<()> {
    let test = "a_rolling_update_replaces_every_instance";
    let Some(mut lab) = start_lab(test, "t-rolled", 8)? else {
        return Ok(());
    };
    rolled::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "two minutes: make soak"]
fn names_may_be_private() -> Result<()> {
    run_steps("names_may_be_private", "t-private", &zone::PRIVATE_STEPS)
}
