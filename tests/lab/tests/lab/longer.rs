//! Scenarios of a cluster's life beside its faults: rolling updates, upgrades, certificate renewal, hosted zones, figures. `make soak`
//! and `make bench` run those that `make test` does not.

mod air_gap;
mod api_proxy;
mod backup_figures;
mod backups_stopped;
mod charts;
mod cilium;
mod cis;
mod conformance;
mod damaged;
mod denied;
mod etcd_upgraded;
mod figures;
mod grown;
mod identities;
mod in_use;
mod ipv6;
mod keys;
mod latest;
mod machines;
mod metrics;
mod next_minor;
mod old_record;
mod own_authority;
mod preflight;
mod renewals;
mod restored;
mod restored_midway;
mod roles;
mod rolled;
mod snapshots_here;
mod store_lost;
mod taken_back;
mod upgraded;
mod volumes;
mod warm_pool;
mod zone;

use super::cluster::Network;
use super::faults::{Part, is_drawn};
use super::{run_steps, run_steps_with, start_lab, start_lab_with, wait_for_turn};
use anyhow::Result;
use lab::content::Versions;
use lab::host::Release;
use upgraded::Upgrade;

#[test]
#[ignore = "prints figures: make bench"]
fn figures() -> Result<()> {
    run_steps("figures", "t-joining", &figures::WITH_FLANNEL)
}

#[test]
#[ignore = "prints figures of a cluster with cilium, which has to be built: make bench"]
fn figures_with_cilium() -> Result<()> {
    let test = "figures_with_cilium";
    let steps = figures::WITH_CILIUM;
    run_steps_with(test, "t-cil-join", Versions::WithCilium, &steps)
}

#[test]
#[ignore = "prints figures, with 2 GB in etcd: make bench"]
fn figures_of_backups() -> Result<()> {
    let Some(mut lab) = start_lab("figures_of_backups", "t-backups", 5)? else {
        return Ok(());
    };
    backup_figures::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "prints figures beside those of nodes_watch_the_api_while_control_planes_die: make bench"]
fn figures_without_an_api_proxy() -> Result<()> {
    let Some(mut lab) = start_lab("figures_without_an_api_proxy", "t-no-proxy", 8)? else {
        return Ok(());
    };
    api_proxy::run(&mut lab, false)?;
    lab.take_down()
}

