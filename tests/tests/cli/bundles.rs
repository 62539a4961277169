//! `kctl bundle`: everything that instances need in one file, checked, stored, and the only place that they get it from.

use crate::assets::{field_of_all, list_assets, stored_objects};
use crate::internet::Internet;
use crate::kctl::{Kctl, KctlOutput};
use crate::scenario::{NAME, REGION, create_cluster, kctl_with_cloud};
use crate::simulator::Simulator;
use node::config::{ImageArchive, read_node_config};
use node::digest::sha256_hex;
use node::pki::{STATE_SIGNER, keyset_path, read_keyset};
use node::signed::{SignedPlace, sign_text};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;
use time::OffsetDateTime;

/// A cluster in the store, whose files and images are published.
fn stored_cluster(simulator: &Simulator) -> (Kctl, Internet) {
    let mut kctl = kctl_with_cloud(simulator);
    let internet = Internet::connect(&mut kctl, simulator);
    let catalog = "spec.assets.catalog=catalog.yaml";
    create_cluster(&kctl, &["--networking", "flannel", "--set", catalog]).expect_success();
    (kctl, internet)
}

fn create(kctl: &Kctl, file: &str) -> String {
    kctl.run(&["bundle", "create", "--out", file])
        .expect_success()
}

fn read(kctl: &Kctl, file: &str) -> Vec<u8> {
    std::fs::read(kctl.home_path(file)).expect("a file")
}

/// Stores a bundle and has the spec name it.
fn use_bundle(kctl: &Kctl, file: &str) {
    let pushed = kctl.run(&["bundle", "push", file]).expect_success();
    let set = format!("spec.assets.bundle={}", pushed.trim());
    kctl.run(&["edit", "cluster", "--set", &set])
        .expect_success();
}

fn expect_failure(ran: &KctlOutput, code: i32, words: &str) {
    assert_eq!(ran.code, code, "{}", ran.err);
    assert!(ran.err.contains(words), "{words}: {}", ran.err);
}

#[test]
fn a_cluster_is_made_from_its_bundle_when_nothing_else_is_reachable() {
    let simulator = Simulator::start_simulator();
    let (kctl, internet) = stored_cluster(&simulator);
    let created = create(&kctl, "demo.bundle");
    assert!(created.contains(&format!("for {NAME}")), "{created}");
    // What is left of an attempt that ended before its bundle was in its place.
    kctl.write_file("again.bundle.sig", "the signature of another bundle");
    assert_eq!(
        create(&kctl, "again.bundle"),
        created.replace("demo.bundle", "again.bundle")
    );
    assert_eq!(read(&kctl, "demo.bundle"), read(&kctl, "again.bundle"));
    assert!(!kctl.home_path("demo.bundle.parts").exists());
    let verified = kctl.run(&["bundle", "verify", "demo.bundle"]);
    assert_eq!(verified.expect_success(), created);

    internet.cut();
    use_bundle(&kctl, "demo.bundle");
    let again = kctl.run(&["bundle", "push", "again.bundle"]);
    for words in ["stored 0 files", "was signed at "] {
        assert!(again.err.contains(words), "{}", again.err);
    }
    again.expect_success();
    // What has another size than its index says is stored again.
    simulator.run_python(REGION, &format!(
        "keys = boto('s3').get_paginator('list_objects_v2').paginate(Bucket='state', Prefix='clusters/{NAME}/assets/').search('Contents[].Key')\n\
         boto('s3').put_object(Bucket='state', Key=[key for key in keys if not key.endswith('.json')][0], Body=b'cut off')"
    ));
    let again = kctl.run(&["bundle", "push", "again.bundle"]);
    assert!(again.err.contains("stored 1 files"), "{}", again.err);
    again.expect_success();
    let assets = list_assets(&kctl);
    let own = format!("s3://state/clusters/{NAME}/assets/");
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    for list in ["files", "images"] {
        listed.extend(field_of_all(&assets, list, "download"));
    }
    assert!(listed.iter().all(|url| url.starts_with(&own)), "{listed:?}");

    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
    let stored = stored_objects(&simulator, "state", &format!("clusters/{NAME}/assets/"));
    let configs = stored_objects(&simulator, "state", &format!("clusters/{NAME}/igconfig/"));
    let mut used = BTreeSet::new();
    for text in configs.values() {
        let config = read_node_config(text, &sha256_hex(text)).expect("a NodeConfig");
        assert!(!config.assets.is_empty() && !config.images.is_empty());
        let archives = config.images.iter().map(ImageArchive::download);
        for asset in config.assets.iter().cloned().chain(archives) {
            for url in &asset.urls {
                let key = url.strip_prefix("s3://state/").expect("an own object");
                // Python returned each byte as a character.
                let bytes = stored[key].chars().map(u8::try_from);
                let content: Vec<u8> = bytes.map(|byte| byte.expect("a byte")).collect();
                assert_eq!(Some(sha256_hex(content)), asset.sha256, "{url}");
                used.insert(url.clone());
            }
        }
    }
    let used: BTreeSet<&str> = used.iter().map(String::as_str).collect();
    assert_eq!(used, listed);
}

