//! A cluster's name is not the cluster: what another state store, another account or an earlier life made is neither changed
//! nor deleted, and what is lost is not made anew in silence.

use crate::kctl::{Kctl, KctlOutput};
use crate::scenario::{NAME, REGION, kctl_with_cloud};
use crate::simulator::Simulator;
use serde_json::json;
use std::collections::BTreeSet;

const CREATE: [&str; 5] = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
const DELETE: [&str; 4] = ["delete", "cluster", NAME, "--yes"];

fn made_cluster(simulator: &Simulator) -> Kctl {
    let kctl = kctl_with_cloud(simulator);
    kctl.run(&[&CREATE[..], &["--yes"]].concat())
        .expect_success();
    kctl
}

/// It ends with 4, and says all that.
fn assert_refused(ran: &KctlOutput, words: &[&str]) {
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    for word in words {
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    }
}

/// What is in AWS, but for the state store.
fn resources_in_aws(simulator: &Simulator) -> BTreeSet<String> {
    let all = simulator.list_resources(REGION).into_iter();
    all.filter(|line| !line.starts_with("s3")).collect()
}

/// Takes kctl's tags off etcd's volumes: as kOps or an earlier kctl made them.
fn untag_volumes(simulator: &Simulator) {
    simulator.run_python(
        REGION,
        "ec2 = boto('ec2')\nall = [v['VolumeId'] for v in ec2.describe_volumes(Filters=[{'Name': 'tag-key', 'Values': ['kctl.dev/incarnation']}])['Volumes']]\nassert all\nec2.delete_tags(Resources=all, Tags=[{'Key': 'kctl.dev/incarnation'}, {'Key': 'kctl.dev/state-store'}])",
    );
}

#[test]
fn another_state_store_changes_and_deletes_nothing_of_a_cluster_of_the_same_name() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    let mut other = cloud_of(&simulator, "s3://state/others");
    let before = resources_in_aws(&simulator);
    let named = [
        "a.etcd-main.demo.example.com",
        "of s3://state/clusters/demo.example.com",
        "KCTL_STATE_STORE=s3://state/clusters\n",
        "delete these volumes in EC2",
    ];
    assert_refused(&other.run(&CREATE), &named);
    assert_refused(&other.run(&["update"]), &named);
    assert_refused(&other.run(&["update", "--yes"]), &named);
    assert_refused(&other.run(&DELETE[..3]), &named);
    assert_refused(&other.run(&DELETE), &named);
    assert_eq!(resources_in_aws(&simulator), before);

    // Without the tags, the store in which nothing was ever done has no claim; the one that made it has.
    untag_volumes(&simulator);
    let untold = [
        "not made from s3://state/others",
        "choose the store that made it",
    ];
    assert_refused(&other.run(&["update"]), &untold);
    assert_refused(&other.run(&DELETE), &untold);
    assert_eq!(resources_in_aws(&simulator), before);
    let tags = kctl.run(&["update"]).expect_success();
    assert!(tags.contains("2 to change"), "{tags}");
    assert!(tags.contains("kctl.dev/incarnation"), "{tags}");
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);

    // The first is gone: now the name is free.
    kctl.run(&DELETE).expect_success();
    other.set_variable("KCTL_STATE_STORE", "s3://state/others");
    other.run(&["update", "--yes"]).expect_success();
    assert_eq!(other.run(&["update", "--exit-code"]).code, 0);
    other.run(&DELETE).expect_success();
}

