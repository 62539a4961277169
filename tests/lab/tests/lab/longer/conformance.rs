//! Kubernetes' conformance tests: all of them with flannel and with cilium, and a sample of them alone, while control planes are replaced,
//! and while a minor upgrade goes on. `KCTL_CONFORMANCE` names a folder for their results.

mod away;

use super::super::cluster::{self, CLUSTER, Network};
use super::super::start_lab_with;
use super::upgraded::{Upgrade, expect_versions};
use super::{rolled, zone};
use anyhow::{Context, Result, ensure};
use lab::checkout::tests_folder;
use lab::conformance::{Conformance, Results, read_names};
use lab::content::Versions;
use lab::scenario::{LIMIT, Lab, number_from_environment};
use std::env;
use std::fs;
use std::path::PathBuf;

/// What the tests ask of a cluster: an API whose name is in DNS, because e2e.test takes no `tls-server-name` from a kubeconfig; node ports
/// that are open; an issuer of tokens that a pod resolves and trusts.
const SETTINGS: [&str; 3] = [
    "--dns=public",
    "--set=spec.nodePortAccess[0]=0.0.0.0/0",
    "--set=spec.kubeAPIServer.serviceAccountIssuer=https://kubernetes.default.svc",
];

const THREE: &str = "--control-plane-zones=us-east-1a,us-east-1b,us-east-1c";

/// Tests at once, unless `KCTL_CONFORMANCE_PARALLEL` says another number: they mostly wait.
const PARALLEL: u64 = 4;

/// Number of all conformance tests of the Kubernetes that the lab serves.
const ALL: usize = 446;

/// Failed tests that are run again at most: each may take minutes, and more than these have another reason than chance.
const AGAIN: usize = 20;

#[test]
#[ignore = "the tests have to be built: make soak"]
fn a_cluster_passes_a_sample_of_conformance_tests() -> Result<()> {
    let test = "a_cluster_passes_a_sample_of_conformance_tests";
    let Some(mut lab) = start_lab_with(test, "t-conf", 3, Versions::WithConformance)? else {
        return Ok(());
    };
    make_small_cluster(&mut lab, Network::Flannel)?;
    lab.run_step("the sample passes", |lab| pass_sample(lab, "sample"))?;
    lab.take_down()
}

#[test]
#[ignore = "more than an hour, and the tests have to be built: make soak"]
fn a_cluster_passes_all_conformance_tests() -> Result<()> {
    let test = "a_cluster_passes_all_conformance_tests";
    let Some(mut lab) = start_lab_with(test, "t-conf-all", 3, Versions::WithConformance)? else {
        return Ok(());
    };
    make_small_cluster(&mut lab, Network::Flannel)?;
    lab.run_step("all pass", |lab| pass_all(lab, "flannel", &[]))?;
    lab.take_down()
}

#[test]
#[ignore = "more than an hour, and cilium and the tests have to be built: make soak"]
fn a_cluster_with_cilium_passes_conformance_tests() -> Result<()> {
    let test = "a_cluster_with_cilium_passes_conformance_tests";
    let versions = Versions::WithConformanceAndCilium;
    let Some(mut lab) = start_lab_with(test, "t-conf-cil", 3, versions)? else {
        return Ok(());
    };
    make_small_cluster(&mut lab, Network::Cilium)?;
    lab.run_step("all pass but those that may fail", |lab| {
        pass_all(lab, "cilium", &read_names(&list("cilium"))?)
    })?;
    lab.take_down()
}

#[test]
#[ignore = "fifteen minutes, and the tests have to be built: make soak"]
fn conformance_tests_pass_while_control_planes_are_replaced() -> Result<()> {
    let test = "conformance_tests_pass_while_control_planes_are_replaced";
    let Some(mut lab) = start_lab_with(test, "t-conf-roll", 8, Versions::WithConformance)? else {
        return Ok(());
    };
    make_cluster(&mut lab, 3, &[Network::Flannel.argument(), THREE])?;
    lab.run_step("the spec changes, and the instances stay", |lab| {
        lab.run_kctl(&["edit", "cluster", CLUSTER, "--set", rolled::SETTING])?;
        lab.run_kctl(&["update", CLUSTER, "--yes"]).map(drop)
    })?;
    lab.run_step("the sample passes beside their replacement", |lab| {
        replace_beside_sample(lab, "rolled")
    })?;
    lab.take_down()
}

#[test]
#[ignore = "twenty minutes, and another Kubernetes and the tests have to be built: make soak"]
fn conformance_tests_pass_during_a_minor_upgrade() -> Result<()> {
    let test = "conformance_tests_pass_during_a_minor_upgrade";
    let versions = Versions::WithConformanceAndPreviousMinor;
    let Some(mut lab) = start_lab_with(test, "t-conf-minor", 8, versions)? else {
        return Ok(());
    };
    let upgrade = Upgrade {
        from: "1.35.4",
        to: "1.36.3",
        control_planes: 3,
    };
    let before = format!("--kubernetes-version={}", upgrade.from);
    make_cluster(&mut lab, 3, &[Network::Flannel.argument(), THREE, &before])?;
    lab.run_step("its spec gets the new version", |lab| {
        upgrade.change_spec(lab)
    })?;
    lab.run_step("the sample passes beside new control planes", |lab| {
        replace_beside_sample(lab, "upgraded-control-planes")
    })?;
    lab.run_step("the sample passes with workers of before", |lab| {
        pass_sample(lab, "skewed")
    })?;
    lab.run_step("kctl replaces the workers", |lab| {
        lab.run_kctl(&["reconcile", CLUSTER, "--yes"])?;
        // The cloud controller manager removes the Node of an instance that has ended once it is not Ready.
        lab.wait_until("all Nodes are new", LIMIT, |lab| {
            expect_versions(lab, upgrade.to)
        })
    })?;
    lab.run_step("the sample passes with the new version", |lab| {
        pass_sample(lab, "upgraded")
    })?;
    lab.take_down()
}

