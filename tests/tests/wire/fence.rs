//! A fence stops writes wherever they begin: a call, the SDK's own repetition of one, the store. Reads go on.

use crate::cluster::InCluster;
use crate::simulator::Simulator;
use crate::spec::{desired_objects, full_spec, store_objects};
use aws_client::fence::boot_clock_now;
use aws_client::store::{Expect, StoreError};
use engine::{Refs, Resource, World};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn no_write_and_no_repetition_of_one_begins_behind_a_fence() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    let role = wanted
        .iter()
        .find(|one| one.id().kind() == "iam_role")
        .expect("a role");
    let world = cluster.aws_world(&wanted);
    let elsewhere = cluster.clients.shared_clients().in_region("eu-central-1");
    let call = "iam.CreateRole";

    // The SDK repeats a throttled call; after its first attempt the fence, which all clients share, is shut.
    simulator.set_faults(
        &json!([{"operation": "CreateRole", "code": "Throttling", "status": 400, "times": 1000}]),
    );
    let refs = Refs::default();
    let closed = async {
        while simulator.calls_by_operation()["calls"].get(call).is_none() {
            tokio::task::yield_now().await;
        }
        elsewhere.fence().close();
    };
    let (put, ()) = tokio::join!(world.put(role, None, &refs), closed);
    let failure = put.expect_err("a failure");
    assert_eq!(failure.code, "LockLost", "{failure}");
    assert!(
        failure.message.contains("nothing further was started"),
        "{failure}"
    );

    simulator.set_faults(&json!([]));
    simulator.forget_calls();
    let failure = world
        .put(role, None, &Refs::default())
        .await
        .expect_err("a failure");
    assert_eq!(failure.code, "LockLost", "{failure}");
    let put = cluster.store.put("key", vec![1], Expect::Any).await;
    let deleted = cluster.store.delete("key", Expect::Any).await;
    for refused in [put.map(drop), deleted] {
        assert!(
            matches!(refused, Err(StoreError::Fenced { .. })),
            "{refused:?}"
        );
    }
    world.observe().await.expect("reads go on");
    assert!(cluster.store.get("key").await.expect("a read").is_none());
    let calls = simulator.calls_by_operation();
    for write in [call, "s3.PutObject", "s3.DeleteObject"] {
        assert!(calls["calls"].get(write).is_none(), "{write}: {calls}");
    }

    let keeper = cluster.store.without_fence();
    keeper
        .put("key", vec![1], Expect::Absent)
        .await
        .expect("what keeps the lock may write");
    let read = cluster
        .store
        .get("key")
        .await
        .expect("a read")
        .expect("the object");
    assert!(
        read.age.is_some_and(|age| age < Duration::from_hours(1)),
        "{read:?}"
    );
}

#[tokio::test]
async fn writes_that_a_pause_holds_up_happen_once_after_it() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    let role = wanted
        .iter()
        .find(|one| one.id().kind() == "iam_role")
        .expect("a role");
    let world = cluster.aws_world(&wanted);
    let fence = cluster.clients.shared_clients().fence().clone();
    fence.set_resumable(true);
    fence.allow_until(boot_clock_now());
    simulator.forget_calls();

    let refs = Refs::default();
    let put = cluster.store.put("key", vec![1], Expect::Absent);
    let both = async { tokio::join!(world.put(role, None, &refs), put) };
    let reopened = async {
        let pause = Duration::from_secs(1);
        tokio::time::sleep(pause).await;
        world.observe().await.expect("reads go on");
        let calls = simulator.calls_by_operation();
        for write in ["iam.CreateRole", "s3.PutObject"] {
            assert!(calls["calls"].get(write).is_none(), "{write}: {calls}");
        }
        let ahead = boot_clock_now().plus_duration(Duration::from_hours(1));
        fence.resume(ahead).expect("it was not closed");
    };
    let ((role, object), ()) = tokio::join!(both, reopened);
    role.expect("a role");
    object.expect("an object");
    let calls = simulator.calls_by_operation();
    for write in ["iam.CreateRole", "s3.PutObject"] {
        assert_eq!(calls["calls"][write], 1, "{write}: {calls}");
    }
}
