//! Attempts of real calls: to nobody, and to a server that answers as throttled and broken services do.

use super::*;
use aws_config::retry::RetryConfig;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Makes two calls there that fail, and returns what was told and how many attempts there were.
async fn make_failing_calls(address: &str) -> (Vec<RetryNotice>, BTreeMap<String, u64>) {
    let heard: Arc<Mutex<Vec<RetryNotice>>> = Arc::default();
    let to = heard.clone();
    let attempts =
        Attempts::default().with_listener(move |again| to.lock().unwrap().push(again.clone()));
    let config = crate::s3_test::client_builder(address)
        .retry_config(
            RetryConfig::standard()
                .with_max_attempts(MAX_ATTEMPTS)
                .with_initial_backoff(Duration::from_millis(1)),
        )
        .interceptor(attempts.clone());
    let s3 = aws_sdk_s3::Client::from_conf(config.build());
    for _ in 0..2 {
        let listed = s3.list_objects_v2().bucket("b").send().await;
        listed.expect_err("a failure");
    }
    let heard = heard.lock().unwrap().clone();
    (heard, attempts.counts())
}

/// Answers every request like this, closing the connection.
async fn serve_fixed_answer(server: TcpListener, answer: &'static str) {
    loop {
        let (mut connection, _) = server.accept().await.unwrap();
        let mut request = [0; 4096];
        // Whoever hangs up first has his reasons.
        let _ = connection.read(&mut request).await;
        let _ = connection.write_all(answer.as_bytes()).await;
    }
}

#[tokio::test]
async fn a_call_that_nobody_answers_is_told_once() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let (heard, counts) = make_failing_calls(&address).await;
    let [again] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert_eq!(
        again.to_string(),
        "s3:ListObjectsV2 failed 3 times (Connection refused (os error 111)): trying again, 8 times in all"
    );
    assert!(
        counts["s3.ListObjectsV2"] > u64::from(MAX_ATTEMPTS),
        "{counts:?}"
    );
}

#[tokio::test]
async fn a_service_that_is_busy_is_told_and_one_that_says_no_is_not() {
    for (status, told) in [("503 Slow Down", 1), ("403 Forbidden", 0)] {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap().to_string();
        let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let (heard, _) = tokio::select! {
            failed = make_failing_calls(&address) => failed,
            () = serve_fixed_answer(server, text.leak()) => unreachable!("it answers for ever"),
        };
        assert_eq!(heard.len(), told, "{status}: {heard:?}");
        assert!(heard.iter().all(|again| again.why == "HTTP 503"));
    }
}
