//! Secrets of the user's for instances: put into the store, listed, shown only on demand, taken out again; and an update that
//! would leave instances without one.

use crate::kctl::Kctl;
use crate::scenario::{REGION, kctl_with_cloud};
use crate::simulator::Simulator;
use node::secret::{Secret, write_stored};

const ENCRYPTION: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - secretbox: {keys: [{name: a, secret: c3dvcmRmaXNoLWlzLXRoZS1wYXNzd29yZC1oZXJlLi4=}]}\n  - identity: {}\n";
const DOCKER: &str =
    r#"{"auths": {"registry.example.com": {"auth": "c3dvcmRmaXNoOnN3b3JkZmlzaC1hZ2Fpbg=="}}}"#;
const CILIUM: &str = "keys: 3+ rfc4106(gcm(aes)) 5707d7d15715715715715715715715715715715a 128\n";
const TELLING: [&str; 3] = ["c3dvcmRmaXNoLWlz", "c3dvcmRmaXNoOnN3", "5707d7d157"];

/// A cluster in a store that is a folder.
fn stored_cluster() -> Kctl {
    stored_cluster_with(&[])
}

fn stored_cluster_with(options: &[&str]) -> Kctl {
    let kctl = Kctl::with_store();
    let create = [
        "create",
        "cluster",
        "demo.example.com",
        "--zones",
        "eu-west-1a",
        "--dry-run",
    ];
    let spec = kctl.run(&[&create, options].concat());
    let file = kctl.write_file("cluster.yaml", &spec.expect_success());
    kctl.run(&["create", "-f", &file]).expect_success();
    kctl
}

fn read_object(kctl: &Kctl, name: &str) -> Option<String> {
    let path = format!("store/demo.example.com/secrets/{name}");
    std::fs::read_to_string(kctl.home_path(&path)).ok()
}

#[test]
fn a_secret_is_put_listed_shown_on_demand_and_taken_out() {
    let kctl = stored_cluster();
    assert!(kctl.run(&["get", "secrets"]).err.contains("has no secrets"));
    let file = kctl.write_file("config.json", DOCKER);
    let put = kctl.run(&["create", "secret", "dockerconfig", "-f", &file]);
    assert_eq!(put.code, 0, "{}", put.err);
    assert!(put.err.contains("kctl update"), "{}", put.err);
    // As kOps writes it.
    let expected = "eyJhdXRocyI6IHsicmVnaXN0cnkuZXhhbXBsZS5jb20iOiB7ImF1dGgiOiAiYzNkdmNtUm1hWE5vT25OM2IzSmtabWx6YUMxaFoyRnBiZz09In19fQ==";
    assert_eq!(
        read_object(&kctl, "dockerconfig").unwrap(),
        format!("{{\"Data\":\"{expected}\"}}")
    );

    let again = kctl.run(&["create", "secret", "dockerconfig", "-f", &file]);
    assert_eq!(again.code, 4, "{}", again.err);
    assert!(again.err.contains("--force"), "{}", again.err);
    let other = DOCKER.replace("registry.", "mirror.");
    let forced = [
        "create",
        "secret",
        "dockerconfig",
        "demo.example.com",
        "-f",
        "-",
        "--force",
    ];
    kctl.run_with(&forced, &other).expect_success();

    assert_eq!(
        kctl.run(&["get", "secrets"]).expect_success(),
        "NAME\ndockerconfig\n"
    );
    assert_eq!(
        kctl.run(&["get", "secrets", "-o", "name"]).expect_success(),
        "secret/dockerconfig\n"
    );
    let listed = kctl.run(&["get", "secrets", "-o", "json"]).expect_success();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&listed).unwrap(),
        serde_json::json!([{"name": "dockerconfig"}])
    );
    let shown = kctl
        .run(&["get", "secret", "dockerconfig", "-o", "plaintext"])
        .expect_success();
    assert_eq!(shown.trim_end(), other);
    assert_eq!(kctl.run(&["get", "secrets", "-o", "plaintext"]).code, 2);

    let shown = kctl
        .run(&["delete", "secret", "dockerconfig"])
        .expect_success();
    assert!(shown.contains("would be deleted"), "{shown}");
    assert!(read_object(&kctl, "dockerconfig").is_some());
    kctl.run(&["delete", "secret", "dockerconfig", "--yes"])
        .expect_success();
    assert_eq!(read_object(&kctl, "dockerconfig"), None);
    assert_eq!(
        kctl.run(&["delete", "secret", "dockerconfig", "--yes"])
            .code,
        2
    );
}

