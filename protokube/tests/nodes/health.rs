//! protokube forwards the API server's health, which it reads with a client certificate.

use node::pki::{
    KeyAlgorithm, Keyset, Leaf, SystemKeys, Usage, issue_certificate, mint_keyset, trust_bundle,
};
use protokube::health::{HealthContext, serve_health_on};
use protokube::identity::system_clock;
use protokube::thread::run_on_own_thread;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use time::{Duration, OffsetDateTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A fake API server that accepts only clients of this authority and answers with `state`. Returns its URL.
async fn api_server(authority: &Keyset, state: Arc<Mutex<(u16, &'static str)>>) -> String {
    let leaf = Leaf {
        common_name: "kubernetes-master".to_owned(),
        organization: None,
        usage: Usage::Server,
        names: vec!["127.0.0.1".to_owned()],
        validity: Duration::DAY,
    };
    let issued = issue_certificate(
        authority,
        &leaf,
        &mut SystemKeys::issuing_at(OffsetDateTime::now_utc()),
    )
    .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    let bundle = trust_bundle(authority);
    roots
        .add(CertificateDer::from_pem_slice(bundle.as_bytes()).unwrap())
        .unwrap();
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(issued.key.reveal().as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = [0; 1024];
            let read = stream.read(&mut request).await.unwrap();
            let line = String::from_utf8_lossy(&request[..read]);
            let asked = line.split(' ').nth(1).unwrap_or_default();
            let (status, text) = *state.lock().unwrap();
            let body = format!("{asked} {text}");
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n",
                body.len()
            );
            stream
                .write_all(format!("{head}\r\n{body}").as_bytes())
                .await
                .unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    url
}

async fn start_health(authority: &Keyset, server: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = listener.local_addr().unwrap();
    let context = HealthContext {
        listen,
        server: server.to_owned(),
        trust_bundle: trust_bundle(authority),
        authority: Arc::new(authority.clone()),
        clock: system_clock(),
        validity: Duration::days(455),
        metrics: Arc::new(|| "kctl_metric 1\n".to_owned()),
    };
    tokio::spawn(serve_health_on(context, listener));
    format!("http://{listen}")
}

async fn get_url(url: &str) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let reply = client.get(url).send().await.unwrap();
    (reply.status().as_u16(), reply.text().await.unwrap())
}

fn mint_authority() -> Keyset {
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap()
}

#[tokio::test]
async fn metrics_are_served_whatever_the_api_server_does() {
    let health = start_health(&mint_authority(), "https://127.0.0.1:1").await;
    let metrics = get_url(&format!("{health}/metrics")).await;
    assert_eq!(metrics, (200, "kctl_metric 1\n".to_owned()));
}

#[tokio::test]
async fn what_the_api_server_says_of_itself_is_passed_on() {
    let authority = mint_authority();
    let state = Arc::new(Mutex::new((200, "ok")));
    let server = api_server(&authority, Arc::clone(&state)).await;
    let health = start_health(&authority, &server).await;
    // The checks of the etcd cluster events do not count.
    let events = "exclude=etcd-override-0&exclude=etcd-override-readiness-0";
    for (path, asked) in [
        ("/livez", format!("/livez?{events}")),
        ("/healthz", format!("/healthz?{events}")),
        (
            "/readyz?verbose&exclude=etcd",
            format!("/readyz?verbose&exclude=etcd&{events}"),
        ),
    ] {
        assert_eq!(
            get_url(&format!("{health}{path}")).await,
            (200, format!("{asked} ok"))
        );
    }
    *state.lock().unwrap() = (500, "etcd failed");
    let (status, text) = get_url(&format!("{health}/readyz")).await;
    assert_eq!(
        (status, text),
        (503, format!("/readyz?{events} etcd failed"))
    );
    assert_eq!(get_url(&format!("{health}/api/v1/secrets")).await.0, 404);
}

#[tokio::test]
async fn an_api_server_that_is_not_there_or_not_ours_is_not_well() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("https://{}", closed.local_addr().unwrap());
    drop(closed);
    let state = Arc::new(Mutex::new((200, "ok")));
    let foreign = api_server(&mint_authority(), state).await;
    for server in [nobody, foreign] {
        let health = start_health(&mint_authority(), &server).await;
        let (status, text) = get_url(&format!("{health}/livez")).await;
        assert_eq!(status, 503);
        assert!(text.contains("does not answer"), "{text}");
    }
}

/// kubelet kills an API server whose probe is not answered. Here the thread of the other roles blocks in a read, as with a hanging
/// disk: only a server on another thread can answer.
#[tokio::test(flavor = "current_thread")]
async fn health_is_answered_while_the_thread_of_all_else_is_held_up() {
    let authority = mint_authority();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let listen = listener.local_addr().unwrap();
    let context = HealthContext {
        listen,
        // No API server listens, which is answered as not healthy.
        server: "https://127.0.0.1:1".to_owned(),
        trust_bundle: trust_bundle(&authority),
        authority: Arc::new(authority),
        clock: system_clock(),
        validity: Duration::days(455),
        metrics: Arc::new(|| "kctl_metric 1\n".to_owned()),
    };
    let served = run_on_own_thread("health", move || async move {
        serve_health_on(context, TcpListener::from_std(listener)?).await
    });
    let held_up = async {
        let mut stream = std::net::TcpStream::connect(listen).unwrap();
        let patience = std::time::Duration::from_mins(1);
        stream.set_read_timeout(Some(patience)).unwrap();
        stream
            .write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    tokio::select! {
        biased;
        ended = served => panic!("{ended:?}"),
        answer = held_up => assert!(answer.starts_with("HTTP/1.1 503"), "{answer}"),
    }
}

#[tokio::test]
async fn connections_that_send_nothing_or_half_a_request_keep_no_probe_from_its_answer() {
    let authority = mint_authority();
    let server = api_server(&authority, Arc::new(Mutex::new((200, "ok")))).await;
    let health = start_health(&authority, &server).await;
    let address = health.strip_prefix("http://").unwrap();
    let mut idle = Vec::new();
    for number in 0..200 {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        if number % 2 == 0 {
            stream
                .write_all(b"GET /livez HTTP/1.1\r\nhost:")
                .await
                .unwrap();
        }
        idle.push(stream);
        if number % 50 == 0 {
            let begun = std::time::Instant::now();
            assert_eq!(get_url(&format!("{health}/livez")).await.0, 200);
            assert!(begun.elapsed() < std::time::Duration::from_secs(5));
        }
    }
    assert_eq!(get_url(&format!("{health}/livez")).await.0, 200);
}
