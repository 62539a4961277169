//! The proxy of the API on loopback. It passes each connection on to an API server that is ready, and closes it when that server is not
//! any more and another one is. It looks into no connection: TLS is between the client and the API server.

mod client;
mod copy;
mod list;
mod servers;

use crate::lock::lock_ignoring_poison;
use crate::stage::StageLogger;
use anyhow::Context as _;
use client::ApiClient;
use copy::{copy_both_ways, limit_silence};
use host::Host;
use list::{ENDPOINTS, next_list, read_list, write_list};
use node::api_health::needed_checks;
use node::config::{NodeConfig, Role};
use node::ports;
use servers::{Closing, Servers};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// Pause after a failed accept, which means that file descriptors have run out.
const PAUSE: Duration = Duration::from_secs(1);

/// How many connections there may be at once. Those of a node are about ten, so nobody gets here but a program gone wrong. They take 2,000 of
/// the 65,536 file descriptors of the unit, which leaves some for checks and the list, and 16 MB of buffers (two of 8 KiB each), which the
/// smallest node can spare: the kernel ends everything else before this process.
const CONNECTIONS: usize = 1000;

/// Between two lines in the log about connections that were refused.
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// Inputs of the proxy.
pub struct ProxyContext {
    /// The instance, with kubelet's certificate and the list of API servers.
    pub host: Host,
    /// Name of the API servers, which their certificate has, and the port at its addresses.
    pub server: (String, u16),
    /// False on a control plane, where the address of the name is the only API server.
    pub follows_list: bool,
    /// Authorities of the API servers' certificate, PEM.
    pub trust_bundle: String,
    /// How many connections there may be at once.
    pub connections: usize,
    pub pace: Pace,
    pub note: StageLogger,
}

/// How long the proxy waits.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two checks of a server that has connections, or while none is ready.
    pub check: Duration,
    /// Between two checks of another server, unless it gets connections meanwhile. API servers are asked by every node.
    pub idle_check: Duration,
    /// For the answer to a check, and for a connection.
    pub answer: Duration,
    /// Between two looks at the list of API servers; while none is ready, as between two checks.
    pub list: Duration,
    /// For one side of a connection to end after the other one, and for a server's host to take what it is sent.
    pub silence: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            check: Duration::from_secs(2),
            idle_check: Duration::from_secs(10),
            answer: Duration::from_secs(2),
            list: Duration::from_secs(30),
            silence: Duration::from_mins(1),
        }
    }
}

struct Proxy {
    context: ProxyContext,
    /// Where it listens.
    listen: SocketAddr,
    servers: Mutex<Servers>,
}

/// Runs the proxy of an instance until listening fails.
pub async fn run_api_proxy(
    config: NodeConfig,
    host: Host,
    note: StageLogger,
) -> anyhow::Result<()> {
    let proxy = config.api_proxy;
    let proxy = proxy.context("the configuration of this instance has no proxy of the API")?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::API_PROXY));
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("could not listen on {listen}: stop the other program that does")
    })?;
    let context = ProxyContext {
        host,
        server: (proxy.server, ports::API),
        follows_list: config.role != Role::ControlPlane,
        trust_bundle: config.ca_certificates,
        connections: CONNECTIONS,
        pace: Pace::default(),
        note,
    };
    serve_api(context, listener).await
}

/// Serves on a listener for ever. A connection that is too many is closed at once.
pub async fn serve_api(context: ProxyContext, listener: TcpListener) -> anyhow::Result<()> {
    let proxy = Arc::new(Proxy {
        listen: listener.local_addr().context("the listener is closed")?,
        servers: Mutex::default(),
        context,
    });
    if proxy.context.follows_list {
        let listed = read_list(&proxy.context.host).unwrap_or_else(|error| {
            (proxy.context.note)(&format!("the list of API servers is lost: {error:#}"));
            Vec::new()
        });
        proxy.use_servers(&listed, &[]);
        let proxy = Arc::clone(&proxy);
        tokio::spawn(async move { proxy.follow_list(listed).await });
    } else {
        let own = proxy.resolve_name().await?;
        // There is no other to go to: it needs no checks.
        lock_ignoring_poison(&proxy.servers).set_addresses(&[], &own);
    }
    let most = proxy.context.connections;
    let places = Arc::new(Semaphore::new(most));
    let mut said: Option<Instant> = None;
    loop {
        let Ok((client, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // Its client comes back, and the connections that are there are not disturbed.
            drop(client);
            if said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
                said = Some(Instant::now());
                (proxy.context.note)(&format!(
                    "{most} connections are open, and others are closed at once: `ss -tnp dport = :{}` shows whose they are",
                    proxy.listen.port()
                ));
            }
            continue;
        };
        let proxy = Arc::clone(&proxy);
        tokio::spawn(async move {
            proxy.pass_on(client).await;
            drop(place);
        });
    }
}