#[test]
fn what_no_machine_could_use_is_refused_without_being_shown() {
    let kctl = stored_cluster();
    for (name, text) in [
        ("dockerconfig", DOCKER.replace("auths", "auth")),
        ("dockerconfig", DOCKER.replace('}', "")),
        (
            "encryptionconfig",
            ENCRYPTION.replace("providers", "provider"),
        ),
        (
            "encryptionconfig",
            ENCRYPTION.replace("resources:\n", "resources: [\n"),
        ),
        ("encryptionconfig", ENCRYPTION.replace("Li4=", "")),
        ("encryptionconfig", DOCKER.to_owned()),
        ("encryptionconfig", format!("{ENCRYPTION}---\n{ENCRYPTION}")),
        ("ciliumpassword", CILIUM.replace("keys", "key")),
        ("ciliumpassword", CILIUM.replace("3+", "20+")),
    ] {
        let ran = kctl.run_with(&["create", "secret", name, "-f", "-", "-vv"], &text);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("hint:"), "{}", ran.err);
        assert!(
            TELLING.iter().all(|part| !ran.err.contains(part)),
            "{}",
            ran.err
        );
        assert_eq!(read_object(&kctl, name), None);
    }
    let unknown = kctl.run(&["create", "secret", "kubepassword", "-f", "-"]);
    assert_eq!(unknown.code, 2, "{}", unknown.err);
}

#[test]
fn an_update_that_would_leave_the_api_server_without_its_secret_is_refused_and_names_the_command() {
    let kctl = stored_cluster();
    let set = ["edit", "cluster", "--set", "spec.encryptionConfig=true"];
    kctl.run(&set).expect_success();
    let command = "kctl create secret encryptionconfig -f FILE --name demo.example.com";
    for words in [&["update"][..], &["update", "--yes"]] {
        let refused = kctl.run(words);
        assert_eq!(refused.code, 4, "{}", refused.err);
        assert!(refused.err.contains(command), "{}", refused.err);
    }
    kctl.run_with(
        &["create", "secret", "encryptionconfig", "-f", "-"],
        ENCRYPTION,
    )
    .expect_success();
    // Without credentials it comes no further than AWS.
    assert!(!kctl.run(&["update"]).err.contains("encryptionconfig"));

    let refused = kctl.run(&["delete", "secret", "encryptionconfig", "--yes"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(read_object(&kctl, "encryptionconfig").is_some());
}

/// `kctl create secret` needs the spec, so that is stored first.
#[test]
fn a_new_cluster_that_needs_a_secret_is_stored_and_the_commands_that_come_next_are_named() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let before = simulator.list_resources(REGION);
    let (cis, encrypted) = ("spec.profile=cis", "spec.encryptionConfig=true");
    let cases = [
        (cis, false),
        (cis, true),
        (encrypted, false),
        (encrypted, true),
    ];
    for (number, (set, yes)) in cases.into_iter().enumerate() {
        let name = format!("c{number}.example.com");
        let words = [
            "create",
            "cluster",
            &name,
            "--zones",
            "eu-west-1a",
            "--set",
            set,
        ];
        let more: &[&str] = if yes { &["--yes"] } else { &[] };
        let ran = kctl.run(&[&words[..], more].concat());
        assert_eq!(ran.code, if yes { 4 } else { 0 }, "{words:?}: {}", ran.err);
        let secret = format!("kctl create secret encryptionconfig -f FILE --name {name}");
        let update = format!("kctl update {name}");
        for said in [secret, update] {
            assert!(ran.err.contains(&said), "{said}: {}", ran.err);
        }
        // Only the state store, in a bucket of the same AWS, has more.
        let mut made = simulator.list_resources(REGION);
        made.retain(|line| !line.starts_with("s3 object "));
        assert_eq!(made, before, "{words:?}");
        let create = ["create", "secret", "encryptionconfig", &name, "-f", "-"];
        kctl.run_with(&create, ENCRYPTION).expect_success();
        let planned = kctl.run(&["update", &name]).expect_success();
        assert!(planned.contains("to add"), "{planned}");
    }
}

/// What is kept of former encryption configurations, as it was stored.
fn kept_configurations(kctl: &Kctl) -> Vec<String> {
    let folder = kctl.home_path("store/demo.example.com/secrets");
    let all = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let kept = all.filter(|one| {
        let name = one.file_name().into_string().unwrap();
        name.starts_with("encryptionconfig-kept-")
    });
    kept.map(|one| std::fs::read_to_string(one.path()).unwrap())
        .collect()
}

/// Backups have Secrets that only the former keys decrypt.
#[test]
fn no_key_of_encrypted_secrets_is_lost_by_a_new_one_or_a_deletion() {
    let kctl = stored_cluster();
    let create = ["create", "secret", "encryptionconfig", "-f", "-"];
    let force = ["--force"];
    let replace = [&create[..], &force].concat();
    kctl.run_with(&create, ENCRYPTION).expect_success();
    let first = read_object(&kctl, "encryptionconfig").unwrap();
    // The same once more is nothing to keep.
    kctl.run_with(&replace, ENCRYPTION).expect_success();
    assert_eq!(kept_configurations(&kctl), Vec::<String>::new());
    let new_key = "name: b, secret: c3dvcmRmaXNoLWlzLXRoZS1wYXNzd29yZC10b28hLi4=";
    let only_new = ENCRYPTION.replace(
        "name: a, secret: c3dvcmRmaXNoLWlzLXRoZS1wYXNzd29yZC1oZXJlLi4=",
        new_key,
    );
    let refused = kctl.run_with(&replace, &only_new);
    assert_eq!(refused.code, 4, "{}", refused.err);
    for word in ["a of secretbox", "--drop-keys"] {
        assert!(refused.err.contains(word), "{word}: {}", refused.err);
    }
    assert!(!refused.err.contains(TELLING[0]), "{}", refused.err);
    assert_eq!(read_object(&kctl, "encryptionconfig").unwrap(), first);
    assert_eq!(kept_configurations(&kctl), Vec::<String>::new());

    let both = ENCRYPTION.replace("keys: [", &format!("keys: [{{{new_key}}}, "));
    let ran = kctl.run_with(&replace, &both);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("secrets/encryptionconfig-kept-"),
        "{}",
        ran.err
    );
    assert_eq!(kept_configurations(&kctl), [first.as_str()]);
    // Names have seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    kctl.run_with(&[&replace[..], &["--drop-keys"]].concat(), &only_new)
        .expect_success();
    assert_eq!(kept_configurations(&kctl).len(), 2);
    assert_eq!(
        kctl.run(&["get", "secrets"]).expect_success(),
        "NAME\nencryptionconfig\n"
    );
    std::thread::sleep(std::time::Duration::from_millis(1100));
    kctl.run(&["delete", "secret", "encryptionconfig", "--yes"])
        .expect_success();
    assert_eq!(read_object(&kctl, "encryptionconfig"), None);
    assert_eq!(kept_configurations(&kctl).len(), 3);
}