#[test]
#[ignore = "fifteen minutes: make soak"]
fn nodes_watch_the_api_while_control_planes_die() -> Result<()> {
    let test = "nodes_watch_the_api_while_control_planes_die";
    let Some(mut lab) = start_lab(test, "t-api-proxy", 8)? else {
        return Ok(());
    };
    api_proxy::run(&mut lab, true)?;
    lab.take_down()
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
#[ignore = "five minutes: make soak"]
fn a_cluster_of_the_cis_profile_is_born() -> Result<()> {
    run_steps("a_cluster_of_the_cis_profile_is_born", "t-cis", &cis::STEPS)
}

#[test]
#[ignore = "ten minutes: make soak"]
fn connections_between_nodes_are_tried() -> Result<()> {
    let test = "connections_between_nodes_are_tried";
    run_steps(test, "t-preflight", &preflight::STEPS)
}

#[test]
#[ignore = "five minutes: make soak"]
fn a_cluster_is_born_from_its_bundle() -> Result<()> {
    run_steps(
        "a_cluster_is_born_from_its_bundle",
        "t-air-gap",
        &air_gap::STEPS,
    )
}

#[test]
#[ignore = "four minutes: make soak"]
fn names_and_routes_follow_machines() -> Result<()> {
    run_steps("names_and_routes_follow_machines", "t-zone", &zone::STEPS)
}

#[test]
#[ignore = "ten minutes, and cilium has to be built: make soak"]
fn cilium_is_the_network() -> Result<()> {
    let test = "cilium_is_the_network";
    let steps = cilium::WITHOUT_KUBE_PROXY;
    run_steps_with(test, "t-cilium", Versions::WithCilium, &steps)
}

#[test]
#[ignore = "ten minutes, and cilium has to be built: make soak"]
fn cilium_works_beside_kube_proxy() -> Result<()> {
    let test = "cilium_works_beside_kube_proxy";
    let steps = cilium::BESIDE_KUBE_PROXY;
    run_steps_with(test, "t-cil-proxy", Versions::WithCilium, &steps)
}

#[test]
#[ignore = "ten minutes, and cilium has to be built: make soak"]
fn a_cluster_of_ipv6_subnets_is_born() -> Result<()> {
    let test = "a_cluster_of_ipv6_subnets_is_born";
    // One worker more, before the one that is replaced has ended.
    let Some(mut lab) = start_lab_with(test, "t-ipv6", 6, Versions::WithCilium)? else {
        return Ok(());
    };
    for (title, step) in ipv6::STEPS {
        lab.run_step(title, step)?;
    }
    lab.take_down()
}

#[test]
#[ignore = "ten minutes: make soak"]
fn volumes_follow_their_pods() -> Result<()> {
    run_steps("volumes_follow_their_pods", "t-volumes", &volumes::STEPS)
}

#[test]
#[ignore = "five minutes, and its addons have to be built: make soak"]
fn pods_have_roles_of_their_own() -> Result<()> {
    let test = "pods_have_roles_of_their_own";
    run_steps_with(test, "t-roles", Versions::WithAddons, &roles::STEPS)
}

#[test]
#[ignore = "fifteen minutes, and its addons have to be built: make soak"]
fn a_cluster_in_use_is_rolled() -> Result<()> {
    let test = "a_cluster_in_use_is_rolled";
    let Some(mut lab) = start_lab_with(test, "t-in-use", 8, Versions::WithAddons)? else {
        return Ok(());
    };
    in_use::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "ten minutes: make soak"]
fn a_rolling_update_replaces_every_instance() -> Result<()> {
    let test = "a_rolling_update_replaces_every_instance";
    let Some(mut lab) = start_lab(test, "t-rolled", 8)? else {
        return Ok(());
    };
    rolled::run(&mut lab, "none", Network::Flannel)?;
    lab.take_down()
}

#[test]
#[ignore = "ten minutes: make soak"]
fn a_rolling_update_with_a_zone_replaces_every_instance() -> Result<()> {
    let test = "a_rolling_update_with_a_zone_replaces_every_instance";
    let Some(mut lab) = start_lab(test, "t-rolled-dns", 8)? else {
        return Ok(());
    };
    lab.run_step("a hosted zone", zone::make_public_zone)?;
    rolled::run(&mut lab, "public", Network::Flannel)?;
    lab.take_down()
}

#[test]
#[ignore = "ten minutes, and cilium has to be built: make soak"]
fn a_rolling_update_with_cilium_replaces_every_instance() -> Result<()> {
    let test = "a_rolling_update_with_cilium_replaces_every_instance";
    let network = Network::Cilium;
    let Some(mut lab) = start_lab_with(test, "t-cil-rolled", 8, network.content())? else {
        return Ok(());
    };
    rolled::run(&mut lab, "none", network)?;
    lab.take_down()
}

#[test]
#[ignore = "an hour: make soak"]
fn keys_are_rotated_under_load() -> Result<()> {
    let Some(mut lab) = start_lab("keys_are_rotated_under_load", "t-keys", 8)? else {
        return Ok(());
    };
    keys::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "two minutes: make soak"]
fn names_may_be_private() -> Result<()> {
    run_steps("names_may_be_private", "t-private", &zone::PRIVATE_STEPS)
}

#[test]
fn a_patch_reaches_control_planes_first() -> Result<()> {
    let _turn = wait_for_turn();
    let test = "a_patch_reaches_control_planes_first";
    if !is_drawn(test, Part::Upgrade)? {
        return Ok(());
    }
    let Some(mut lab) = start_lab(test, "t-patched", 5)? else {
        return Ok(());
    };
    let upgrade = Upgrade {
        from: "1.36.2",
        to: "1.36.3",
        control_planes: 1,
    };
    upgrade.run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "ten minutes, and another Kubernetes: make soak"]
fn a_minor_reaches_control_planes_first() -> Result<()> {
    let test = "a_minor_reaches_control_planes_first";
    let Some(mut lab) = start_lab_with(test, "t-minor", 8, Versions::WithPreviousMinor)? else {
        return Ok(());
    };
    let upgrade = Upgrade {
        from: "1.35.4",
        to: "1.36.3",
        control_planes: 3,
    };
    upgrade.run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "half an hour, and another Kubernetes: make soak"]
fn a_minor_is_taken_back_and_made_again() -> Result<()> {
    let test = "a_minor_is_taken_back_and_made_again";
    let Some(mut lab) = start_lab_with(test, "t-taken", 8, Versions::WithPreviousMinor)? else {
        return Ok(());
    };
    taken_back::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "fifteen minutes, and the Kubernetes and etcd after these: make soak"]
fn the_next_minor_brings_the_next_etcd() -> Result<()> {
    let test = "the_next_minor_brings_the_next_etcd";
    let Some(mut lab) = start_lab_with(test, "t-next", 8, Versions::WithNextMinor)? else {
        return Ok(());
    };
    next_minor::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "fifteen minutes: make soak"]
fn etcd_grows_from_one_member_to_five_and_shrinks() -> Result<()> {
    let test = "etcd_grows_from_one_member_to_five_and_shrinks";
    let Some(mut lab) = start_lab(test, "t-grown", 8)? else {
        return Ok(());
    };
    grown::run(&mut lab)?;
    lab.take_down()
}

#[test]
fn one_control_plane_is_restored_from_its_backups() -> Result<()> {
    let _turn = wait_for_turn();
    let test = "one_control_plane_is_restored_from_its_backups";
    if !is_drawn(test, Part::Restore)? {
        return Ok(());
    }
    let Some(mut lab) = start_lab(test, "t-lone", 4)? else {
        return Ok(());
    };
    restored::run_with_one_control_plane(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "ten minutes: make soak"]
fn etcd_is_restored_from_snapshots() -> Result<()> {
    let Some(mut lab) = start_lab("etcd_is_restored_from_snapshots", "t-restored", 8)? else {
        return Ok(());
    };
    restored::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "twenty minutes: make soak"]
fn etcd_is_restored_to_the_latest_change() -> Result<()> {
    let test = "etcd_is_restored_to_the_latest_change";
    let Some(mut lab) = start_lab(test, "t-latest", 8)? else {
        return Ok(());
    };
    latest::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "ten minutes: make soak"]
fn one_control_plane_is_restored_from_the_backup_store() -> Result<()> {
    let test = "one_control_plane_is_restored_from_the_backup_store";
    let Some(mut lab) = start_lab(test, "t-lone-store", 4)? else {
        return Ok(());
    };
    latest::run_with_one_control_plane(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "ten minutes: make soak"]
fn an_old_record_is_put_back() -> Result<()> {
    let Some(mut lab) = start_lab("an_old_record_is_put_back", "t-old-record", 5)? else {
        return Ok(());
    };
    old_record::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "fifteen minutes: make soak"]
fn a_snapshot_that_s3_denies_stops_nobody() -> Result<()> {
    let test = "a_snapshot_that_s3_denies_stops_nobody";
    let Some(mut lab) = start_lab(test, "t-denied", 5)? else {
        return Ok(());
    };
    denied::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "fifteen minutes: make soak"]
fn a_quorum_is_recovered_beside_a_damaged_volume() -> Result<()> {
    let test = "a_quorum_is_recovered_beside_a_damaged_volume";
    let Some(mut lab) = start_lab(test, "t-damaged", 5)? else {
        return Ok(());
    };
    damaged::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "fifteen minutes, and another etcd: make soak"]
fn etcd_is_restored_in_the_middle_of_an_upgrade() -> Result<()> {
    let test = "etcd_is_restored_in_the_middle_of_an_upgrade";
    let Some(mut lab) = start_lab_with(test, "t-midway", 8, Versions::WithPreviousEtcd)? else {
        return Ok(());
    };
    restored_midway::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "ten minutes, and another etcd: make soak"]
fn etcd_goes_from_3_5_to_3_6() -> Result<()> {
    let test = "etcd_goes_from_3_5_to_3_6";
    let Some(mut lab) = start_lab_with(test, "t-etcd-minor", 8, Versions::WithPreviousEtcd)? else {
        return Ok(());
    };
    etcd_upgraded::run(&mut lab)?;
    lab.take_down()
}

#[test]
#[ignore = "an hour of emulation, and images have to be made: make soak"]
fn debian_12_boots_in_virtual_machines() -> Result<()> {
    let test = "debian_12_boots_in_virtual_machines";
    machines::run(test, "t-machines12", Release::Bookworm)
}

#[test]
#[ignore = "an hour of emulation, and images have to be made: make soak"]
fn debian_13_boots_in_virtual_machines() -> Result<()> {
    let test = "debian_13_boots_in_virtual_machines";
    machines::run(test, "t-machines13", Release::Trixie)
}

#[test]
#[ignore = "ten minutes: make soak"]
fn instances_wait_in_a_warm_pool() -> Result<()> {
    run_steps("instances_wait_in_a_warm_pool", "t-warm", &warm_pool::STEPS)
}
