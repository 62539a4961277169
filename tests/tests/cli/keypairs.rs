//! Keys are rotated: what each step stores, what `update` plans after it, which instances it names, and what it refuses.

use crate::kctl::{Kctl, KctlOutput};
use crate::kept::replace_instances;
use crate::scenario::{NAME, REGION, kctl_with_cloud};
use crate::simulator::Simulator;
use node::addons::CHANNEL_KEY;
use node::pki::{STATE_SIGNER, keyset_path, read_keyset};
use node::signed::{SignedPlace, sign_text, signature_key};
use serde_json::{Value, json};
use std::process::Command;

/// A cluster in AWS: one control plane and one worker, whose machines come and go at once.
struct Cluster {
    simulator: Simulator,
    kctl: Kctl,
}

impl Cluster {
    fn new() -> Self {
        Self::with_options(Simulator::start_simulator(), &[])
    }

    fn with_options(simulator: Simulator, options: &[&str]) -> Self {
        let kctl = kctl_with_cloud(&simulator);
        let create = ["create", "cluster", NAME, "--zones", "eu-west-1a"];
        let one = ["--node-count", "1", "--yes"];
        kctl.run(&[&create[..], &one, options].concat())
            .expect_success();
        Self { simulator, kctl }
    }

    /// The instance of an Auto Scaling group.
    fn instance_of(&self, group: &str) -> String {
        let code = format!(
            "print(boto('autoscaling').describe_auto_scaling_groups(AutoScalingGroupNames=['{group}'])['AutoScalingGroups'][0]['Instances'][0]['InstanceId'])"
        );
        self.simulator.run_python(REGION, &code)
    }
}

fn run_in_cluster(kctl: &Kctl, words: &[&str]) -> KctlOutput {
    kctl.run(&[words, &["--name", NAME]].concat())
}

/// The keys of a keyset as `kctl get keypairs -o json` shows them.
fn keys_of(kctl: &Kctl, keyset: &str, more: &[&str]) -> Vec<Value> {
    let words = ["get", "keypairs", keyset, "-o", "json"];
    let shown = run_in_cluster(kctl, &[&words[..], more].concat()).expect_success();
    serde_json::from_str(&shown).expect("JSON")
}

fn states_of(kctl: &Kctl, keyset: &str) -> Vec<String> {
    let keys = keys_of(kctl, keyset, &["--distrusted"]);
    let state = |key: &Value| key["state"].as_str().expect("a state").to_owned();
    keys.iter().map(state).collect()
}

/// The Auto Scaling groups of control planes and of workers.
fn groups_of(simulator: &Simulator) -> [String; 2] {
    let names = simulator.run_python(
        REGION,
        "for g in boto('autoscaling').describe_auto_scaling_groups()['AutoScalingGroups']: print(g['AutoScalingGroupName'])",
    );
    let find = |start: &str| {
        let found = names.lines().find(|name| name.starts_with(start));
        found.expect("a group").to_owned()
    };
    [find("control-plane"), find("nodes")]
}

/// The launch templates that an update would change.
fn planned_templates(kctl: &Kctl) -> Vec<String> {
    let plan = kctl.run(&["update", NAME, "-o", "json"]).expect_success();
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let changes = plan["changes"].as_array().expect("changes").iter();
    let ids = changes.filter_map(|change| change["id"].as_str());
    let templates = ids.filter_map(|id| id.strip_prefix("launch_template/"));
    templates.map(str::to_owned).collect()
}

/// `update --yes`, and Auto Scaling replaces the instances of these groups.
fn bring_to_instances(cluster: &Cluster, groups: &[String]) {
    cluster
        .kctl
        .run(&["update", NAME, "--yes"])
        .expect_success();
    for group in groups {
        replace_instances(&cluster.simulator, group);
    }
}

fn expect_refused(ran: &KctlOutput, why: &str) {
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(why), "{}", ran.err);
    assert!(ran.err.contains("--force"), "{}", ran.err);
}

