//! A control plane loses its network: writes continue without it, and it recovers when the network is back.

use super::super::{PATIENCE, cluster};
use anyhow::{Context, Result, ensure};
use lab::network::faults::Partition;
use lab::scenario::{Lab, Writers};

pub fn cut_off_one(lab: &mut Lab, writers: &Writers) -> Result<()> {
    let host = cluster::control_plane(lab, 0)?.id;
    lab.partition_host(&Partition::Host(host.clone()))?;
    writers.goes_on(lab, PATIENCE)?;
    lab.wait_until("its Node is not Ready", PATIENCE, |lab| {
        let node = lab.get_objects(&["node", &host])?;
        let conditions = node["status"]["conditions"].as_array();
        let mut conditions = conditions.context("conditions")?.iter();
        let ready = conditions.find(|one| one["type"] == "Ready");
        let ready = ready.context("nothing is said of Ready")?;
        ensure!(ready["status"] != "True", "{ready}");
        Ok(())
    })?;
    lab.heal_host(&host)?;
    cluster::becomes_ready(lab, &host)?;
    writers.goes_on(lab, PATIENCE)?;
    cluster::expect_healthy(lab)
}