impl Proxy {
    /// Passes a connection on to the first server that takes it.
    async fn pass_on(&self, mut client: TcpStream) {
        let pace = self.context.pace;
        let candidates = lock_ignoring_poison(&self.servers).candidates();
        for address in candidates {
            let connected = timeout(pace.answer, TcpStream::connect(address));
            let Ok(Ok(mut server)) = connected.await else {
                continue;
            };
            let Some(mut connection) = Connection::open(self, address) else {
                continue;
            };
            // Watches and leases are small messages.
            let _ = client.set_nodelay(true);
            let _ = server.set_nodelay(true);
            let _ = limit_silence(&server, pace.silence);
            tokio::select! {
                _ = copy_both_ways(&mut client, &mut server, pace.silence) => {}
                _ = connection.closing.changed() => {}
            }
            return;
        }
    }

    /// Uses these servers from now on, and checks those that are new.
    fn use_servers(self: &Arc<Self>, listed: &[SocketAddr], named: &[SocketAddr]) {
        let new = lock_ignoring_poison(&self.servers).set_addresses(listed, named);
        for (address, mut closing) in new {
            let proxy = Arc::clone(self);
            tokio::spawn(async move {
                tokio::select! {
                    () = proxy.check_server(address) => {}
                    // Until the server is forgotten.
                    () = async { while closing.changed().await.is_ok() {} } => {}
                }
            });
        }
    }

    /// Asks a server again and again whether it is ready.
    async fn check_server(&self, address: SocketAddr) {
        let pace = self.context.pace;
        let path = format!("/readyz?{}", needed_checks());
        let mut client = ApiClient::new(address);
        loop {
            let mut answer = client.get(&self.context, &path, pace.answer).await;
            if answer.is_err() {
                // One answer may get lost.
                answer = client.get(&self.context, &path, pace.answer).await;
            }
            let problem = answer.err();
            let changed =
                lock_ignoring_poison(&self.servers).set_health(address, problem.is_none());
            match problem {
                _ if !changed => {}
                None => (self.context.note)(&format!("{address} is ready")),
                Some(why) => (self.context.note)(&format!("{address} is not ready: {why:#}")),
            }
            let mut waited = Duration::ZERO;
            while waited < pace.idle_check {
                sleep(pace.check).await;
                waited += pace.check;
                if lock_ignoring_poison(&self.servers).is_urgent(address) {
                    break;
                }
            }
        }
    }

    /// Reads the list of API servers again and again, through the proxy itself, and what their name leads to.
    async fn follow_list(self: Arc<Self>, mut listed: Vec<SocketAddr>) {
        let pace = self.context.pace;
        let mut client = ApiClient::new(self.listen);
        let (mut named, mut said) = (Vec::new(), String::new());
        loop {
            let mut problems = Vec::new();
            match self.resolve_name().await {
                Ok(found) => named = found,
                Err(error) => problems.push(error),
            }
            self.use_servers(&listed, &named);
            match self.read_endpoints(&mut client, &listed).await {
                Ok(list) => {
                    if list != listed {
                        (self.context.note)(&format!("API servers: {list:?}"));
                        listed = list;
                        self.use_servers(&listed, &named);
                    }
                    // A list that could not be kept is tried again.
                    problems.extend(write_list(&self.context.host, &listed).err());
                }
                Err(error) => problems.push(error),
            }
            let now: Vec<String> = problems.iter().map(|why| format!("{why:#}")).collect();
            let now = now.join("; ");
            if now != said && !now.is_empty() {
                (self.context.note)(&format!("the known API servers stay: {now}"));
            }
            said = now;
            let ready = lock_ignoring_poison(&self.servers).is_any_ready();
            sleep(if ready { pace.list } else { pace.check }).await;
        }
    }

    async fn read_endpoints(
        &self,
        client: &mut ApiClient,
        known: &[SocketAddr],
    ) -> anyhow::Result<Vec<SocketAddr>> {
        let answer = client
            .get(&self.context, ENDPOINTS, 4 * self.context.pace.answer)
            .await
            .context("could not read the list of API servers")?;
        next_list(known, &answer)
    }

    /// The addresses of the name, of which there are some.
    async fn resolve_name(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let (name, port) = &self.context.server;
        let found = lookup_host((name.as_str(), *port)).await;
        let found: Vec<SocketAddr> = found
            .with_context(|| format!("could not resolve {name}"))?
            .collect();
        anyhow::ensure!(!found.is_empty(), "{name} has no address");
        Ok(found)
    }
}

/// A connection's place at its server; dropping it frees the place.
struct Connection<'a> {
    proxy: &'a Proxy,
    address: SocketAddr,
    closing: Closing,
}

impl<'a> Connection<'a> {
    /// `None` if the server is not known any more.
    fn open(proxy: &'a Proxy, address: SocketAddr) -> Option<Self> {
        let closing = lock_ignoring_poison(&proxy.servers).open_connection(address)?;
        Some(Self {
            proxy,
            address,
            closing,
        })
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.proxy.servers).end_connection(self.address);
    }
}
