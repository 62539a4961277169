//! Fake API servers that are ready, not ready, hang or end. A watch is a response that says again and again whose it is.

use super::bootstrap::tls_config;
use node::pki::Keyset;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// The name in the servers' certificates.
pub const NAME: &str = "localhost";

/// The path of a watch.
pub const WATCH: &str = "/watch";

/// Between two lines of a watch, and between two looks of a server that hangs.
const LINES: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Ready,
    /// It answers, and says that it is not ready.
    NotReady,
    /// It takes connections, and says nothing on any.
    Hung,
    /// It closes all connections.
    Ended,
}

pub struct FakeApiServer {
    pub address: SocketAddr,
    inner: Arc<ServerState>,
}

struct ServerState {
    own: SocketAddr,
    condition: Mutex<Condition>,
    /// What it says of who the API servers are.
    listed: Mutex<Vec<SocketAddr>>,
    checks: AtomicUsize,
}

impl FakeApiServer {
    /// A server that is in this condition, and knows no other.
    pub fn start(authority: &Keyset, condition: Condition) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(ServerState {
            own: address,
            condition: Mutex::new(condition),
            listed: Mutex::new(vec![address]),
            checks: AtomicUsize::new(0),
        });
        let config = tls_config(authority, NAME);
        let shared = inner.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, config) = (shared.clone(), config.clone());
                std::thread::spawn(move || shared.serve_connection(stream, config));
            }
        });
        Self { address, inner }
    }

    pub fn set_condition(&self, condition: Condition) {
        *self.inner.condition.lock().unwrap() = condition;
    }

    pub fn set_listed(&self, servers: &[&Self]) {
        let addresses = servers.iter().map(|server| server.address);
        *self.inner.listed.lock().unwrap() = addresses.collect();
    }

    /// How often it was asked whether it is ready.
    pub fn checks(&self) -> usize {
        self.inner.checks.load(Ordering::Relaxed)
    }
}

impl ServerState {
    /// Waits as long as the server hangs. `None`: it has ended.
    fn go_on(&self) -> Option<Condition> {
        loop {
            let condition = *self.condition.lock().unwrap();
            match condition {
                Condition::Hung => sleep(LINES),
                Condition::Ended => return None,
                other => return Some(other),
            }
        }
    }

    /// Serves requests until the server or the client ends.
    fn serve_connection(&self, stream: TcpStream, config: Arc<ServerConfig>) -> Option<()> {
        self.go_on()?;
        let connection = ServerConnection::new(config).unwrap();
        let mut stream = BufReader::new(StreamOwned::new(connection, stream));
        loop {
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).unwrap_or(0) == 0 {
                    return None;
                }
                match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                }
            }
            let condition = self.go_on()?;
            let path = head[0].split(' ').nth(1).unwrap();
            let stream = stream.get_mut();
            if path == WATCH {
                return self.serve_watch(stream);
            }
            let (status, body) = if path.starts_with("/readyz?") {
                self.checks.fetch_add(1, Ordering::Relaxed);
                match condition {
                    Condition::Ready => ("200 OK", "ok".to_owned()),
                    _ => ("500 Internal Server Error", "[-]etcd failed".to_owned()),
                }
            } else if path.starts_with("/api/v1/namespaces/default/endpoints/kubernetes?") {
                ("200 OK", self.endpoints())
            } else {
                ("404 Not Found", String::new())
            };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).ok()?;
            stream.flush().ok()?;
        }
    }

    fn serve_watch(&self, stream: &mut impl Write) -> Option<()> {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).ok()?;
        loop {
            let line = format!("{}\n", self.own);
            stream.write_all(line.as_bytes()).ok()?;
            stream.flush().ok()?;
            sleep(LINES);
            self.go_on()?;
        }
    }

    fn endpoints(&self) -> String {
        let listed = self.listed.lock().unwrap();
        let subsets: Vec<_> = listed
            .iter()
            .map(|server| {
                json!({
                    "addresses": [{"ip": server.ip()}],
                    "ports": [{"name": "https", "port": server.port()}],
                })
            })
            .collect();
        json!({"kind": "Endpoints", "subsets": subsets}).to_string()
    }
}