#[test]
fn the_authority_is_rotated_in_three_stages_and_each_waits_for_the_one_before() {
    let cluster = Cluster::new();
    let (kctl, simulator) = (&cluster.kctl, &cluster.simulator);
    let groups = groups_of(simulator);
    let [control_planes, workers] = &groups;
    assert_eq!(states_of(kctl, "kubernetes-ca"), ["primary"]);

    let made = run_in_cluster(kctl, &["create", "keypair", "kubernetes-ca"]);
    assert!(made.err.contains("kctl update"), "{}", made.err);
    made.expect_success();
    assert_eq!(states_of(kctl, "kubernetes-ca"), ["primary", "trusted"]);
    let promote = ["promote", "keypair", "kubernetes-ca"];
    let early = run_in_cluster(kctl, &promote);
    expect_refused(&early, "does not trust it yet");
    assert!(
        early.err.contains(&cluster.instance_of(control_planes)),
        "{}",
        early.err
    );
    assert!(
        early.err.contains(&cluster.instance_of(workers)),
        "{}",
        early.err
    );
    assert_eq!(
        planned_templates(kctl).len(),
        2,
        "every instance has the bundle"
    );

    // Only the control plane is replaced: the worker is in the way.
    bring_to_instances(&cluster, std::slice::from_ref(control_planes));
    let outdated = kctl.run(&["update", NAME, "--exit-code"]);
    assert_eq!(outdated.code, 0, "{}", outdated.out);
    let half = run_in_cluster(kctl, &promote);
    expect_refused(&half, "does not trust it yet");
    assert!(
        half.err.contains(&cluster.instance_of(workers)),
        "{}",
        half.err
    );
    assert!(!half.err.contains("of control-plane"), "{}", half.err);
    replace_instances(simulator, workers);
    run_in_cluster(kctl, &promote).expect_success();
    assert_eq!(states_of(kctl, "kubernetes-ca"), ["trusted", "primary"]);

    let distrust = ["distrust", "keypair", "kubernetes-ca"];
    expect_refused(&run_in_cluster(kctl, &distrust), "still uses what it signs");
    assert_eq!(
        planned_templates(kctl).len(),
        2,
        "every instance gets new certificates"
    );
    bring_to_instances(&cluster, &groups);
    let keys = keys_of(kctl, "kubernetes-ca", &["--instances"]);
    let count = |key: usize, what: &str| {
        keys[key]["instances"][what]
            .as_array()
            .expect("names")
            .len()
    };
    assert_eq!([count(0, "signedFor"), count(1, "signedFor")], [0, 2]);
    assert_eq!([count(0, "trustedBy"), count(1, "trustedBy")], [2, 2]);

    run_in_cluster(kctl, &distrust).expect_success();
    assert_eq!(states_of(kctl, "kubernetes-ca"), ["distrusted", "primary"]);
    assert_eq!(keys_of(kctl, "kubernetes-ca", &[]).len(), 1);
    bring_to_instances(&cluster, &groups);
    let keys = keys_of(kctl, "kubernetes-ca", &["--instances", "--distrusted"]);
    assert_eq!(keys[0]["instances"]["trustedBy"], Value::Array(Vec::new()));

    take_back(kctl, &keys);
}

/// A key that was distrusted is trusted again.
fn take_back(kctl: &Kctl, keys: &[Value]) {
    let old = keys[0]["id"].as_str().expect("an id");
    let again = run_in_cluster(kctl, &["promote", "keypair", "kubernetes-ca", old]);
    assert_eq!(again.code, 2, "{}", again.err);
    run_in_cluster(kctl, &["trust", "keypair", "kubernetes-ca", old]).expect_success();
    assert_eq!(states_of(kctl, "kubernetes-ca"), ["trusted", "primary"]);
    let new = keys[1]["id"].as_str().expect("an id");
    let own = run_in_cluster(
        kctl,
        &["distrust", "keypair", "kubernetes-ca", new, "--force"],
    );
    assert!(own.code == 2 && own.err.contains("primary"), "{}", own.err);
    let shown = run_in_cluster(kctl, &["get", "operations"]).expect_success();
    assert!(shown.contains("distrust keypair"), "{shown}");
}

#[test]
fn keys_of_tokens_concern_control_planes_and_tokens_of_pods_must_have_run_out() {
    let cluster = Cluster::new();
    let kctl = &cluster.kctl;
    let [control_planes, _] = groups_of(&cluster.simulator);
    run_in_cluster(kctl, &["create", "keypair", "service-account"]).expect_success();
    let templates = planned_templates(kctl);
    assert!(
        templates.len() == 1 && templates[0].starts_with("control-plane"),
        "{templates:?}"
    );
    bring_to_instances(&cluster, std::slice::from_ref(&control_planes));
    run_in_cluster(kctl, &["promote", "keypair", "service-account"]).expect_success();
    bring_to_instances(&cluster, std::slice::from_ref(&control_planes));
    let distrust = ["distrust", "keypair", "service-account"];
    expect_refused(&run_in_cluster(kctl, &distrust), "less than 25 hours ago");
    let forced = run_in_cluster(kctl, &[&distrust[..], &["--force"]].concat());
    assert!(
        forced.err.contains("less than 25 hours ago"),
        "{}",
        forced.err
    );
    forced.expect_success();
    assert_eq!(
        states_of(kctl, "service-account"),
        ["distrusted", "primary"]
    );
}

