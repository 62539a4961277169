//! Every kind of object: made, seen as wanted, changed, removed without a trace.

use crate::cluster::InCluster;
use crate::simulator::Simulator;
use crate::spec::{REGION, desired, full, objects};
use std::collections::BTreeSet;

fn kinds(of: &[model::cloud::Cloud]) -> BTreeSet<String> {
    use model::engine::Resource;
    of.iter().map(|one| one.id().kind().to_owned()).collect()
}

#[tokio::test]
async fn a_cluster_is_made_changed_and_removed_without_a_trace() {
    let simulator = Simulator::start();
    let mut cluster = InCluster::new(&simulator).await;
    simulator.python(REGION, "boto('iam').create_policy(PolicyName='mine', PolicyDocument='{\"Version\": \"2012-10-17\", \"Statement\": []}')");
    let before = simulator.listing(REGION);

    let first = desired(&full(&cluster.facts, |_| {}), objects("completed: 1\n"));
    assert_eq!(kinds(&first).len(), 30, "{:?}", kinds(&first));
    cluster.converge(&first).await;
    cluster.refresh = true;
    cluster.is_settled(&first).await;
    cluster.refresh = false;

    cluster.converge(&[]).await;
    let after = simulator.listing(REGION);
    let left: Vec<_> = after.difference(&before).collect();
    assert!(left.is_empty(), "{left:#?}");
}
