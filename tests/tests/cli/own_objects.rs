//! Objects of users: stored, shown, planned, applied as an addon, and taken out again.

use crate::kctl::{Kctl, KctlOutput};
use crate::plans::stored_cluster;
use crate::scenario::{NAME, REGION};
use crate::simulator::Simulator;

const PASSWORD: &str = "a-password-that-no-plan-shows";

/// A ConfigMap and a Secret.
fn objects() -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: shop}}\ndata: {{colour: red}}\n---\n\
         apiVersion: v1\nkind: Secret\nmetadata: {{name: login, namespace: shop}}\nstringData: {{password: {PASSWORD}}}\n"
    )
}

const MANIFEST: &str = "addons/cluster-addons.kops.k8s.io/default.yaml";

fn assert_shows(ran: &KctlOutput, parts: &[&str]) {
    for part in parts {
        let all = format!("{}{}", ran.out, ran.err);
        assert!(all.contains(part), "{part}\n{all}");
    }
    assert!(
        !ran.out.contains(PASSWORD) && !ran.err.contains(PASSWORD),
        "{}",
        ran.out
    );
}

fn store(kctl: &Kctl, words: &[&str], text: &str) -> KctlOutput {
    kctl.run_with(&[words, &["-f", "-", "--name", NAME]].concat(), text)
}

fn stored_manifest(simulator: &Simulator) -> String {
    simulator.run_python(
        REGION,
        &format!("print(boto('s3').get_object(Bucket='state', Key='clusters/{NAME}/{MANIFEST}')['Body'].read().decode())"),
    )
}

#[test]
fn objects_of_users_are_stored_planned_written_once_and_removed() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    kctl.run(&["update", "--yes"]).expect_success();
    let calls_of_a_plan = || {
        simulator.forget_calls();
        assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
        simulator.call_count()
    };
    let usual = calls_of_a_plan();

    let ran = store(&kctl, &["create"], &objects());
    assert_shows(
        &ran,
        &["stored ConfigMap shop/settings", "stored Secret shop/login"],
    );
    ran.expect_success();
    let plan = kctl.run(&["update", "-o", "wide"]);
    assert_shows(
        &plan,
        &[
            MANIFEST,
            "addons/bootstrap-channel.yaml",
            "cluster-addons.kops.k8s.io",
        ],
    );
    for form in ["json", "events"] {
        assert_shows(
            &kctl.run(&["update", "-o", form, "--plan-out", "own.plan"]),
            &[MANIFEST],
        );
    }
    let saved = std::fs::read_to_string(kctl.home_path("own.plan")).expect("a plan");
    assert!(!saved.contains(PASSWORD));
    kctl.run(&["update", "--plan", "own.plan", "--yes"])
        .expect_success();
    let manifest = stored_manifest(&simulator);
    for part in [
        PASSWORD,
        "colour: red",
        "app.kubernetes.io/managed-by: kctl",
    ] {
        assert!(manifest.contains(part), "{part}\n{manifest}");
    }
    assert_eq!(calls_of_a_plan(), usual + 1, "the objects are read once");
    for words in [
        &["update", "--exit-code"][..],
        &["update", "--refresh", "--exit-code"],
    ] {
        assert_eq!(kctl.run(words).code, 0, "{words:?}");
    }

    // A changed password is a change that is shown without it; so is a Secret that leaves.
    let changed = objects().replace(PASSWORD, &format!("{PASSWORD}-2"));
    store(&kctl, &["replace"], &changed).expect_success();
    assert_shows(&kctl.run(&["update", "-o", "wide"]), &["sha256"]);
    kctl.run(&["delete", "object", "secret", "login", "--yes"])
        .expect_success();
    assert_shows(&kctl.run(&["update", "-o", "wide"]), &["colour: red"]);
    kctl.run(&["delete", "object", "ConfigMap", "settings", "--yes"])
        .expect_success();
    let plan = kctl.run(&["update", "-o", "wide"]);
    assert_shows(&plan, &[&format!("- {MANIFEST}")[2..]]);
    kctl.run(&["update", "--yes"]).expect_success();
    let keys = simulator.run_python(
        REGION,
        "print([one['Key'] for one in boto('s3').list_objects_v2(Bucket='state')['Contents']])",
    );
    assert!(!keys.contains(MANIFEST), "{keys}");
    assert_eq!(calls_of_a_plan(), usual);
}

