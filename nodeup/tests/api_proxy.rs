//! The proxy of the API: connections go to an API server that is ready, and its list of API servers outlives them, boots and mistakes.
#![cfg(test)]

mod support;

use host::{Host, LocalSystem};
use node::config::KUBELET_CLIENT;
use node::pki::{Keyset, Leaf, SystemKeys, Usage, issue_certificate, trust_bundle};
use nodeup::api_proxy::{Pace, ProxyContext, serve_api};
use nodeup::stage::StageLogger;
use reqwest::{Certificate, Client, Response};
use std::fs;
use std::net::{SocketAddr, TcpListener as SilentListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::api_server::{Condition, FakeApiServer, NAME, WATCH};
use support::bootstrap::mint_authority;
use support::test_instance::TestInstance;
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const PACE: Pace = Pace {
    check: Duration::from_millis(50),
    idle_check: Duration::from_millis(100),
    answer: Duration::from_millis(500),
    list: Duration::from_millis(100),
    silence: Duration::from_secs(1),
};

/// Limit of everything that happens sooner or later.
const LIMIT: Duration = Duration::from_secs(30);

/// A port of loopback at which nobody listens.
const NOBODY: u16 = 1;

/// An instance with kubelet's certificate, and the authority of its cluster.
struct TestNode {
    folder: TempDir,
    authority: Keyset,
}

impl TestNode {
    /// An instance whose list names these API servers.
    fn new(listed: &[SocketAddr]) -> Self {
        let node = Self {
            folder: TempDir::new().unwrap(),
            authority: mint_authority(),
        };
        let leaf = Leaf {
            common_name: "system:node:i-1".into(),
            organization: Some("system:nodes".into()),
            usage: Usage::Client,
            names: Vec::new(),
            validity: time::Duration::days(1),
        };
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
        let issued = issue_certificate(&node.authority, &leaf, &mut keys).unwrap();
        let pem = format!("{}{}", issued.certificate, issued.key.reveal());
        let host = node.host();
        host.write_file(KUBELET_CLIENT, pem.as_bytes(), 0o600, None)
            .unwrap();
        node.write_list(listed);
        node
    }

    fn host(&self) -> Host {
        Host::new(self.folder.path(), Arc::new(LocalSystem::default()))
    }

    fn write_list(&self, servers: &[SocketAddr]) {
        let lines: String = servers.iter().map(|server| format!("{server}\n")).collect();
        let host = self.host();
        host.write_file("/var/lib/kctl/api-servers", lines.as_bytes(), 0o644, None)
            .unwrap();
    }

    fn list(&self) -> String {
        fs::read_to_string(self.folder.path().join("var/lib/kctl/api-servers")).unwrap()
    }

    /// Starts a proxy, and returns where it listens. It runs as long as the runtime.
    async fn start_proxy(&self, port: u16, follows_list: bool) -> SocketAddr {
        let note = Arc::new(|line: &str| println!("{line}"));
        self.start_proxy_with(port, follows_list, 100, note).await
    }

    /// The same with so many connections at most, and with its log.
    async fn start_proxy_with(
        &self,
        port: u16,
        follows_list: bool,
        connections: usize,
        note: StageLogger,
    ) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let context = ProxyContext {
            host: self.host(),
            server: (NAME.to_owned(), port),
            follows_list,
            trust_bundle: trust_bundle(&self.authority),
            connections,
            pace: PACE,
            note,
        };
        tokio::spawn(serve_api(context, listener));
        address
    }

    /// Opens a watch through the proxy; `None` if it ends before its first line.
    async fn try_watch(&self, proxy: SocketAddr) -> Option<(Response, String)> {
        let trusted = trust_bundle(&self.authority);
        let client = Client::builder()
            .tls_certs_only(Certificate::from_pem_bundle(trusted.as_bytes()).unwrap())
            .resolve(NAME, proxy)
            .http1_only()
            .build()
            .unwrap();
        let url = format!("https://{NAME}:{}{WATCH}", proxy.port());
        let mut watch = client.get(url).send().await.ok()?;
        let line = watch.chunk().await.ok()??;
        let line = String::from_utf8(line.to_vec()).unwrap();
        let server = line.lines().next()?.to_owned();
        Some((watch, server))
    }

    /// A watch through the proxy and who serves it.
    async fn watch(&self, proxy: SocketAddr) -> (Response, String) {
        let opened = async {
            loop {
                if let Some(opened) = self.try_watch(proxy).await {
                    return opened;
                }
                sleep(PACE.check).await;
            }
        };
        timeout(LIMIT, opened).await.unwrap()
    }

    /// A watch that this server serves, as soon as new connections go there.
    async fn watch_at(&self, proxy: SocketAddr, server: &FakeApiServer) -> Response {
        let opened = async {
            loop {
                let (watch, by) = self.watch(proxy).await;
                if by == server.address.to_string() {
                    return watch;
                }
                sleep(PACE.check).await;
            }
        };
        timeout(LIMIT, opened).await.unwrap()
    }
}

