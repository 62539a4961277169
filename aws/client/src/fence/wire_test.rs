//! A fence that shuts while a call connects, against a server that notes what came.

use super::*;
use crate::causes::error_causes;
use crate::fence::LockLost;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// Shuts the fence after a write was let through, while its connection is made.
#[derive(Debug)]
struct LockLostMeanwhile(Fence);

impl Intercept for LockLostMeanwhile {
    fn name(&self) -> &'static str {
        "meanwhile"
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.close();
        Ok(())
    }
}

fn is_fenced(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = error_causes(error).into_iter();
    causes.any(<dyn std::error::Error>::is::<LockLost>)
}

#[tokio::test]
async fn a_write_whose_fence_is_shut_while_it_connects_sends_nothing() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap().to_string();
    for with_body in [true, false] {
        let fence = Fence::default();
        let config = crate::s3_test::client_builder(&address).interceptor(fence.clone());
        let s3 = aws_sdk_s3::Client::from_conf(config.build());
        let meanwhile = LockLostMeanwhile(fence);
        let write = async {
            if with_body {
                let put = s3.put_object().bucket("b").key("k");
                let put = put.body(b"body".to_vec().into()).customize();
                let put = put.interceptor(meanwhile).send().await;
                is_fenced(&put.expect_err("a failure"))
            } else {
                let delete = s3.delete_object().bucket("b").key("k").customize();
                let delete = delete.interceptor(meanwhile).send().await;
                is_fenced(&delete.expect_err("a failure"))
            }
        };
        let received = async {
            let (mut connection, _) = server.accept().await.unwrap();
            let mut received = Vec::new();
            connection.read_to_end(&mut received).await.unwrap();
            received
        };
        let (fenced, received) = tokio::join!(write, received);
        assert!(fenced, "with a body: {with_body}");
        assert_eq!(String::from_utf8_lossy(&received), "");
    }
}

#[test]
fn what_is_not_known_to_be_a_read_is_a_write() {
    for read in [
        "DescribeVpcs",
        "GetObject",
        "HeadObject",
        "ListObjectsV2",
        "GetCallerIdentity",
    ] {
        assert!(is_read(read), "{read}");
    }
    for write in [
        "CreateVpc",
        "PutObject",
        "DeleteObject",
        "ReceiveMessage",
        "ChangeResourceRecordSets",
        "Listen",
        "Getaway",
        "",
    ] {
        assert!(!is_read(write), "{write}");
    }
}