#[test]
fn a_key_of_tokens_signs_only_once_the_issuer_publishes_it() {
    let simulator = Simulator::start_simulator();
    simulator.run_python(
        REGION,
        "boto('s3').create_bucket(Bucket='issuer', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'}, ObjectOwnership='BucketOwnerPreferred')",
    );
    let cluster = Cluster::with_options(simulator, &["--discovery-store", "s3://issuer"]);
    let kctl = &cluster.kctl;
    let [control_planes, _] = groups_of(&cluster.simulator);
    let keys = format!("{NAME}/openid/v1/jwks");
    let read = format!(
        "print(boto('s3').get_object(Bucket='issuer', Key='{keys}')['Body'].read().decode())"
    );
    let before = cluster.simulator.run_python(REGION, &read);
    run_in_cluster(kctl, &["create", "keypair", "service-account"]).expect_success();
    bring_to_instances(&cluster, std::slice::from_ref(&control_planes));
    // As an update leaves it that failed there.
    let promote = ["promote", "keypair", "service-account"];
    let put =
        format!("boto('s3').put_object(Bucket='issuer', Key='{keys}', Body={before:?}.encode())");
    cluster.simulator.run_python(REGION, &put);
    expect_refused(&run_in_cluster(kctl, &promote), &keys);
    kctl.run(&["update", "--yes"]).expect_success();
    run_in_cluster(kctl, &promote).expect_success();
}

#[test]
fn all_keysets_take_a_step_together_or_not_at_all() {
    let cluster = Cluster::new();
    let kctl = &cluster.kctl;
    run_in_cluster(kctl, &["create", "keypair", "all"]).expect_success();
    let keys = run_in_cluster(kctl, &["get", "keypairs", "-o", "json"]).expect_success();
    let keys: Vec<Value> = serde_json::from_str(&keys).expect("JSON");
    // Eight keysets with two keys; those of the signer of the store are rotated by name only.
    assert_eq!(keys.len(), 8 * 2 + 1);
    expect_refused(
        &run_in_cluster(kctl, &["promote", "keypair", "all"]),
        "etcd-peers-ca-main: ",
    );
    assert_eq!(
        states_of(kctl, "etcd-manager-ca-main"),
        ["primary", "trusted"]
    );
    let groups = groups_of(&cluster.simulator);
    bring_to_instances(&cluster, &groups);
    run_in_cluster(kctl, &["promote", "keypair", "all"]).expect_success();
    assert_eq!(
        states_of(kctl, "etcd-manager-ca-main"),
        ["trusted", "primary"]
    );
    let again = run_in_cluster(kctl, &["promote", "keypair", "all"]);
    assert!(again.err.contains("no key that is newer"), "{}", again.err);
    let id = run_in_cluster(kctl, &["distrust", "keypair", "all", "7"]);
    assert_eq!(id.code, 2, "{}", id.err);
}

#[test]
fn the_signer_of_the_store_is_distrusted_only_once_all_is_signed_anew() {
    let cluster = Cluster::new();
    let kctl = &cluster.kctl;
    for words in [
        ["create", "keypair", "state-signer"],
        ["promote", "keypair", "state-signer"],
    ] {
        run_in_cluster(kctl, &words).expect_success();
    }
    assert!(
        planned_templates(kctl).is_empty(),
        "no instance has this key"
    );
    let distrust = ["distrust", "keypair", "state-signer"];
    let early = run_in_cluster(kctl, &distrust);
    expect_refused(&early, "addons/bootstrap-channel.yaml is signed with it");
    kctl.run(&["update", NAME, "--refresh", "--yes"])
        .expect_success();
    run_in_cluster(kctl, &distrust).expect_success();
    let plan = kctl.run(&["update", NAME, "--refresh"]).expect_success();
    assert!(plan.contains("No changes."), "{plan}");
}

