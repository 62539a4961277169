//! No secret of a cluster is in anything that kctl shows, keeps for review or logs.

use crate::kctl::Kctl;
use crate::plans::stored_cluster;
use crate::scenario::REGION;
use crate::simulator::Simulator;
use std::collections::BTreeSet;

/// What of a secret is long enough to be told from chance.
const TELLING: usize = 24;

/// What a session's requests carry.
const TOKEN: &str = "a-session-token-that-nobody-else-may-see";

/// Prints every private part in the store: keys as they are stored, and line by line; everything below `secrets/`.
const SECRETS: &str = r"
import base64, re
s = boto('s3')
for page in s.get_paginator('list_objects_v2').paginate(Bucket='state'):
    for item in page['Contents']:
        key = item['Key']
        if '/pki/private/' not in key and '/secrets/' not in key: continue
        text = s.get_object(Bucket='state', Key=key)['Body'].read().decode()
        if '/secrets/' in key: print(text.strip())
        parts = lambda name: [base64.b64decode(one).decode() for one in re.findall(name + r': *(\S+)', text)]
        for material in re.findall(r'privateMaterial: *(\S+)', text): print(material)
        # A private key's end is its public half, which its certificate may have in a line of the same letters.
        known = ''.join(parts('publicMaterial'))
        for line in ''.join(parts('privateMaterial')).splitlines():
            if not line.startswith('-----') and line not in known: print(line)
";

fn cluster_secrets(simulator: &Simulator) -> BTreeSet<String> {
    let all = simulator.run_python(REGION, SECRETS);
    let telling = all.lines().filter(|line| line.len() >= TELLING);
    telling.map(str::to_owned).collect()
}

/// Runs kctl as loudly as it can, and keeps all it says.
fn run_verbosely(kctl: &Kctl, words: &[&str], all: &mut Vec<(String, String)>) {
    let ran = kctl.run(words);
    assert!([0, 10].contains(&ran.code), "{words:?}: {}", ran.err);
    all.push((words.join(" "), ran.out + &ran.err));
}

#[test]
fn no_secret_is_in_plans_json_events_operations_or_logs() {
    let simulator = Simulator::start_simulator();
    let mut kctl = stored_cluster(&simulator);
    kctl.set_variable("RUST_LOG", "trace");
    kctl.set_variable("AWS_SESSION_TOKEN", TOKEN);
    let mut all = Vec::new();
    run_verbosely(
        &kctl,
        &["update", "--plan-out", "before.plan", "-o", "json"],
        &mut all,
    );
    // Keys are made here, and written to the store.
    run_verbosely(
        &kctl,
        &["update", "--plan", "before.plan", "--yes", "-o", "events"],
        &mut all,
    );
    kctl.run(&["edit", "cluster", "--set", "spec.kubelet.maxPods=50"])
        .expect_success();
    run_verbosely(
        &kctl,
        &["update", "--plan-out", "after.plan", "-o", "wide", "-v"],
        &mut all,
    );
    run_verbosely(&kctl, &["update", "-o", "events"], &mut all);
    run_verbosely(
        &kctl,
        &[
            "update",
            "--plan",
            "after.plan",
            "--yes",
            "-o",
            "json",
            "-v",
        ],
        &mut all,
    );
    run_verbosely(&kctl, &["get", "operations", "-o", "json"], &mut all);
    run_verbosely(&kctl, &["get", "keypairs", "-o", "wide"], &mut all);
    run_verbosely(
        &kctl,
        &["delete", "cluster", crate::scenario::NAME, "-o", "json"],
        &mut all,
    );
    for file in ["before.plan", "after.plan"] {
        let text = std::fs::read_to_string(kctl.home_path(file)).expect("a plan");
        all.push((file.to_owned(), text));
    }
    all.push((
        "everything in AWS, but for the private part of the store".to_owned(),
        public_texts(&simulator),
    ));

    let mut secrets = cluster_secrets(&simulator);
    secrets.insert(TOKEN.to_owned());
    assert!(
        secrets.len() >= 20,
        "a cluster has more secrets than {}",
        secrets.len()
    );
    for (source, text) in &all {
        assert!(!text.is_empty(), "{source} says nothing");
        for secret in &secrets {
            let line = text.lines().find(|line| line.contains(secret.as_str()));
            assert!(line.is_none(), "{secret} in: {source}: {line:?}");
        }
        assert!(!text.contains("PRIVATE KEY"), "a key in: {source}");
    }
}

/// User data of every template version, and every other object of the store.
fn public_texts(simulator: &Simulator) -> String {
    simulator.run_python(
        REGION,
        r"
import base64
s, e = boto('s3'), boto('ec2')
for page in s.get_paginator('list_objects_v2').paginate(Bucket='state'):
    for item in page['Contents']:
        key = item['Key']
        if '/pki/private/' in key or '/secrets/' in key: continue
        print(key, s.get_object(Bucket='state', Key=key)['Body'].read().decode(errors='replace'))
for template in e.describe_launch_templates()['LaunchTemplates']:
    for version in e.describe_launch_template_versions(LaunchTemplateId=template['LaunchTemplateId'])['LaunchTemplateVersions']:
        print(base64.b64decode(version['LaunchTemplateData'].get('UserData', '')).decode(errors='replace'))
",
    )
}
