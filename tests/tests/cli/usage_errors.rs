//! What an operator gets wrong in the first hours: each is answered with what was meant.

use crate::kctl::Kctl;

const NAME: &str = "demo.example.com";

/// A cluster in a store, and nothing in AWS.
fn stored_cluster() -> Kctl {
    let kctl = Kctl::with_store();
    let create = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
    let spec = kctl
        .run(&[&create[..], &["--dry-run"]].concat())
        .expect_success();
    kctl.run_with(&["create", "-f", "-"], &spec)
        .expect_success();
    kctl
}

/// It ends with 2, and says all that.
fn assert_told(kctl: &Kctl, words: &[&str], all: &[&str]) {
    let ran = kctl.run(words);
    assert_eq!(ran.code, 2, "{words:?}: {}{}", ran.out, ran.err);
    for said in all {
        assert!(ran.err.contains(said), "{words:?}: {said}: {}", ran.err);
    }
}

#[test]
fn words_of_kops_lead_to_those_of_kctl() {
    let kctl = stored_cluster();
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["update", "--prune"],
            &["--prune: kctl deletes replaced resources itself"],
        ),
        (
            &["set", "cluster", NAME, "spec.sshAccess=192.0.2.0/24"],
            &["set: single fields", "`kctl edit cluster --set"],
        ),
        (
            &["unset", "cluster", NAME, "spec.sshAccess"],
            &["unset: single fields", "`kctl edit cluster --unset"],
        ),
        (
            &["create", "ig", "more", "--edit=false"],
            &["--edit: kctl stores", "leave it out"],
        ),
        (
            &["create", "sshpublickey", NAME, "-i", "key.pub"],
            &["sshpublickey: ", "`kctl create -f FILE`"],
        ),
    ];
    for (words, all) in cases {
        assert_told(&kctl, words, all);
    }
}

#[test]
fn what_was_meant_is_said() {
    let kctl = stored_cluster();
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["delete", "cluster", "--yes"],
            &["which cluster?", "has demo.example.com"],
        ),
        (
            &["delete", "ig", "control-plane-eu-west-1a", "--yes"],
            &["etcd cluster main has no members"],
        ),
        (
            &["edit", "ig", "nodes-eu-west-1a", "--set", "maxSize=3"],
            &["did you mean spec.maxSize?"],
        ),
        (
            &["edit", "cluster", "--set", "spec.kubernetesVersion=1.99.0"],
            &["use 1.37.1 or older"],
        ),
        (
            &["export", "kubeconfig", "--admin", "1h"],
            &["1h is how long", "--admin=1h"],
        ),
        (
            &["update", NAME, "twice"],
            &["one word too many: \"twice\""],
        ),
        (
            &["validate", NAME, "twice"],
            &["one word too many: \"twice\""],
        ),
        (
            &["update", "dmo.example.com"],
            &[
                "there is no cluster dmo.example.com in file://",
                "did you mean demo.example.com?",
            ],
        ),
        (
            &["get", "all", "dmo.example.com"],
            &["did you mean demo.example.com?"],
        ),
        (
            &["get", "operations", NAME],
            &["the cluster is named with --name"],
        ),
    ];
    for (words, all) in cases {
        assert_told(&kctl, words, all);
    }
    // What is in the environment does not say what is to be deleted.
    let mut kctl = kctl;
    kctl.set_variable("KCTL_CLUSTER_NAME", NAME);
    assert_told(&kctl, &["delete", "cluster", "--yes"], &["which cluster?"]);
    assert!(
        kctl.run(&["get", "clusters"])
            .expect_success()
            .contains(NAME)
    );
}

#[test]
fn roles_are_read_in_any_case_as_in_specs() {
    let kctl = stored_cluster();
    let create = ["create", "ig", "more", "--dry-run", "--role"];
    let group = |role: &str| kctl.run(&[&create[..], &[role]].concat()).expect_success();
    assert_eq!(group("Node"), group("node"));
    let roles = ["rolling-update", "--instance-group-roles", "Master,Node"];
    let rolling = [&roles[..], &["--instance-group", "none"]].concat();
    assert_told(&kctl, &rolling, &["there is no instance group \"none\""]);
}

#[test]
fn without_a_terminal_and_yes_a_deletion_is_shown() {
    let kctl = stored_cluster();
    let shown = kctl.run(&["delete", "ig", "nodes-eu-west-1a"]);
    assert!(shown.err.contains("--yes"), "{}", shown.err);
    assert!(
        shown
            .expect_success()
            .contains("would be taken out of the spec")
    );
    assert!(
        kctl.run(&["get", "ig"])
            .expect_success()
            .contains("nodes-eu-west-1a")
    );
}

#[test]
fn what_is_there_already_is_neither_added_nor_stored_again() {
    let kctl = stored_cluster();
    let add = ["edit", "cluster", "--set", "spec.sshAccess=192.0.2.0/24"];
    let spec = || {
        kctl.run(&["get", "cluster", NAME, "-o", "yaml"])
            .expect_success()
    };
    kctl.run(&add).expect_success();
    let once = spec();
    assert_eq!(once.matches("192.0.2.0/24").count(), 1, "{once}");
    kctl.run(&add).expect_success();
    assert_eq!(spec(), once);
    let file = kctl.write_file("spec.yaml", &once);
    let operations = || {
        kctl.run(&["get", "operations", "-o", "name"])
            .expect_success()
    };
    let before = operations();
    let again = kctl.run(&["replace", "-f", &file]);
    let unchanged = format!("unchanged Cluster {NAME}");
    assert!(again.err.contains(&unchanged), "{}", again.err);
    again.expect_success();
    assert_eq!(operations(), before);
}
