//! `spec.configBase`: left out it is the cluster's folder in the state store, and it cannot be another.

use crate::kctl::Kctl;
use crate::scenario::{NAME, REGION, create_cluster, kctl_with_cloud};
use crate::simulator::Simulator;

/// The spec of a cluster in the store, as a file would have it.
fn stored_spec(kctl: &Kctl) -> String {
    let cluster = kctl
        .run(&["get", "cluster", NAME, "-o", "yaml"])
        .expect_success();
    let groups = kctl
        .run(&["get", "ig", "--name", NAME, "-o", "yaml"])
        .expect_success();
    format!("{cluster}---\n{groups}")
}

#[test]
fn a_spec_without_a_place_has_the_one_of_the_store() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    let base = format!("  configBase: s3://state/clusters/{NAME}\n");
    let spec = stored_spec(&kctl);
    assert!(spec.contains(&base), "{spec}");
    let spec = spec.replace(&base, "").replace(NAME, "bare.example.com");
    let file = kctl.write_file("bare.yaml", &spec);
    let empty = simulator.list_resources(REGION);
    kctl.run(&["create", "-f", &file]).expect_success();
    let name = "bare.example.com";
    kctl.run(&["update", name, "--yes"]).expect_success();
    let ran = kctl.run(&["update", name]).expect_success();
    assert!(ran.contains("No changes."), "{ran}");
    let set = [
        "edit",
        "ig",
        "nodes-eu-west-1a",
        "--name",
        name,
        "--set",
        "spec.maxSize=3",
    ];
    kctl.run(&set).expect_success();
    kctl.run(&["update", name, "--yes"]).expect_success();
    kctl.run(&["delete", "cluster", name, "--yes"])
        .expect_success();
    let left: Vec<String> = simulator
        .list_resources(REGION)
        .difference(&empty)
        .cloned()
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_spec_with_the_place_of_another_cluster_is_refused() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create_cluster(&kctl, &[]).expect_success();
    let copy = stored_spec(&kctl)
        .replace(NAME, "copy.example.com")
        .replace("clusters/copy.example.com", &format!("clusters/{NAME}"));
    let file = kctl.write_file("copy.yaml", &copy);
    let ran = kctl.run(&["create", "-f", &file]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    for said in [
        "spec.configBase",
        "copy.yaml:",
        "is not the place of copy.example.com in this state store",
        "leave it out",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    // What an editor or another program wrote into the store is refused before AWS is asked.
    let place = "spec.configBase=s3://state/clusters/other.example.com";
    let ran = kctl.run(&["edit", "cluster", NAME, "--set", place]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    simulator.run_python(
        REGION,
        &format!(
            "s3 = boto('s3')\nkey = 'clusters/{NAME}/config'\ntext = s3.get_object(Bucket='state', Key=key)['Body'].read()\n\
             s3.put_object(Bucket='state', Key=key, Body=text.replace(b'clusters/{NAME}', b'clusters/other.example.com'))"
        ),
    );
    for command in ["update", "validate"] {
        let ran = kctl.run(&[command, NAME]);
        println!("{command}: {}{}", ran.out, ran.err);
    }
    let ran = kctl.run(&["update", NAME, "--yes"]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    // Another store is named, if it is one.
    let elsewhere = format!("spec.configBase=s3://other/{NAME}");
    let ran = kctl.run(&["edit", "cluster", NAME, "--set", &elsewhere]);
    assert!(
        ran.err.contains("KCTL_STATE_STORE=s3://other"),
        "{}",
        ran.err
    );
}

/// The names of the zone's records.
fn record_names(simulator: &Simulator) -> String {
    simulator.run_python(
        REGION,
        "dns = boto('route53')\nzone = dns.list_hosted_zones()['HostedZones'][0]['Id']\nprint(*sorted(f\"{r['Name']} {r['Type']}\" for r in dns.list_resource_record_sets(HostedZoneId=zone)['ResourceRecordSets']))",
    )
}

#[test]
fn a_copied_spec_takes_no_names_of_the_cluster_that_it_is_a_copy_of() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    simulator.run_python(
        REGION,
        "boto('route53').create_hosted_zone(Name='example.com', CallerReference='1')",
    );
    create_cluster(&kctl, &["--dns", "public"]).expect_success();
    kctl.run(&["update", NAME, "--yes"]).expect_success();
    let records = record_names(&simulator);
    let public = format!("masterPublicName: api.{NAME}\n");
    let copy = stored_spec(&kctl);
    let copy = copy.replace("spec:\n", &format!("spec:\n  {public}"));
    // Only the first document is a cluster's.
    let (cluster, groups) = copy.split_once("---\n").expect("groups");
    let groups = groups.replace(&format!("  {public}"), "");
    let cluster = cluster.replacen(
        &format!("  {public}"),
        "",
        cluster.matches(&public).count() - 1,
    );
    let copy = format!("{cluster}---\n{groups}").replace(NAME, "copy.example.com");
    let copy = copy.replace("api.copy.example.com", &format!("api.{NAME}"));
    let file = kctl.write_file("copy.yaml", &copy);
    kctl.run(&["create", "-f", &file]).expect_success();
    for words in [
        &["update", "copy.example.com"][..],
        &["update", "copy.example.com", "--yes"],
    ] {
        let ran = kctl.run(words);
        assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
        let said = format!("api.{NAME} is a name of the cluster {NAME}");
        assert!(ran.err.contains(&said), "{}", ran.err);
    }
    kctl.run(&["delete", "cluster", "copy.example.com", "--yes"])
        .expect_success();
    assert_eq!(records, record_names(&simulator));
}