/// Reads a watch until it ends.
async fn wait_for_end(watch: &mut Response) {
    let ended = async { while let Ok(Some(_)) = watch.chunk().await {} };
    timeout(LIMIT, ended).await.unwrap();
}

/// Reads a watch for as long as many checks take; false if it ends.
async fn goes_on(watch: &mut Response) -> bool {
    let ended = async { while let Ok(Some(_)) = watch.chunk().await {} };
    timeout(10 * PACE.check, ended).await.is_err()
}

/// Two servers that know each other, in these conditions, and an instance that knows both.
fn two_servers(first: Condition, second: Condition) -> (TestNode, [FakeApiServer; 2]) {
    let node = TestNode::new(&[]);
    let servers = [first, second].map(|condition| FakeApiServer::start(&node.authority, condition));
    for server in &servers {
        server.set_listed(&[&servers[0], &servers[1]]);
    }
    node.write_list(&servers.each_ref().map(|server| server.address));
    (node, servers)
}

/// Each of two servers has the fault, one after the other.
async fn move_between_servers(fault: Condition) {
    let (node, servers) = two_servers(Condition::Ready, Condition::Ready);
    let proxy = node.start_proxy(NOBODY, true).await;
    let (mut watch, by) = node.watch(proxy).await;
    let (own, other) = if by == servers[0].address.to_string() {
        (&servers[0], &servers[1])
    } else {
        (&servers[1], &servers[0])
    };
    own.set_condition(fault);
    wait_for_end(&mut watch).await;
    let mut watch = node.watch_at(proxy, other).await;
    assert!(goes_on(&mut watch).await, "{fault:?}");
    // It is used again once it is ready, and nobody is moved for that.
    own.set_condition(Condition::Ready);
    assert!(goes_on(&mut watch).await, "{fault:?}");
    other.set_condition(fault);
    wait_for_end(&mut watch).await;
    node.watch_at(proxy, own).await;
}

#[tokio::test]
async fn a_watch_goes_on_at_another_server_when_its_own_hangs_ends_or_is_not_ready() {
    futures::join!(
        move_between_servers(Condition::Hung),
        move_between_servers(Condition::Ended),
        move_between_servers(Condition::NotReady),
    );
}

#[tokio::test]
async fn no_connection_is_closed_while_no_server_is_better() {
    let (node, [first, second]) = two_servers(Condition::Ready, Condition::NotReady);
    let proxy = node.start_proxy(NOBODY, true).await;
    let mut watch = node.watch_at(proxy, &first).await;
    assert!(goes_on(&mut watch).await, "the other is found not ready");
    // Such as without a quorum of etcd.
    first.set_condition(Condition::NotReady);
    assert!(goes_on(&mut watch).await);
    second.set_condition(Condition::Ready);
    wait_for_end(&mut watch).await;
    node.watch_at(proxy, &second).await;
}

#[tokio::test]
async fn a_list_of_dead_addresses_recovers_by_the_name() {
    // It takes connections, and never says anything.
    let silent = SilentListener::bind("127.0.0.1:0").unwrap();
    let dead = [
        silent.local_addr().unwrap(),
        SocketAddr::from(([127, 0, 0, 1], NOBODY)),
    ];
    let node = TestNode::new(&dead);
    let server = FakeApiServer::start(&node.authority, Condition::Ready);
    let proxy = node.start_proxy(server.address.port(), true).await;
    node.watch_at(proxy, &server).await;
    let wanted = format!("{}\n", server.address);
    let kept = async {
        while node.list() != wanted {
            sleep(PACE.check).await;
        }
    };
    timeout(LIMIT, kept).await.unwrap();
}

/// Runs on a runtime of its own, with which everything ends that was started.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test)
}

#[test]
fn replaced_servers_are_followed_and_the_list_outlives_the_proxy() {
    let node = TestNode::new(&[]);
    let servers: Vec<FakeApiServer> = (0..3)
        .map(|_| FakeApiServer::start(&node.authority, Condition::Ready))
        .collect();
    node.write_list(&[servers[0].address]);
    for pair in servers.windows(2) {
        let [old, new] = pair else { unreachable!() };
        run(async {
            // The name leads nowhere: only what is kept does.
            let proxy = node.start_proxy(NOBODY, true).await;
            let mut watch = node.watch_at(proxy, old).await;
            old.set_listed(&[new]);
            let listed = async {
                while node.list() != format!("{}\n", new.address) {
                    sleep(PACE.check).await;
                }
            };
            timeout(LIMIT, listed).await.unwrap();
            // Whoever leaves the list ends its connections itself.
            assert!(goes_on(&mut watch).await);
            old.set_condition(Condition::Ended);
            wait_for_end(&mut watch).await;
            node.watch_at(proxy, new).await;
        });
    }
}

#[tokio::test]
async fn a_control_plane_uses_its_own_server_and_asks_it_nothing() {
    let node = TestNode::new(&[]);
    let own = FakeApiServer::start(&node.authority, Condition::NotReady);
    let proxy = node.start_proxy(own.address.port(), false).await;
    let mut watch = node.watch_at(proxy, &own).await;
    assert!(goes_on(&mut watch).await);
    assert_eq!((own.checks(), node.list()), (0, String::new()));
}