/// No API server has encrypted anything with a key that none takes. Those beside it may have been in use before.
#[test]
fn a_key_that_no_api_server_takes_is_replaced_and_the_keys_beside_it_are_not_lost() {
    let kctl = stored_cluster();
    let wrong = ENCRYPTION.replace("keys: [", "keys: [{name: wrong, secret: bmV3}, ");
    let path = kctl.home_path("store/demo.example.com/secrets/encryptionconfig");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, write_stored(&Secret::new(wrong)).reveal()).unwrap();
    let replace = ["create", "secret", "encryptionconfig", "-f", "-", "--force"];
    let only_new = ENCRYPTION.replace("name: a", "name: b");
    let refused = kctl.run_with(&replace, &only_new);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(refused.err.contains("a of secretbox"), "{}", refused.err);
    assert!(!refused.err.contains("wrong"), "{}", refused.err);
    kctl.run_with(&replace, ENCRYPTION).expect_success();
    assert_eq!(kept_configurations(&kctl).len(), 1);
}

/// Nodes tell the former key and the new one apart by its number.
#[test]
fn a_key_of_ipsec_is_needed_where_packets_are_encrypted_and_another_one_has_another_number() {
    let kctl = stored_cluster_with(&["--networking", "cilium"]);
    let set = "spec.networking.cilium.enableEncryption=true";
    kctl.run(&["edit", "cluster", "--set", set])
        .expect_success();
    let refused = kctl.run(&["update"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    let command = "kctl create secret ciliumpassword -f FILE --name demo.example.com";
    assert!(refused.err.contains(command), "{}", refused.err);

    let create = ["create", "secret", "ciliumpassword", "-f", "-"];
    let replace = [&create[..], &["--force"]].concat();
    kctl.run_with(&create, CILIUM).expect_success();
    // Without credentials it comes no further than AWS.
    assert!(!kctl.run(&["update"]).err.contains("ciliumpassword"));
    kctl.run_with(&replace, CILIUM).expect_success();
    let other = CILIUM.replace("5707", "5708");
    let later = other.replace("3+", "5+");
    let shorter = other.replace("3+", "4+").replace("128", "96");
    for (wrong, said) in [(&other, "4+"), (&later, "4+"), (&shorter, "length")] {
        let refused = kctl.run_with(&replace, wrong);
        assert_eq!(refused.code, 4, "{}", refused.err);
        assert!(refused.err.contains(said), "{}", refused.err);
        assert!(!refused.err.contains("5708"), "{}", refused.err);
    }
    kctl.run_with(&replace, &other.replace("3+", "4+"))
        .expect_success();
    let refused = kctl.run(&["delete", "secret", "ciliumpassword", "--yes"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(read_object(&kctl, "ciliumpassword").is_some());
}