/// Another operator's, with that store.
fn cloud_of(simulator: &Simulator, store: &str) -> Kctl {
    let mut kctl = Kctl::new();
    let binaries = kctl.home_path("assets/linux/amd64");
    std::fs::create_dir_all(&binaries).expect("a folder");
    for name in ["nodeup", "protokube"] {
        std::fs::write(binaries.join(name), name).expect("a file");
    }
    let assets = kctl.home_path("assets").display().to_string();
    for (name, value) in [
        ("AWS_ENDPOINT_URL", simulator.endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("KCTL_STATE_STORE", store),
        ("KCTL_ASSETS", &assets),
    ] {
        kctl.set_variable(name, value);
    }
    kctl
}

/// Copies the cluster's folder to another store of the same bucket, as `aws s3 sync` does; the spec there names `base`.
fn copy_folder(simulator: &Simulator, (from, to): (&str, &str), base: &str) {
    simulator.run_python(
        REGION,
        &format!(
            "s3 = boto('s3')\nfor o in s3.list_objects_v2(Bucket='state', Prefix='{from}/{NAME}/')['Contents']:\n b = s3.get_object(Bucket='state', Key=o['Key'])['Body'].read()\n s3.put_object(Bucket='state', Key=o['Key'].replace('{from}/', '{to}/', 1), Body=b.replace(b'configBase: s3://state/{from}/', b'configBase: s3://state/{base}/'))"
        ),
    );
}

/// `aws s3 mv` of the spec in a store.
fn rename_spec(simulator: &Simulator, store: &str, from: &str, to: &str) {
    simulator.run_python(
        REGION,
        &format!(
            "s3 = boto('s3')\nk = '{store}/{NAME}/'\ns3.copy_object(Bucket='state', Key=k + '{to}', CopySource={{'Bucket': 'state', 'Key': k + '{from}'}})\ns3.delete_object(Bucket='state', Key=k + '{from}')"
        ),
    );
}

#[test]
fn a_copy_of_a_state_store_neither_updates_nor_deletes_what_the_first_operates() {
    let simulator = Simulator::start_simulator();
    let first = made_cluster(&simulator);
    copy_folder(&simulator, ("clusters", "copies"), "clusters");
    let copy = cloud_of(&simulator, "s3://state/copies");
    let before = resources_in_aws(&simulator);
    let named = [
        "are operated from s3://state/clusters/demo.example.com",
        "s3://state/copies/demo.example.com has only a copy",
        "a.etcd-main.demo.example.com",
        "KCTL_STATE_STORE=s3://state/clusters\n",
        "aws s3 mv s3://state/clusters/demo.example.com/config s3://state/clusters/demo.example.com/config.moved",
        "--unregister",
    ];
    // Whether or not somebody has edited the copy.
    assert_refused(&copy.run(&DELETE[..3]), &named);
    assert_refused(&copy.run(&DELETE), &named);
    copy_folder(&simulator, ("clusters", "copies"), "copies");
    assert_refused(&copy.run(&["update"]), &named);
    assert_refused(&copy.run(&["update", "--yes"]), &named);
    assert_refused(&copy.run(&DELETE), &named);
    assert_eq!(resources_in_aws(&simulator), before);
    // However the address is written, it is the same place.
    let mut same = cloud_of(&simulator, "s3://state//clusters");
    same.run(&DELETE[..3]).expect_success();
    same.set_variable("KCTL_STATE_STORE", "s3://state/clusters");
    assert_eq!(same.run(&["update", "--exit-code"]).code, 0);

    // The cluster moves: the first place has no spec any more. Before an update from the second, nobody can say whose it is.
    rename_spec(&simulator, "clusters", "config", "config.moved");
    assert_refused(
        &copy.run(&DELETE),
        &["where no spec is any more", "--yes marks the volumes"],
    );
    // S3 fails for a while: nobody knows whether it has moved. (As an error that no client repeats, so that the test takes no minute.)
    simulator.set_faults(&json!([{"service": "s3", "operation": "GetObject", "path": "*clusters/*/config", "times": 99,
        "code": "InvalidRequest", "message": "no", "status": 400}]));
    for words in [&["update"][..], &["update", "--yes"], &DELETE] {
        assert_refused(
            &copy.run(words),
            &[
                "whether the cluster still is cannot be read",
                "repeat the command",
            ],
        );
    }
    simulator.set_faults(&json!([]));
    let preview = copy.run(&["update"]);
    assert_eq!(preview.code, 0, "{}", preview.err);
    let warned = "an update marks them as operated from s3://state/copies/demo.example.com";
    assert!(preview.err.contains(warned), "{}", preview.err);
    copy.run(&["update", "--yes"]).expect_success();
    let marked = copy.run(&["update", "--exit-code"]);
    assert_eq!(marked.code, 0, "{}", marked.err);
    assert!(!marked.err.contains("marks them"), "{}", marked.err);

    // What is left over at the first place deletes nothing either.
    rename_spec(&simulator, "clusters", "config.moved", "config");
    let before = resources_in_aws(&simulator);
    let left = ["are operated from s3://state/copies/demo.example.com"];
    assert_refused(&first.run(&DELETE), &left);
    assert_refused(&first.run(&["update", "--yes"]), &left);
    assert_eq!(resources_in_aws(&simulator), before);
    copy.run(&DELETE).expect_success();
}

#[test]
fn an_earlier_life_of_a_cluster_is_not_the_next_one_s_and_its_leftovers_are_named() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    kctl.run(&["delete", "cluster", NAME, "--unregister", "--yes"])
        .expect_success();
    let before = resources_in_aws(&simulator);
    // Its instances run, and write their record back.
    let put = format!(
        "boto('s3').put_object(Bucket='state', Key='clusters/{NAME}/etcd/main.json', Body=b'x')"
    );
    simulator.run_python(REGION, &put);
    let left = kctl.run(&CREATE);
    assert_refused(
        &left,
        &[
            "records of its etcd in s3://state/clusters",
            "aws s3 rm --recursive s3://state/clusters/demo.example.com/etcd/",
            "take that cluster over",
        ],
    );
    let stored = kctl.run(&["get", "clusters"]);
    assert!(!stored.out.contains(NAME), "{}", stored.out);
    simulator.run_python(
        REGION,
        &put.replace("put_object", "delete_object")
            .replace(", Body=b'x'", ""),
    );
    let named = [
        "which is gone from s3://state/clusters",
        "from the bucket's versions",
    ];
    assert_refused(&kctl.run(&CREATE), &named);
    assert_refused(&kctl.run(&["update", "--yes"]), &named);
    assert_refused(&kctl.run(&DELETE), &named);
    assert_eq!(resources_in_aws(&simulator), before);
}