/// A program gone wrong must take neither the connections that are there nor the descriptors for checks.
#[tokio::test]
async fn connections_beyond_the_limit_are_closed_at_once_and_those_within_it_go_on() {
    for most in [1, 4] {
        let node = TestNode::new(&[]);
        let own = FakeApiServer::start(&node.authority, Condition::Ready);
        let said = Arc::new(Mutex::new(Vec::<String>::new()));
        let log = Arc::clone(&said);
        let note = Arc::new(move |line: &str| log.lock().unwrap().push(line.to_owned()));
        let port = own.address.port();
        let proxy = node.start_proxy_with(port, false, most, note).await;
        let mut watches = Vec::new();
        for _ in 0..most {
            watches.push(node.try_watch(proxy).await.unwrap().0);
        }
        for _ in 0..3 {
            let refused = timeout(LIMIT, node.try_watch(proxy)).await.unwrap();
            assert!(refused.is_none(), "{most}");
        }
        for watch in &mut watches {
            assert!(goes_on(watch).await, "{most}");
        }
        // As soon as there is a place again.
        watches.pop();
        node.watch_at(proxy, &own).await;
        let said = said.lock().unwrap().join("\n");
        assert_eq!(said.matches("are closed at once").count(), 1, "{said}");
    }
}

/// A connection that has a place: the proxy does not close it, and a server that hangs says nothing on it.
async fn connect_with_place(proxy: SocketAddr) -> TcpStream {
    let connected = async {
        loop {
            let mut client = TcpStream::connect(proxy).await.unwrap();
            if timeout(10 * PACE.check, client.read_u8()).await.is_err() {
                return client;
            }
            sleep(PACE.check).await;
        }
    };
    timeout(LIMIT, connected).await.unwrap()
}

/// Clients send so many bytes to the only server, which hangs, and go away, one after the other, where there is a single place.
async fn give_up_again_and_again(bytes: usize) {
    let node = TestNode::new(&[]);
    let own = FakeApiServer::start(&node.authority, Condition::Hung);
    let note = Arc::new(|line: &str| println!("{line}"));
    let port = own.address.port();
    let proxy = node.start_proxy_with(port, false, 1, note).await;
    for _ in 0..3 {
        let mut client = connect_with_place(proxy).await;
        // More than fits on the way is not sent to its end.
        let _ = timeout(PACE.answer, client.write_all(&vec![0; bytes])).await;
    }
}

/// kubelet comes back for as long as its API server hangs. If each time took a place for good, there would be none once that is ready again.
#[tokio::test]
async fn a_client_that_gives_up_leaves_its_place_although_the_server_hangs() {
    futures::join!(
        give_up_again_and_again(0),
        give_up_again_and_again(100),
        give_up_again_and_again(64 << 20),
    );
}

/// A host that was reset knows nothing of a connection, and says so only when it is asked.
#[tokio::test]
async fn the_host_of_a_server_is_asked_about_a_connection_on_which_nothing_is_sent() {
    let node = TestNode::new(&[]);
    let own = FakeApiServer::start(&node.authority, Condition::Hung);
    let proxy = node.start_proxy(own.address.port(), false).await;
    let client = connect_with_place(proxy).await;
    // Address and port of the other side, the state, and the timer that runs (Linux, Documentation/networking/proc_net_tcp.rst).
    let server = format!("0100007F:{:04X}", own.address.port());
    let (established, keepalive) = ("01", "02");
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<&str>>());
    let rows = rows.filter(|row| row[2] == server && row[3] == established);
    let timers: Vec<String> = rows.map(|row| row[5][..2].to_owned()).collect();
    assert_eq!(timers, [keepalive], "{table}");
    drop(client);
}

#[tokio::test]
async fn what_a_server_says_after_the_end_of_its_client_arrives() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let node = TestNode::new(&[]);
    let proxy = node.start_proxy(port, false).await;
    let answering = async {
        let (mut stream, _) = server.accept().await.unwrap();
        let mut question = Vec::new();
        stream.read_to_end(&mut question).await.unwrap();
        stream
            .write_all(&[&b"asked: "[..], &question].concat())
            .await
            .unwrap();
    };
    let asking = async {
        let mut client = TcpStream::connect(proxy).await.unwrap();
        client.write_all(b"who is there").await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let ended = timeout(LIMIT, async { futures::join!(asking, answering) });
    assert_eq!(ended.await.unwrap().0, "asked: who is there");
}

#[test]
fn an_instance_that_has_not_joined_has_no_proxy() {
    let instance = TestInstance::new_worker(&mint_authority(), &[]);
    let ran = instance.run(&["--api-proxy"]);
    assert_eq!(ran.exit_code, Some(1), "{ran:#?}");
    let (last, detail) = ran.last_line();
    assert_eq!(last, "api-proxy failed");
    assert!(detail.contains("has not joined yet"), "{detail}");
}
