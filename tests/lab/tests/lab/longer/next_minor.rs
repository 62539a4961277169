//! Kubernetes goes to the next minor, and with it etcd to its next minor, while clients write.

use super::super::etcd;
use super::etcd_upgraded::{expect_data_of_before, expect_version};
use super::upgraded::Upgrade;
use anyhow::Result;
use lab::scenario::Lab;

const UPGRADE: Upgrade = Upgrade {
    from: "1.36.3",
    to: "1.37.2",
    control_planes: 3,
};

/// The etcd that goes with the new version; 3.6.12 goes with the old one.
const NEW_ETCD: &str = "3.7.2";

pub fn run(lab: &mut Lab) -> Result<()> {
    UPGRADE.run(lab)?;
    lab.run_step(
        "every member runs the new etcd and reports no problem",
        |lab| {
            etcd::expect_reported(lab)?;
            etcd::expect_three_voters(lab)?;
            expect_version(lab, NEW_ETCD)
        },
    )?;
    lab.run_step("each volume has the data of before", |lab| {
        expect_data_of_before(lab, NEW_ETCD)
    })
}