#[test]
fn what_is_wrong_with_objects_is_said_before_anything_is_stored_or_changed() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    for (words, text, said) in [
        (
            &["create"][..],
            "apiVersion: v1\nkind: ConfigMap\n",
            "-, line 1: ConfigMap has no metadata.name",
        ),
        (
            &["create"],
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: '?'}\n",
            "-, line 1: Secret a: data has a value that is not base64",
        ),
        (
            &["create"],
            &format!("{map}---\n{map}"),
            "-, line 5: ConfigMap a is given twice, the first time in -, line 1",
        ),
        (&["replace"], map, "ConfigMap a does not exist yet"),
    ] {
        let ran = store(&kctl, words, text);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(
            ran.err.contains(said) && ran.err.contains("hint:"),
            "{said}\n{}",
            ran.err
        );
    }
    store(&kctl, &["create"], map).expect_success();
    let ran = store(&kctl, &["create"], map);
    assert_eq!(ran.code, 4);
    assert!(
        ran.err.contains("ConfigMap a exists already"),
        "{}",
        ran.err
    );

    // What belongs to an addon of kctl is refused by the plan.
    let core_dns = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: coredns, namespace: kube-system}\n";
    store(&kctl, &["create"], core_dns).expect_success();
    let ran = kctl.run(&["update", "--yes"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    let said = "Deployment kube-system/coredns belongs to the addon coredns.addons.k8s.io";
    let file = "clusteraddons/default, line ";
    assert!(
        ran.err.contains(said) && ran.err.contains(file),
        "{}",
        ran.err
    );
}

#[test]
fn files_beside_it_are_applied_too_and_get_shows_all() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    store(&kctl, &["create"], &objects()).expect_success();
    let put = |name: &str, text: &str| {
        simulator.run_python(
            REGION,
            &format!("boto('s3').put_object(Bucket='state', Key='clusters/{NAME}/clusteraddons/{name}', Body={text:?})"),
        )
    };
    put(
        "team/more.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
    );
    put("README", "Hello");
    let shown = kctl.run(&["get", "objects"]).expect_success();
    insta::assert_snapshot!("objects", shown);
    let ran = kctl.run(&["update", "-o", "wide"]);
    assert_shows(&ran, &["clusteraddons/README is not applied", MANIFEST]);
    let all = kctl.run(&["get", "all", "-o", "yaml"]).expect_success();
    assert!(
        all.contains("kind: Namespace") && all.contains("kind: InstanceGroup"),
        "{all}"
    );
    // Only the file that kctl writes can be changed by it.
    let ran = kctl.run(&["delete", "object", "Namespace", "shop", "--yes"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("team/more.yaml"), "{}", ran.err);
    put(
        "team/more.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: shop}\n",
    );
    let ran = kctl.run(&["update"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err
            .contains("team/more.yaml, line 1: Secret shop/login belongs to"),
        "{}",
        ran.err
    );
}

const LIST: &str = "kind: Addons\nmetadata: {name: team}\nspec:\n  addons:\n  - {name: team.example.com, version: 1.0.0, manifest: team/v1.yaml}\n";

#[test]
fn lists_of_addons_in_the_bucket_are_read_by_the_update_and_nowhere_else() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let put = |key: &str, text: &str| {
        simulator.run_python(
            REGION,
            &format!("boto('s3').put_object(Bucket='state', Key='{key}', Body={text:?})"),
        )
    };
    let set = |place: &str| {
        let set = format!("spec.addons=[{{\"manifest\": \"{place}\"}}]");
        kctl.run(&["edit", "cluster", "--set", &set])
    };
    set("s3://state/lists/team.yaml").expect_success();
    let ran = kctl.run(&["update"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(
        ran.err.contains("there is no s3://state/lists/team.yaml"),
        "{}",
        ran.err
    );

    put("lists/team.yaml", LIST);
    put("lists/team/v1.yaml", &objects());
    let addon = "addons/team.example.com/1.0.0.yaml";
    let plan = kctl.run(&["update", "-o", "wide"]);
    assert_shows(&plan, &[addon]);
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
    // The file changes: so does the plan, and what is applied only with the update.
    put("lists/team/v1.yaml", &objects().replace("red", "blue"));
    assert_shows(&kctl.run(&["update", "-o", "wide"]), &["colour: blue"]);
    put(
        "lists/team.yaml",
        &LIST.replace("version: 1.0.0", "version: 2.0.0, needsPKI: true"),
    );
    let ran = kctl.run(&["update"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("needsPKI"), "{}", ran.err);

    // Another bucket may be somebody else's.
    set("s3://elsewhere/team.yaml").expect_success();
    let ran = kctl.run(&["update"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err
            .contains("s3://elsewhere/team.yaml is not in the bucket of the state store"),
        "{}",
        ran.err
    );
    // An address that nobody answers is named.
    set("https://127.0.0.1:1/team.yaml").expect_success();
    let ran = kctl.run(&["update"]);
    assert!(
        ran.err.contains("https://127.0.0.1:1/team.yaml") && ran.err.contains("spec.addons"),
        "{}",
        ran.err
    );
}
