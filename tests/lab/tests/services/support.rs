//! Worlds, a stand-in for the simulator, curl.

use lab::services::access_log::AccessLog;
use lab::services::ca::Ca;
use lab::services::front::{self, Front};
use lab::services::simulator::Simulator;
use lab::services::sites::Sites;
use lab::world::{Instance, World};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::watch;

pub fn instance(id: &str, vpc: &str, address: Ipv4Addr) -> Instance {
    Instance {
        vpc: vpc.to_owned(),
        ..Instance::plain(id, address)
    }
}

pub fn world() -> World {
    World {
        serial: 1,
        region: "us-east-1".to_owned(),
        ..World::default()
    }
}

/// An answer as curl shows it.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Head of the answer, lower case.
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

/// Runs curl; `None`: no answer came.
pub async fn curl(arguments: &[&str]) -> Option<Answer> {
    curl_by(&["curl"], arguments).await
}

/// Runs curl by a command before it, such as `ip netns exec NAME`.
pub async fn curl_by(command: &[&str], arguments: &[&str]) -> Option<Answer> {
    let folder = TempDir::new().expect("folder");
    let head = folder.path().join("head");
    let output = Command::new(command[0])
        .args(&command[1..])
        .args(["--silent", "--max-time", "60", "--dump-header"])
        .arg(&head)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .await
        .expect("curl runs");
    let head = std::fs::read_to_string(&head).unwrap_or_default();
    let head = head.to_ascii_lowercase().replace("\r\n", "\n");
    let last = head.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let status = last.split(' ').nth(1)?.parse().ok()?;
    output.status.success().then(|| Answer {
        status,
        head: last.to_owned(),
        body: output.stdout,
    })
}

/// Reads an HTTP head and gives it with what came after it.
pub async fn read_head(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Some((String::from_utf8(bytes).expect("text"), rest));
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// The value of a header in a head.
pub fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut lines = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    lines.next().map(|(_, value)| value)
}

/// A server that answers each request with what `answer` makes of its head and body.
pub async fn stand_in<F>(answer: F) -> SocketAddr
where
    F: Fn(String, Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address");
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let Some((head, mut body)) = read_head(&mut stream).await else {
                    return;
                };
                let length =
                    value(&head, "content-length").map_or(0, |l| l.parse().expect("length"));
                while body.len() < length && stream.read_buf(&mut body).await.expect("body") > 0 {}
                let answer = answer(head, body);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    answer.len()
                );
                stream.write_all(head.as_bytes()).await.expect("head");
                stream.write_all(&answer).await.expect("answer");
            });
        }
    });
    address
}

/// A front on loopback, with its folders and its authority.
pub struct TestFront {
    pub folder: TempDir,
    pub tls: SocketAddr,
    pub plain: SocketAddr,
}

impl TestFront {
    pub async fn before(simulator: SocketAddr) -> Self {
        Self::of(simulator, World::default()).await
    }

    pub async fn of(simulator: SocketAddr, world: World) -> Self {
        let folder = TempDir::new().expect("folder");
        let sites = Sites {
            mirror: folder.path().join("mirror"),
            registry: folder.path().join("registry"),
        };
        let log = AccessLog::open(&folder.path().join("access.log")).expect("log");
        let front = Arc::new(Front {
            sites,
            simulator: Simulator { address: simulator },
            // It stays as it is.
            world: watch::channel(Arc::new(world)).1,
            log,
        });
        let ca = Arc::new(Ca::open(folder.path()).expect("authority"));
        let tls = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let plain = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let made = Self {
            folder,
            tls: tls.local_addr().expect("address"),
            plain: plain.local_addr().expect("address"),
        };
        tokio::spawn(front::serve_plain(Arc::clone(&front), plain));
        tokio::spawn(async move { front::serve_tls(front, ca, tls).await.expect("TLS") });
        made
    }

    pub fn ca(&self) -> String {
        let path = self.folder.path().join("ca.crt");
        path.to_str().expect("text").to_owned()
    }

    pub fn log(&self) -> Vec<serde_json::Value> {
        log_at(&self.folder.path().join("access.log"))
    }

    /// Asks under public names, which all lead here.
    pub async fn get(&self, arguments: &[&str]) -> Option<Answer> {
        let tls = format!(":443:{}", self.tls);
        let plain = format!(":80:{}", self.plain);
        let ca = self.ca();
        let mut all = vec![
            "--cacert",
            &ca,
            "--connect-to",
            &tls,
            "--connect-to",
            &plain,
        ];
        all.extend_from_slice(arguments);
        curl(&all).await
    }

    pub fn write(&self, path: &str, content: &[u8]) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("folder")).expect("folder");
        std::fs::write(path, content).expect("file");
    }
}

pub fn log_at(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("log");
    let line = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(line).collect()
}
