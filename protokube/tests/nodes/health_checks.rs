//! Health checks of load balancers at the bootstrap endpoint.

use crate::fakes::TestCluster;

#[tokio::test]
async fn a_load_balancer_is_told_whether_the_api_server_is_ready_and_not_whether_anybody_listens() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    assert_eq!(worker.get_status("/healthz").await, 200);
    for (ready, status) in [(false, 503), (true, 200), (false, 503)] {
        cluster.ready.send_replace(ready);
        assert_eq!(worker.get_status("/readyz").await, status);
    }
}
