//! What a load balancer asks at the bootstrap endpoint.

use crate::fakes::Cluster;

#[tokio::test]
async fn a_load_balancer_is_told_whether_the_api_server_is_ready_and_not_whether_anybody_listens() {
    let cluster = Cluster::start().await;
    let worker = cluster.worker().await;
    assert_eq!(worker.get("/healthz").await, 200);
    for (ready, status) in [(false, 503), (true, 200), (false, 503)] {
        cluster.ready.send_replace(ready);
        assert_eq!(worker.get("/readyz").await, status);
    }
}