/// Whoever had the key once signs with a time that kctl does not reach.
#[test]
fn a_signature_from_the_future_is_not_taken_for_a_good_one() {
    let cluster = Cluster::new();
    let (kctl, simulator) = (&cluster.kctl, &cluster.simulator);
    let base = format!("clusters/{NAME}");
    let stored = |key: &str| {
        let code = format!(
            "print(boto('s3').get_object(Bucket='state', Key='{base}/{key}')['Body'].read().decode(), end='')"
        );
        simulator.run_python(REGION, &code)
    };
    let signer = read_keyset(STATE_SIGNER, &stored(&keyset_path(STATE_SIGNER))).expect("a keyset");
    let text = format!("{}\n", stored(CHANNEL_KEY).trim_end());
    let place = SignedPlace {
        cluster: NAME,
        key: CHANNEL_KEY,
    };
    let signature = sign_text(&signer, place, &text, u64::MAX).expect("a signature");
    let at = signature_key(CHANNEL_KEY, &text);
    simulator.run_python(
        REGION,
        &format!(
            "boto('s3').put_object(Bucket='state', Key='{base}/{at}', Body={signature:?}.encode())"
        ),
    );
    let update = kctl.run(&["update", NAME, "--refresh", "--yes"]);
    assert_ne!(update.code, 0, "{}{}", update.out, update.err);
    let shown = format!("{}{}", update.out, update.err);
    assert!(shown.contains("more than a day in the future"), "{shown}");
    for words in [
        &["create", "keypair", STATE_SIGNER][..],
        &["promote", "keypair", STATE_SIGNER],
        &["distrust", "keypair", STATE_SIGNER, "--force"],
    ] {
        run_in_cluster(kctl, words).expect_success();
    }
    kctl.run(&["update", NAME, "--refresh", "--yes"])
        .expect_success();
    let plan = kctl.run(&["update", NAME, "--refresh"]).expect_success();
    assert!(plan.contains("No changes."), "{plan}");
}

/// A certificate of an authority and its key, made with openssl.
fn company_authority(kctl: &Kctl, name: &str, subject: &str) -> [String; 2] {
    let files = ["crt", "key"].map(|end| {
        let path = kctl.home_path(&format!("{name}.{end}"));
        path.display().to_string()
    });
    let made = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-days", "99", "-subj", subject])
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args([
            "-addext",
            "keyUsage=critical,keyCertSign",
            "-out",
            &files[0],
            "-keyout",
            &files[1],
        ])
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{made:?}");
    files
}

#[test]
fn an_own_authority_is_checked_before_it_is_stored() {
    let cluster = Cluster::new();
    let kctl = &cluster.kctl;
    let [certificate, key] = company_authority(kctl, "ca", "/O=Example/CN=Example Root");
    let two = company_authority(kctl, "two", "/DC=corp/DC=example/CN=Root");
    let create = |more: &[&str]| {
        let words = ["create", "keypair", "kubernetes-ca"];
        run_in_cluster(kctl, &[&words[..], more].concat())
    };
    let nothing = kctl.write_file("nothing", "nothing");
    for (more, why) in [
        (
            ["--cert", &nothing, "--key", &*key],
            "no block BEGIN CERTIFICATE",
        ),
        (
            ["--cert", &certificate, "--key", &nothing],
            "no private key",
        ),
        (["--cert", &two[0], "--key", &two[1]], "each attribute"),
    ] {
        let ran = create(&more);
        assert!(ran.code == 2 && ran.err.contains(why), "{}", ran.err);
    }
    expect_refused(
        &create(&["--cert", &certificate, "--key", &key, "--primary"]),
        "does not trust it yet",
    );
    let brought = create(&["--cert", &certificate, "--key", &key]);
    let warns = "lets in everybody for whom this key has ever signed";
    assert!(brought.err.contains(warns), "{}", brought.err);
    brought.expect_success();
    let twice = create(&["--cert", &certificate, "--key", &key]);
    assert!(
        twice.code == 2 && twice.err.contains("already"),
        "{}",
        twice.err
    );
    assert_eq!(states_of(kctl, "kubernetes-ca"), ["primary", "trusted"]);
    let all = run_in_cluster(kctl, &["create", "keypair", "all", "--cert", &certificate]);
    assert_eq!(all.code, 2, "{}", all.err);
    let other = run_in_cluster(kctl, &["create", "keypair", "kubernetes-cb"]);
    assert!(
        other.code == 2 && other.err.contains("kubernetes-ca"),
        "{}",
        other.err
    );
    // Without a certificate, one is made for the key, which no other keyset may have.
    let of_etcd = |key: &str| {
        let words = ["create", "keypair", "etcd-clients-ca", "--key", key];
        run_in_cluster(kctl, &words)
    };
    let again = of_etcd(&key);
    assert!(
        again.code == 2
            && again
                .err
                .contains("the keyset kubernetes-ca of this cluster has it too"),
        "{}",
        again.err
    );
    of_etcd(&two[1]).expect_success();
    assert_eq!(states_of(kctl, "etcd-clients-ca"), ["primary", "trusted"]);
}