#[test]
fn credentials_of_another_account_neither_make_a_cluster_twice_nor_forget_it() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    // As if these credentials were of another account than those that made it.
    simulator.run_python(
        REGION,
        &format!(
            "s3 = boto('s3')\nfor o in s3.list_objects_v2(Bucket='state', Prefix='clusters/{NAME}/operations/')['Contents']:\n b = s3.get_object(Bucket='state', Key=o['Key'])['Body'].read()\n s3.put_object(Bucket='state', Key=o['Key'], Body=b.replace(b'123456789012', b'210987654321'))"
        ),
    );
    let before = simulator.list_resources(REGION);
    let named = [
        "the credentials are of account 123456789012",
        "demo.example.com is in account 210987654321",
        "--unregister",
    ];
    assert_refused(&kctl.run(&["update"]), &named);
    assert_refused(&kctl.run(&["update", "--yes"]), &named);
    assert_refused(&kctl.run(&DELETE), &named);
    assert_eq!(simulator.list_resources(REGION), before);
}

#[test]
fn a_keyset_that_is_lost_is_not_made_anew() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    let key = format!("clusters/{NAME}/pki/private/etcd-clients-ca/keyset.yaml");
    simulator.run_python(
        REGION,
        &format!("boto('s3').head_object(Bucket='state', Key='{key}')\nboto('s3').delete_object(Bucket='state', Key='{key}')"),
    );
    let before = simulator.list_resources(REGION);
    let named = [
        "lacks demo.example.com/pki/private/etcd-clients-ca/keyset.yaml",
        "restore it from the bucket's versions",
    ];
    assert_refused(&kctl.run(&["update"]), &named);
    assert_refused(&kctl.run(&["update", "--yes"]), &named);
    assert_eq!(simulator.list_resources(REGION), before);
    // Who wants it no more can still delete it.
    kctl.run(&DELETE).expect_success();
}

/// Writes an object into the cluster's folder.
fn put_in_store(simulator: &Simulator, path: &str) {
    simulator.run_python(
        REGION,
        &format!(
            "boto('s3').put_object(Bucket='state', Key='clusters/{NAME}/{path}', Body=b'1.34.0')"
        ),
    );
}

#[test]
fn a_cluster_that_kops_runs_is_not_changed() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator);
    kctl.run(&["update", "--plan-out", "saved.plan"])
        .expect_success();
    for path in [
        "manifests/etcd/main-control-plane-eu-west-1a.yaml",
        "kops-version.txt",
    ] {
        put_in_store(&simulator, path);
        let before = simulator.list_resources(REGION);
        let key = format!("the state store has {NAME}/manifests/etcd/main");
        let named = [
            "demo.example.com is a cluster of kOps",
            if path.starts_with("kops") {
                "kops-version.txt"
            } else {
                &key
            },
            "nothing was done",
            "docs/from-kops.md",
        ];
        for words in [
            &["update"][..],
            &["update", "--yes"],
            &["update", "--plan", "saved.plan", "--yes"],
            &["rolling-update"],
            &["rolling-update", "--cloudonly", "--yes"],
            &["delete", "instance", "i-0a1b2c3d4e5f60718", "--yes"],
            &["reconcile", "--yes"],
        ] {
            assert_refused(&kctl.run(words), &named);
        }
        assert_eq!(simulator.list_resources(REGION), before);
        simulator.run_python(
            REGION,
            &format!("boto('s3').delete_object(Bucket='state', Key='clusters/{NAME}/{path}')"),
        );
    }
    // Without them the same cluster is kctl's, and who wants one of kOps no more can delete it.
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
    put_in_store(&simulator, "kops-version.txt");
    kctl.run(&DELETE).expect_success();
}