/// One control plane and two workers, which the tests need.
fn make_small_cluster(lab: &mut Lab, network: Network) -> Result<()> {
    make_cluster(lab, 1, &[network.argument()])
}

fn make_cluster(lab: &mut Lab, control_planes: usize, words: &[&str]) -> Result<()> {
    lab.run_step("a hosted zone", zone::make_public_zone)?;
    lab.run_step("kctl makes a cluster", |lab| {
        cluster::create_cluster(lab, &[words, &SETTINGS[..]].concat())
    })?;
    lab.run_step("its instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, control_planes)
    })?;
    lab.run_step("kctl says that it is healthy", cluster::expect_healthy)
}

/// A file of test names.
fn list(name: &str) -> PathBuf {
    tests_folder().join("lab/conformance").join(name)
}

/// All conformance tests, with their results in a folder of that name.
fn all_tests(lab: &Lab, name: &str) -> Result<Conformance> {
    let results = env::var_os("KCTL_CONFORMANCE")
        .map_or_else(|| env::temp_dir().join("kctl-conformance"), PathBuf::from);
    let parallel = number_from_environment("KCTL_CONFORMANCE_PARALLEL")?.unwrap_or(PARALLEL);
    Ok(Conformance {
        focus: r"\[Conformance\]".to_owned(),
        skip: None,
        tests: None,
        parallel,
        allow_not_ready: false,
        dry_run: false,
        output: results.join(lab.place().name()).join(name),
    })
}

fn sample(lab: &Lab, name: &str) -> Result<Conformance> {
    Ok(Conformance {
        tests: Some(list("sample")),
        ..all_tests(lab, name)?
    })
}

/// Every test passes but those that may fail, in the run of all or when it is run once more, alone. That is no conformant run unless all
/// passed in the first one.
fn pass_all(lab: &Lab, name: &str, may_fail: &[String]) -> Result<()> {
    let tests = all_tests(lab, name)?;
    let mut results = lab.run_conformance(&tests)?;
    eprintln!("       {results}");
    ensure!(results.count() == ALL, "not {ALL} tests: {results}");
    let failed = results.failed.len();
    results.failed.retain(|name| !may_fail.contains(name));
    eprintln!(
        "       {} of {} tests that may fail did",
        failed - results.failed.len(),
        may_fail.len()
    );
    let again = run_again(lab, &tests, &results.failed)?;
    eprintln!(
        "       {} of {ALL} passed, of which {} only when run again alone",
        results.passed + again.passed,
        again.passed
    );
    results.passed += again.passed;
    results.failed = again.failed;
    results.skipped.extend(again.skipped);
    expect_passed(&results, &tests)
}

/// Runs the tests that failed once more, one at a time. The results are in the folder `again` below those of the first run.
fn run_again(lab: &Lab, first: &Conformance, failed: &[String]) -> Result<Results> {
    if failed.is_empty() {
        return Ok(Results::default());
    }
    let count = failed.len();
    let folder = first.output.display();
    ensure!(
        count <= AGAIN,
        "{count} tests failed: none is run again, see {folder}"
    );
    let names = first.output.join("failed");
    fs::write(&names, failed.join("\n")).with_context(|| format!("writing {}", names.display()))?;
    let results = lab.run_conformance(&Conformance {
        tests: Some(names),
        parallel: 1,
        output: first.output.join("again"),
        ..first.clone()
    })?;
    eprintln!("       again, alone: {results}");
    Ok(results)
}

fn pass_sample(lab: &Lab, name: &str) -> Result<()> {
    let tests = sample(lab, name)?;
    expect_passed(&lab.run_conformance(&tests)?, &tests)
}

/// Repeats the sample until every control plane is another instance. The workers stay: tests do not survive the end of their pods' nodes.
fn replace_beside_sample(lab: &Lab, name: &str) -> Result<()> {
    let old = cluster::control_planes(lab, 3)?;
    // Before the first test and at the end of each, the suite would wait until every Node is Ready: few would run while one is not.
    let tests = Conformance {
        allow_not_ready: true,
        ..sample(lab, name)?
    };
    let runs = lab.start_conformance(tests.clone());
    let only = "--instance-group-roles=control-plane";
    let replaced = lab.run_kctl(&["rolling-update", CLUSTER, only, "--yes"]);
    let all = runs.end()?;
    replaced?;
    let new = cluster::control_planes(lab, 3)?;
    for instance in &new {
        let known = old.iter().any(|one| one.id == instance.id);
        ensure!(!known, "{} was not replaced", instance.id);
    }
    all.iter()
        .try_for_each(|results| expect_passed(results, &tests))?;
    away::expect_tests_meanwhile(lab, &old, &new, &all)
}

/// A conformant run skips nothing either.
fn expect_passed(results: &Results, tests: &Conformance) -> Result<()> {
    let folder = tests.output.display();
    eprintln!("       {results}");
    ensure!(
        results.failed.is_empty() && results.skipped.is_empty(),
        "{results}\nsee {folder}"
    );
    Ok(())
}