/// kctl died after it had stored the keyset, and before it wrote what follows from it.
#[test]
fn a_kill_between_the_writes_loses_nothing() {
    let cluster = Cluster::new();
    let (kctl, simulator) = (&cluster.kctl, &cluster.simulator);
    let python = |code: &str| {
        let head = format!("s, k = boto('s3'), 'clusters/{NAME}/pki/public.json'\n");
        simulator.run_python(REGION, &(head + code))
    };
    python(
        "s.put_object(Bucket='state', Key='before', Body=s.get_object(Bucket='state', Key=k)['Body'].read())",
    );
    run_in_cluster(kctl, &["create", "keypair", "kubernetes-ca"]).expect_success();
    let after = python("print(s.get_object(Bucket='state', Key=k)['Body'].read().decode())");
    python(
        "s.put_object(Bucket='state', Key=k, Body=s.get_object(Bucket='state', Key='before')['Body'].read())",
    );
    assert_eq!(states_of(kctl, "kubernetes-ca"), ["primary", "trusted"]);
    assert_eq!(planned_templates(kctl).len(), 2);
    kctl.run(&["update", NAME, "--yes"]).expect_success();
    let again = python("print(s.get_object(Bucket='state', Key=k)['Body'].read().decode())");
    let keys = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["keysets"].clone();
    assert_eq!(keys(&again), keys(&after));
}

/// The store fails in the middle of a step in all keysets.
#[test]
fn a_step_that_breaks_off_leaves_each_keyset_before_or_after_it() {
    let cluster = Cluster::new();
    let (kctl, simulator) = (&cluster.kctl, &cluster.simulator);
    let shown = |kctl: &Kctl| -> Vec<Value> {
        let words = ["get", "keypairs", "--distrusted", "-o", "json"];
        serde_json::from_str(&run_in_cluster(kctl, &words).expect_success()).expect("JSON")
    };
    let primary = |keys: &[Value]| -> Vec<String> {
        let primary = keys.iter().filter(|key| key["state"] == "primary");
        primary.map(|key| key["id"].to_string()).collect()
    };
    let before = shown(kctl);
    let mut known = before.len();
    // The first write is that of the lock.
    for skip in [2, 5] {
        simulator.set_faults(&json!([
            {"service": "s3", "operation": "PutObject", "code": "InternalError", "status": 500, "skip": skip, "times": 99},
        ]));
        let broken = run_in_cluster(kctl, &["create", "keypair", "all"]);
        simulator.set_faults(&json!([]));
        assert_ne!(broken.code, 0, "{}", broken.err);
        let keys = shown(kctl);
        assert_eq!(primary(&keys), primary(&before));
        assert!(
            keys.len() > known && keys.len() < known + 8,
            "{}",
            keys.len()
        );
        known = keys.len();
    }
    run_in_cluster(kctl, &["create", "keypair", "all"]).expect_success();
    assert_eq!(shown(kctl).len(), known + 8);
    kctl.run(&["update", NAME, "--yes"]).expect_success();
}

/// The first key of a cluster may be a company's own.
#[test]
fn the_first_authority_may_be_brought_before_the_first_update() {
    let simulator = Simulator::start_simulator();
    let kctl = crate::plans::stored_cluster(&simulator);
    let [certificate, key] = company_authority(&kctl, "ca", "/O=Example/CN=Example Root");
    let bring = [
        "create",
        "keypair",
        "kubernetes-ca",
        "--cert",
        &certificate,
        "--key",
        &key,
    ];
    let second = run_in_cluster(&kctl, &bring);
    assert!(
        second.code == 2 && second.err.contains("--primary"),
        "{}",
        second.err
    );
    run_in_cluster(&kctl, &[&bring[..], &["--primary"]].concat()).expect_success();
    kctl.run(&["update", NAME, "--yes"]).expect_success();
    assert_eq!(states_of(&kctl, "kubernetes-ca"), ["primary"]);
    let keys = keys_of(&kctl, "kubernetes-ca", &[]);
    let bundle = simulator.run_python(
        REGION,
        &format!("print(boto('s3').get_object(Bucket='state', Key='clusters/{NAME}/igconfig/node/nodes-eu-west-1a/nodeupconfig.yaml')['Body'].read().decode())"),
    );
    let own = std::fs::read_to_string(&certificate).expect("a certificate");
    let line = own.lines().nth(1).expect("a line");
    assert!(bundle.contains(line), "{keys:?} in {bundle}");
}