#[test]
fn a_bundle_that_was_changed_or_is_for_another_cluster_is_refused() {
    let simulator = Simulator::start_simulator();
    let (kctl, _internet) = stored_cluster(&simulator);
    create(&kctl, "demo.bundle");
    let signature = kctl.home_path("demo.bundle.sig");
    let other = [
        "create",
        "cluster",
        "other.example.com",
        "--zones",
        "eu-west-1a",
    ];
    kctl.run(&other).expect_success();
    let push = |cluster: &str| kctl.run(&["bundle", "push", "demo.bundle", cluster]);

    expect_failure(&push("other.example.com"), 2, &format!("is for {NAME}"));
    let create_again = kctl.run(&["bundle", "create", NAME, "--out", "demo.bundle"]);
    expect_failure(&create_again, 2, "demo.bundle exists");
    let whole = read(&kctl, "demo.bundle.sig");
    std::fs::remove_file(&signature).expect("removed");
    expect_failure(&push(NAME), 2, "copy the signature too");
    let create_again = kctl.run(&["bundle", "create", NAME, "--out", "demo.bundle"]);
    expect_failure(&create_again, 2, "it has no signature: remove it");
    for mistyped in [["verify", "dem.bundle"], ["push", "dem.bundle"]] {
        let ran = kctl.run(&["bundle", mistyped[0], mistyped[1], "--name", NAME]);
        expect_failure(&ran, 2, "name a file that");
    }
    let below_a_file = kctl.run(&["bundle", "create", NAME, "--out", "demo.bundle/demo"]);
    expect_failure(&below_a_file, 1, "a folder that you can write to");
    let text = String::from_utf8(whole.clone()).expect("text");
    let changed = text.replace(|c: char| c.is_ascii_digit(), "1");
    std::fs::write(&signature, changed).expect("written");
    expect_failure(&push(NAME), 1, "is no signature of the keyset state-signer");
    std::fs::write(&signature, whole).expect("written");

    let mut bytes = read(&kctl, "demo.bundle");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(kctl.home_path("demo.bundle"), bytes).expect("written");
    expect_failure(&push(NAME), 1, "assets/");
    let verified = kctl.run(&["bundle", "verify", "demo.bundle"]);
    expect_failure(&verified, 1, "assets/");
    let stored = stored_objects(&simulator, "state", &format!("clusters/{NAME}/assets/"));
    assert_eq!(stored.len(), 0);
}

/// Who carries bundles could keep a cluster on an old one, whose signature is good.
#[test]
fn a_bundle_that_was_signed_before_the_newest_one_is_stored_on_purpose_only() {
    let simulator = Simulator::start_simulator();
    let (kctl, _internet) = stored_cluster(&simulator);
    // Signatures have seconds.
    let wait = || std::thread::sleep(Duration::from_millis(1100));
    create(&kctl, "old.bundle");
    let detector = "spec.nodeProblemDetector.enabled=true";
    kctl.run(&["edit", "cluster", "--set", detector])
        .expect_success();
    for file in ["new.bundle", "same.bundle"] {
        wait();
        create(&kctl, file);
    }
    let push = |words: &[&str]| kctl.run(&[&["bundle", "push"][..], words].concat());
    let stored = || stored_objects(&simulator, "state", &format!("clusters/{NAME}/"));

    // Again, and with an earlier signature of the same index: nothing becomes older.
    let pushes = ["old.bundle", "old.bundle", "same.bundle", "new.bundle"];
    let named = pushes.map(|file| push(&[file]).expect_success());
    assert!(named[0] != named[2] && named[2] == named[3], "{named:?}");
    // An update forgets no bundle, and finds nothing to do because of one.
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
    let before = stored();
    expect_failure(&push(&["old.bundle"]), 4, "--allow-older");
    assert_eq!(stored(), before);

    simulator.run_python(
        REGION,
        &format!(
            "boto('s3').delete_object(Bucket='state', Key='clusters/{NAME}/assets/{}/bundle.json')",
            named[0].trim()
        ),
    );
    assert_ne!(stored(), before);
    let back = push(&["old.bundle", "--allow-older"]).expect_success();
    assert_eq!((back, stored()), (named[0].clone(), before));
    expect_failure(&push(&["old.bundle"]), 4, "--allow-older");
    // Without its index nobody knows whether the signature of the newest one is good.
    simulator.run_python(
        REGION,
        &format!(
            "boto('s3').delete_object(Bucket='state', Key='clusters/{NAME}/assets/{}/bundle.json')",
            named[2].trim()
        ),
    );
    push(&["old.bundle"]).expect_success();
}

