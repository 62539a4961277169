//! A fence that shuts while a call connects, against a server that notes what came.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Shuts the fence of the first write after the last look at it before the connection is made: for good, or until it is reopened.
#[derive(Debug)]
struct LockLostMeanwhile {
    inner: SharedHttpConnector,
    fence: Fence,
    becomes: FenceState,
    is_first: Arc<AtomicBool>,
}

impl HttpConnector for LockLostMeanwhile {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        if self.is_first.swap(false, Ordering::SeqCst) {
            match self.becomes {
                FenceState::Paused => self.fence.allow_until(boot_clock_now()),
                _ => drop(self.fence.close()),
            }
        }
        self.inner.call(request)
    }
}

/// A client whose fence shuts while its first write connects.
fn client_at(address: &str, fence: &Fence, becomes: FenceState) -> aws_sdk_s3::Client {
    let authorities = Authorities::of_system().clone();
    let https = https_client(&authorities, ProxyConfig::disabled);
    let shared = fence.clone();
    let is_first = Arc::new(AtomicBool::new(true));
    let http = http_client_fn(move |settings, components| {
        let own = SharedHttpConnector::new(LockLostMeanwhile {
            inner: https.http_connector(settings, components),
            fence: shared.clone(),
            becomes,
            is_first: Arc::clone(&is_first),
        });
        SharedHttpConnector::new(Connector {
            proxied: own.clone(),
            direct: own,
            authorities: authorities.clone(),
        })
    });
    let config = crate::s3_test::client_builder(address).http_client(http);
    aws_sdk_s3::Client::from_conf(config.interceptor(fence.clone()).build())
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
        let s3 = client_at(&address, &fence, FenceState::Closed);
        let write = async {
            if with_body {
                let put = s3.put_object().bucket("b").key("k");
                let put = put.body(b"body".to_vec().into()).send().await;
                is_fenced(&put.expect_err("a failure"))
            } else {
                let delete = s3.delete_object().bucket("b").key("k").send().await;
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

#[tokio::test]
async fn a_write_whose_fence_pauses_while_it_connects_is_sent_once_it_is_reopened() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap().to_string();
    for with_body in [true, false] {
        let fence = Fence::default();
        fence.set_resumable(true);
        let s3 = client_at(&address, &fence, FenceState::Paused);
        let write = async {
            if with_body {
                let put = s3.put_object().bucket("b").key("k");
                let put = put.body(b"body".to_vec().into()).send().await;
                put.map(drop).is_ok()
            } else {
                let deleted = s3.delete_object().bucket("b").key("k").send().await;
                deleted.map(drop).is_ok()
            }
        };
        let received = async {
            let (mut first, _) = server.accept().await.unwrap();
            let mut before = Vec::new();
            first.read_to_end(&mut before).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&before), "");
            let ahead = boot_clock_now().plus_duration(Duration::from_hours(1));
            fence.resume(ahead).unwrap();
            let (mut second, _) = server.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let length = second.read(&mut head).await.unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            second.write_all(answer.as_bytes()).await.unwrap();
            let head = head.get(..length).unwrap();
            String::from_utf8_lossy(head).into_owned()
        };
        let (written, received) = tokio::join!(write, received);
        assert!(written, "with a body: {with_body}");
        let method = if with_body { "PUT" } else { "DELETE" };
        assert!(received.starts_with(method), "{received}");
        assert!(!received.contains("transfer-encoding"), "{received}");
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
