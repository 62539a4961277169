//! How many calls a plan without changes takes: they grow with pages, not with groups.

use crate::cluster::InCluster;
use crate::simulator::Simulator;
use crate::spec::{REGION, desired_objects, full_spec, store_objects};
use aws_client::store::Store;
use aws_cloud::collect_facts;
use cloud::facts::FactsWanted;

/// Without DNS and bastions, with the user's own policies left out: what most clusters are.
fn make_usual(text: &mut String) {
    for (from, to) in [
        ("dns: {type: Public}", "dns: {type: None}"),
        ("role: Bastion", "role: Node"),
        (
            "    useServiceAccountExternalPermissions: true\n    serviceAccountExternalPermissions:\n    - {name: reader, namespace: shop-*, aws: {policyARNs: [\"arn:aws:iam::123456789012:policy/mine\"]}}\n    - {name: writer, namespace: shop, aws: {inlinePolicy: '[{\"Effect\": \"Allow\", \"Action\": [\"sqs:*\"], \"Resource\": [\"*\"]}]'}}\n",
            "",
        ),
        (
            "  serviceAccountIssuerDiscovery: {discoveryStore: \"s3://issuer/prod\", enableAWSOIDCProvider: true}\n",
            "",
        ),
        (
            "  externalPolicies:\n    node: [\"arn:aws:iam::123456789012:policy/mine\"]\n",
            "",
        ),
        (
            "  additionalPolicies:\n    node: |\n      [{\"Effect\": \"Allow\", \"Action\": [\"s3:ListBucket\", \"s3:GetObject\"], \"Resource\": [\"*\"]}]\n",
            "",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        *text = text.replace(from, to);
    }
}

fn with_more_groups(text: &mut String) {
    make_usual(text);
    for number in 0..93 {
        text.push_str(&format!(
            "---\napiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata: {{name: more-{number}, labels: {{kops.k8s.io/cluster: prod.example.com}}}}\nspec: {{role: Node, image: debian/debian-12-amd64-20260713-2537, machineType: m5.large, minSize: 0, maxSize: 1, subnets: [a]}}\n"
        ));
    }
}

/// AWS calls (S3 apart) and store reads of a plan without changes, facts included.
async fn calls_of_a_plan(edit: fn(&mut String)) -> (u64, u64, String) {
    calls_in_bucket(edit, "").await
}

/// The same in a bucket that Python code has changed.
async fn calls_in_bucket(edit: fn(&mut String), change: &str) -> (u64, u64, String) {
    let simulator = Simulator::start_simulator();
    let mut cluster = InCluster::new(&simulator).await;
    simulator.run_python(REGION, change);
    // kctl has no hosted zone for a cluster without DNS (`commands/update.rs`).
    cluster.facts.hosted_zones.clear();
    // A cluster whose pods never had roles.
    cluster.has_issuer = false;
    let spec = full_spec(&cluster.facts, edit);
    let wanted = desired_objects(&spec, store_objects("completed: 1\n"));
    cluster.run_until_converged(&wanted).await;

    // As another process, which reads what this one learned.
    let learned = cluster.store.used_digests();
    cluster.store =
        Store::open(cluster.store.url(), cluster.clients.shared_clients()).expect("a store");
    cluster.store.load_digests(learned);
    simulator.forget_calls();
    let reads = cluster.store.reads();
    let asked = FactsWanted {
        images: ["debian/debian-12-amd64-20260713-2537".to_owned()].into(),
        machine_types: ["t3.medium".to_owned(), "m5.large".to_owned()].into(),
        ..FactsWanted::default()
    };
    let facts = collect_facts(&cluster.clients, &asked)
        .await
        .expect("facts");
    cluster.facts.images.extend(facts.images);
    cluster.is_settled(&wanted).await;
    let calls = simulator.calls_by_operation();
    let aws = calls["aws"].as_u64().expect("a number");
    (
        aws,
        cluster.store.reads() - reads,
        calls["calls"].to_string(),
    )
}

#[tokio::test]
async fn a_plan_without_changes_takes_at_most_40_calls_at_7_groups() {
    let (aws, reads, calls) = calls_of_a_plan(make_usual).await;
    assert!(aws <= 40, "{aws}: {calls}");
    assert!(reads <= 5, "{reads}: {calls}");
}

#[tokio::test]
async fn a_plan_without_changes_takes_at_most_60_calls_at_100_groups() {
    let (aws, reads, calls) = calls_of_a_plan(with_more_groups).await;
    assert!(aws <= 60, "{aws}: {calls}");
    assert!(reads <= 5, "{reads}: {calls}");
}

#[tokio::test]
async fn a_bucket_that_encrypts_with_a_kms_key_is_read_no_more_often() {
    let encrypt = "boto('s3').put_bucket_encryption(Bucket='state', ServerSideEncryptionConfiguration={'Rules': [{'ApplyServerSideEncryptionByDefault': {'SSEAlgorithm': 'aws:kms'}}]})";
    let (_, reads, calls) = calls_in_bucket(make_usual, encrypt).await;
    assert!(reads <= 5, "{reads}: {calls}");
}
