//! Volumes of etcd that are gone while the record says that they have the data: `kctl update` makes empty ones, also if nobody else has the
//! data, and says how it comes back. What protokube does on them is tested in `protokube/tests/roles/snapshot_restore.rs`.

use crate::etcd_removal::{volume_ids, write_record};
use crate::kctl::Kctl;
use crate::scenario::{NAME, REGION, kctl_with_cloud};
use crate::simulator::Simulator;
use etcd_rules::{FormationRecord, Generation, RecordedMember};

/// A cluster with control planes in these zones, whose machines the simulator does not run.
fn new_cluster(simulator: &Simulator, zones: &str) -> Kctl {
    let kctl = kctl_with_cloud(simulator);
    let words = ["--zones", zones, "--control-plane-zones", zones, "--yes"];
    kctl.run(&[&["create", "cluster", NAME], &words[..]].concat())
        .expect_success();
    kctl
}

/// Records that etcd is formed with these members, of all that have volumes.
fn form_etcd(simulator: &Simulator, etcd: &str, members: &[&str]) {
    let volumes = volume_ids(simulator);
    let member = |name: &&str| {
        let volume = &volumes[&format!("{name}.etcd-{etcd}.{NAME}")];
        let recorded = RecordedMember {
            member_id: Some(format!("1{name}")),
            ..RecordedMember::on_volume(volume, true)
        };
        ((*name).to_owned(), recorded)
    };
    let members = members.iter().map(member).collect();
    let record = FormationRecord::new(Generation::formed("c1", "t1"), members);
    write_record(simulator, etcd, &record);
}

fn delete_volume(simulator: &Simulator, volume: &str) {
    let code = format!("boto('ec2').delete_volume(VolumeId='{volume}')");
    simulator.run_python(REGION, &code);
}

fn expect_new_volume(kctl: &Kctl, simulator: &Simulator, etcd: &str, way: &str) {
    let name = format!("a.etcd-{etcd}.{NAME}");
    let lost = volume_ids(simulator)[&name].clone();
    delete_volume(simulator, &lost);
    let shown = kctl.run(&["update"]);
    for part in [lost.as_str(), "is empty", way] {
        assert!(shown.err.contains(part), "{part}: {}", shown.all_output());
    }
    let plan = shown.expect_success();
    assert!(plan.contains(&format!("+ ebs_volume/{name}")), "{plan}");
    kctl.run(&["update", "--yes"]).expect_success();
    let new = volume_ids(simulator);
    assert_ne!(new[&name], lost);
    // Until protokube has taken it, the record names the old one, and no other change is held up.
    let again = kctl.run(&["update"]);
    let said = again.all_output();
    assert!(
        said.contains("No changes.") && !said.contains("is empty"),
        "{said}"
    );
}

#[test]
fn a_lone_members_volume_that_is_gone_is_made_again() {
    let simulator = Simulator::start_simulator();
    let kctl = new_cluster(&simulator, "eu-west-1a");
    let restore = format!("kctl etcd restore {NAME} --etcd main --latest");
    form_etcd(&simulator, "main", &["a"]);
    form_etcd(&simulator, "events", &["a"]);
    expect_new_volume(&kctl, &simulator, "main", &restore);
    let forget = format!("kctl etcd forget {NAME} --etcd events --all");
    expect_new_volume(&kctl, &simulator, "events", &forget);
}

/// After a restore one member is recorded, until the others have joined.
#[test]
fn the_volume_of_the_only_recorded_member_of_three_is_made_again() {
    let simulator = Simulator::start_simulator();
    let kctl = new_cluster(&simulator, "eu-west-1a,eu-west-1b,eu-west-1c");
    form_etcd(&simulator, "main", &["a"]);
    let restore = format!("kctl etcd restore {NAME} --etcd main --latest");
    expect_new_volume(&kctl, &simulator, "main", &restore);
}