/// Who stores bundles does not know of others who do.
#[test]
fn a_push_that_is_overtaken_by_that_of_a_newer_bundle_does_not_name_its_own_as_the_newest() {
    let simulator = Simulator::start_simulator();
    let (kctl, _internet) = stored_cluster(&simulator);
    create(&kctl, "old.bundle");
    // They differ in their signatures, which have seconds.
    std::thread::sleep(Duration::from_millis(1100));
    create(&kctl, "new.bundle");
    kctl.run(&["bundle", "push", "new.bundle"]).expect_success();
    let record = format!("clusters/{NAME}/newest-bundle.sig");
    let named = || stored_objects(&simulator, "state", &record);
    let copy = |from: &str, to: &str| {
        simulator.run_python(REGION, &format!("boto('s3').copy_object(Bucket='state', Key={to:?}, CopySource={{'Bucket': 'state', 'Key': {from:?}}})"))
    };
    let newest = named();
    assert_eq!(newest.len(), 1);
    copy(&record, "aside");
    let forget = format!("boto('s3').delete_object(Bucket='state', Key={record:?})");
    simulator.run_python(REGION, &forget);

    // kctl repeats the write for three seconds.
    simulator.set_faults(&json!([{"service": "s3", "operation": "PutObject", "path": "*/newest-bundle.sig", "times": 4,
        "code": "SlowDown", "status": 503}]));
    let mut slow = kctl.start_command(&["bundle", "push", "old.bundle"], Stdio::null());
    while simulator.faults_left()[0]["times"] == 4 && slow.try_wait().expect("kctl").is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    copy("aside", &record);
    kctl.wait_for_end(slow).expect_success();
    assert_eq!(named(), newest);
}

/// While it is the newest one, every other bundle would be older, or none.
#[test]
fn a_bundle_with_a_signature_from_the_future_is_refused() {
    let simulator = Simulator::start_simulator();
    let (kctl, _internet) = stored_cluster(&simulator);
    create(&kctl, "demo.bundle");
    let push = |words: &[&str]| kctl.run(&[&["bundle", "push", "demo.bundle"][..], words].concat());
    let sha256 = push(&[]).expect_success();
    let stored = || stored_objects(&simulator, "state", &format!("clusters/{NAME}/"));
    let before = stored();
    let text = |key: &str| before[&format!("clusters/{NAME}/{key}")].as_str();
    let signer = read_keyset(STATE_SIGNER, text(&keyset_path(STATE_SIGNER))).expect("a keyset");
    let index = text(&format!("assets/{}/bundle.json", sha256.trim()));
    let (cluster, key) = (NAME, "bundle.json");
    let now = u64::try_from(OffsetDateTime::now_utc().unix_timestamp()).expect("after 1970");
    let hour = 60 * 60;
    let ways: [&[&str]; 2] = [&[], &["--allow-older"]];
    for (serial, code) in [(now + 25 * hour, 4), (now + hour, 0)] {
        let signature = sign_text(&signer, SignedPlace { cluster, key }, index, serial);
        kctl.write_file("demo.bundle.sig", &signature.expect("a signature"));
        for words in ways {
            let ran = push(words);
            assert_eq!(ran.code, code, "{}", ran.err);
            if code != 0 {
                expect_failure(&ran, code, "more than a day from now");
                assert_eq!(stored(), before);
            }
        }
    }
}

#[test]
fn a_spec_that_needs_more_than_its_bundle_has_is_refused_before_anything_changes() {
    let simulator = Simulator::start_simulator();
    let (kctl, _internet) = stored_cluster(&simulator);
    let unknown = format!("spec.assets.bundle={}", "0".repeat(64));
    kctl.run(&["edit", "cluster", "--set", &unknown])
        .expect_success();
    let refused = kctl.run(&["update", "--yes"]);
    expect_failure(&refused, 4, "is not in the state store");
    create(&kctl, "demo.bundle");
    use_bundle(&kctl, "demo.bundle");
    let image = "spec.cloudControllerManager.image=registry.example.com/own:1";
    kctl.run(&["edit", "cluster", "--set", image])
        .expect_success();
    let refused = kctl.run(&["update", "--yes"]);
    expect_failure(&refused, 2, "lacks registry.example.com/own:1");
    let calls = simulator.calls_by_operation();
    assert!(calls["calls"].get("ec2.CreateVpc").is_none(), "{calls}");
}
