//! Objects in a store that is a folder.

use crate::kctl::Kctl;
use std::os::unix::fs::PermissionsExt;

const ZONES: &str = "eu-west-1a,eu-west-1b";

/// A stored cluster of two zones.
fn stored_cluster() -> Kctl {
    let kctl = Kctl::with_store();
    let spec = kctl
        .run(&[
            "create",
            "cluster",
            "demo.example.com",
            "--zones",
            ZONES,
            "--dry-run",
        ])
        .expect_success();
    kctl.run_with(&["create", "-f", "-"], &spec)
        .expect_success();
    kctl
}

/// An editor that is a shell script; `$1` is the file.
fn set_editor(kctl: &mut Kctl, script: &str) {
    let path = kctl.write_file("editor", &format!("#!/bin/sh\n{script}\n"));
    let run = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&path, run).expect("an executable");
    kctl.set_variable("EDITOR", &path);
}

#[test]
fn what_is_stored_is_shown() {
    let kctl = stored_cluster();
    let shown = |words: &[&str]| kctl.run(words).expect_success();
    let all = [
        shown(&["get"]),
        shown(&["get", "clusters", "-o", "name"]),
        shown(&["get", "ig"]),
        shown(&["get", "ig", "nodes-eu-west-1a", "-o", "yaml"])
            .lines()
            .filter(|line| !line.contains("creationTimestamp"))
            .collect::<Vec<_>>()
            .join("\n"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn lists_are_lists_and_one_object_is_one() {
    let kctl = stored_cluster();
    let json = |words: &[&str]| -> serde_json::Value {
        serde_json::from_str(&kctl.run(words).expect_success()).expect("JSON")
    };
    assert_eq!(
        json(&["get", "ig", "-o", "json"]).as_array().map(Vec::len),
        Some(3)
    );
    assert_eq!(
        json(&["get", "ig", "nodes-eu-west-1a", "-o", "json"])["kind"],
        "InstanceGroup"
    );
    assert_eq!(
        json(&["get", "sshpublickeys", "-o", "json"]),
        serde_json::json!([])
    );
    assert_eq!(
        Kctl::with_store()
            .run(&["get", "-o", "json"])
            .expect_success()
            .trim(),
        "[]"
    );
}

#[test]
fn what_get_prints_replace_takes_and_changes_nothing() {
    let kctl = stored_cluster();
    let before = kctl.run(&["get", "all", "-o", "yaml"]).expect_success();
    kctl.run_with(&["replace", "-f", "-"], &before)
        .expect_success();
    assert_eq!(
        kctl.run(&["get", "all", "-o", "yaml"]).expect_success(),
        before
    );
}

#[test]
fn what_exists_is_not_created_and_what_does_not_is_not_replaced() {
    let kctl = stored_cluster();
    let spec = kctl.run(&["get", "all", "-o", "yaml"]).expect_success();
    assert_eq!(kctl.run_with(&["create", "-f", "-"], &spec).code, 4);
    let other = spec.replace("nodes-eu-west-1a", "other");
    let refused = kctl.run_with(&["replace", "-f", "-"], &other);
    assert_eq!(refused.code, 2, "{}", refused.err);
    kctl.run_with(&["replace", "--force", "-f", "-"], &other)
        .expect_success();
    assert!(
        kctl.run(&["get", "ig", "-o", "name"])
            .expect_success()
            .contains("instancegroup/other")
    );
}

#[test]
fn fields_are_set_and_checked_with_all_the_rest() {
    let kctl = stored_cluster();
    kctl.run(&["edit", "ig", "nodes-eu-west-1a", "--set", "spec.maxSize=5"])
        .expect_success();
    assert!(
        kctl.run(&["get", "ig", "nodes-eu-west-1a"])
            .expect_success()
            .contains("   5 ")
    );
    insta::assert_snapshot!(
        kctl.run(&["edit", "ig", "nodes-eu-west-1a", "--set", "spec.minSize=9"])
            .all_output()
    );
}

#[test]
fn a_wrong_name_is_an_error_with_the_nearest_one() {
    let kctl = stored_cluster();
    for words in [
        ["edit", "ig", "nodes-eu-west-1"],
        ["get", "ig", "node-eu-west-1a"],
        ["get", "clusters", "dem.example.com"],
    ] {
        let ran = kctl.run(&words);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("did you mean"), "{}", ran.err);
    }
}

#[test]
fn an_editor_is_opened_again_with_the_problems_until_the_text_is_right() {
    let mut kctl = stored_cluster();
    set_editor(
        &mut kctl,
        "if grep -q 'did you mean' \"$1\"; then sed -i s/maxSizze/maxSize/ \"$1\"; else sed -i 's/maxSize: .*/maxSizze: 7/' \"$1\"; fi",
    );
    kctl.run(&["edit", "ig", "nodes-eu-west-1a"])
        .expect_success();
    assert!(
        kctl.run(&["get", "ig", "nodes-eu-west-1a"])
            .expect_success()
            .contains("   7 ")
    );
}

#[test]
fn nobody_loses_a_text_to_a_mistake_or_a_race() {
    let mut kctl = stored_cluster();
    set_editor(
        &mut kctl,
        "grep -q zzz \"$1\" || sed -i 's/maxSize: .*/zzz: 8/' \"$1\"",
    );
    let kept = |err: &str| {
        let path = err.split_whitespace().last().expect("a path").to_owned();
        let text = std::fs::read_to_string(&path).expect("the text");
        std::fs::remove_file(&path).expect("gone");
        text
    };
    let ran = kctl.run(&["edit", "ig", "nodes-eu-west-1a"]);
    assert_eq!(ran.code, 2);
    assert!(kept(&ran.err).contains("zzz: 8"), "{}", ran.err);

    let stored = kctl
        .home_path("store/demo.example.com/instancegroup/nodes-eu-west-1a")
        .display()
        .to_string();
    set_editor(
        &mut kctl,
        &format!("sed -i 's/maxSize: .*/maxSize: 8/' \"$1\"; echo '# another' >> {stored}"),
    );
    let ran = kctl.run(&["edit", "ig", "nodes-eu-west-1a"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(kept(&ran.err).contains("maxSize: 8"), "{}", ran.err);
}

#[test]
fn a_group_that_etcd_needs_stays_and_another_goes_when_confirmed() {
    let kctl = stored_cluster();
    assert_eq!(
        kctl.run(&["delete", "ig", "control-plane-eu-west-1a", "--yes"])
            .code,
        2
    );
    kctl.run(&["delete", "ig", "nodes-eu-west-1b"])
        .expect_success();
    let there = kctl.run(&["get", "ig", "-o", "name"]).expect_success();
    assert!(there.contains("nodes-eu-west-1b"), "nobody confirmed it");
    kctl.run(&["delete", "ig", "nodes-eu-west-1b", "--yes"])
        .expect_success();
    assert!(
        !kctl
            .run(&["get", "ig", "-o", "name"])
            .expect_success()
            .contains("nodes-eu-west-1b")
    );
}

#[test]
fn a_group_is_added_from_flags_once() {
    let kctl = stored_cluster();
    let create = ["create", "ig", "nodes-gpu", "--size", "g5.xlarge"];
    let more = ["--subnet", "eu-west-1a", "--set", "spec.maxSize=4"];
    let dry = kctl.run(&[&create[..], &more, &["--dry-run"]].concat());
    insta::assert_snapshot!("group_from_flags", dry.expect_success());
    let groups = || kctl.run(&["get", "ig", "-o", "name"]).expect_success();
    assert!(!groups().contains("nodes-gpu"), "a dry run stores nothing");
    let stored = kctl.run(&[&create[..], &more].concat());
    assert!(
        stored.err.contains("update demo.example.com --yes"),
        "{}",
        stored.err
    );
    assert!(groups().contains("nodes-gpu"));
    let again = kctl.run(&create);
    assert_eq!(again.code, 4, "{}", again.err);
    assert!(again.err.contains("exists already"), "{}", again.err);
    let wrong = kctl.run(&["create", "ig", "nodes-far", "--subnets", "us-east-1a"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(wrong.err.contains("us-east-1a"), "{}", wrong.err);
}

#[test]
fn without_a_store_one_is_made_among_the_users_data_and_that_is_said() {
    let kctl = Kctl::new();
    let ran = kctl.run(&["get"]);
    assert!(
        ran.err.contains("HOME/.local/share/kctl/store"),
        "{}",
        ran.err
    );
    ran.expect_success();
}

#[test]
fn a_store_that_is_none_is_said_with_what_one_looks_like() {
    let ran = Kctl::new().run(&["get", "--state", "gs://x"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("s3://BUCKET"), "{}", ran.err);
}

#[test]
fn the_cluster_is_clear_or_asked_for() {
    let kctl = stored_cluster();
    let spec = kctl
        .run(&["get", "all", "-o", "yaml"])
        .expect_success()
        .replace("demo.example.com", "other.example.com");
    kctl.run_with(&["create", "-f", "-"], &spec)
        .expect_success();
    let which = kctl.run(&["get", "ig"]);
    assert_eq!(which.code, 2);
    assert!(
        which.err.contains("demo.example.com, other.example.com"),
        "{}",
        which.err
    );
    kctl.run(&["get", "ig", "--name", "other.example.com"])
        .expect_success();
}

/// Two public keys, with their fingerprints.
const SSH_KEYS: [(&str, &str); 2] = [
    (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
        "be:86:90:2b:33:7b:1a:cd:8a:9e:55:64:d7:04:f3:29",
    ),
    (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ",
        "8c:fd:2f:9e:43:05:87:40:92:8b:e2:5c:20:bf:67:e1",
    ),
];

#[test]
fn an_ssh_key_is_replaced_and_deleted() {
    let kctl = stored_cluster();
    let [first, second] = SSH_KEYS.map(|(key, _)| {
        format!(
            "apiVersion: kops.k8s.io/v1alpha2\nkind: SSHCredential\nmetadata:\n  name: admin\n  labels:\n    kops.k8s.io/cluster: demo.example.com\nspec:\n  publicKey: {key}\n"
        )
    });
    let stored = || {
        let names = ["get", "sshpublickeys", "-o", "name"];
        kctl.run(&names).expect_success().trim().to_owned()
    };
    kctl.run_with(&["create", "-f", "-"], &first)
        .expect_success();
    kctl.run_with(&["create", "-f", "-"], &first)
        .expect_success();
    let another = kctl.run_with(&["create", "-f", "-"], &second);
    assert_eq!(another.code, 4, "{}", another.err);
    assert!(another.err.contains("kctl replace -f"), "{}", another.err);
    assert_eq!(stored(), SSH_KEYS[0].1);
    kctl.run_with(&["replace", "-f", "-"], &second)
        .expect_success();
    assert_eq!(stored(), SSH_KEYS[1].1);
    // Files without a key leave the stored one alone.
    let spec = kctl.run(&["get", "all", "-o", "yaml"]).expect_success();
    kctl.run_with(&["replace", "-f", "-"], &spec)
        .expect_success();
    assert_eq!(stored(), SSH_KEYS[1].1);

    let wrong = kctl.run(&["delete", "sshpublickey", SSH_KEYS[0].1, "--yes"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    let shown = kctl.run(&["delete", "sshpublickey"]).expect_success();
    assert!(shown.contains(SSH_KEYS[1].1), "{shown}");
    assert_eq!(stored(), SSH_KEYS[1].1);
    kctl.run(&["delete", "sshpublickey", SSH_KEYS[1].1, "--yes"])
        .expect_success();
    assert_eq!(stored(), "");
    let log = kctl.run(&["get", "operations"]).expect_success();
    assert!(log.contains("delete sshpublickey"), "{log}");
    let none = kctl.run(&["delete", "sshpublickey", "--yes"]);
    assert_eq!(none.code, 2, "{}", none.err);
}
