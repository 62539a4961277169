//! As root: all services at their real addresses in a network namespace, asked from other namespaces.

use crate::support::{curl_by, instance, log_at, stand_in, world};
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use lab::scenario::skipped;
use lab::services::ca::Ca;
use lab::services::{Services, dns, real_clock, sockets, start};
use lab::world::{Vpc, World};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Three namespaces of this process: router, host, and one behind the host as a pod is.
struct Namespaces {
    router: String,
    host: String,
    pod: String,
}

impl Namespaces {
    fn make() -> Self {
        let own = std::process::id();
        let named = |what: &str| format!("kctl-test-{own}-{what}");
        let made = Self {
            router: named("router"),
            host: named("host"),
            pod: named("pod"),
        };
        for name in [&made.router, &made.host, &made.pod] {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        let forward = [
            "netns",
            "exec",
            &made.host,
            "sysctl",
            "-qw",
            "net.ipv4.ip_forward=1",
        ];
        ip(&forward);
        made.join((&made.router, "10.0.1.1"), (&made.host, "10.0.1.10"));
        made.join((&made.host, "10.0.9.1"), (&made.pod, "10.0.9.2"));
        ip(&[
            "-n",
            &made.router,
            "route",
            "add",
            "10.0.9.0/24",
            "via",
            "10.0.1.10",
        ]);
        made
    }

    /// A link with both addresses, /24, and a default route from the second to the first.
    fn join(&self, first: (&str, &str), second: (&str, &str)) {
        let _ = self;
        let pair = [
            "-n", first.0, "link", "add", "near", "type", "veth", "peer", "name", "far",
        ];
        ip(&[&pair[..], &["netns", second.0]].concat());
        for ((name, address), link) in [(first, "near"), (second, "far")] {
            ip(&[
                "-n",
                name,
                "addr",
                "add",
                &format!("{address}/24"),
                "dev",
                link,
            ]);
            ip(&["-n", name, "link", "set", link, "up"]);
        }
        ip(&["-n", second.0, "route", "add", "default", "via", first.1]);
    }

    /// Addresses of the services, as the router has them.
    fn addresses(&self) {
        for address in [
            "169.254.169.254",
            "169.254.169.253",
            "198.18.0.1",
            "10.0.0.2",
        ] {
            ip(&[
                "-n",
                &self.router,
                "addr",
                "add",
                &format!("{address}/32"),
                "dev",
                "lo",
            ]);
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.router, &self.host, &self.pod] {
            let deleted = Command::new("ip").args(["netns", "del", name]).status();
            assert!(deleted.is_ok_and(|status| status.success()), "{name} stays");
        }
    }
}

fn ip(arguments: &[&str]) {
    let status = Command::new("ip")
        .args(arguments)
        .status()
        .expect("ip runs");
    assert!(status.success(), "ip {arguments:?}");
}

fn resolve(from: &str, server: Ipv4Addr, name: &str) -> Vec<String> {
    let mut query = Message::query();
    query.add_query(Query::query(
        Name::from_ascii(name).expect("a name"),
        RecordType::A,
    ));
    let query = query.to_vec().expect("a query");
    let answer = sockets::inside(Some(from), || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(Duration::from_secs(30)))?;
        socket.send_to(&query, SocketAddrV4::new(server, 53))?;
        let mut buffer = [0; 512];
        let (length, _) = socket.recv_from(&mut buffer)?;
        Ok(buffer[..length].to_vec())
    });
    let answer = Message::from_vec(&answer.expect("an answer")).expect("a message");
    answer
        .answers
        .iter()
        .map(|record| record.data.to_string())
        .collect()
}

/// All services, in the router's namespace; the simulator knows one tree for everybody.
async fn started(
    router: &str,
    folder: &Path,
    world: watch::Receiver<Arc<World>>,
) -> JoinSet<lab::services::Error> {
    let tree = br#"{"meta-data": {"instance-id": "i-1"}, "dynamic": {}}"#;
    let services = Services {
        netns: Some(router.to_owned()),
        world,
        simulator: stand_in(|_, _| tree.to_vec()).await,
        mirror: folder.join("mirror"),
        registry: folder.join("registry"),
        ca: Arc::new(Ca::open(folder).expect("authority")),
        access_log: folder.join("log"),
        dns: dns::Settings::default(),
        clock: real_clock(),
    };
    start(services).expect("the services start")
}

/// A token, or no answer.
async fn token(from: &str) -> Option<String> {
    let by = ["ip", "netns", "exec", from, "curl"];
    let ttl = "X-aws-ec2-metadata-token-ttl-seconds: 60";
    let url = "http://169.254.169.254/latest/api/token";
    let answer = curl_by(&by, &["--max-time", "3", "-X", "PUT", "-H", ttl, url]).await;
    answer.map(|answer| answer.text().to_owned())
}

async fn check_names(host: String) {
    let by_vpc = Ipv4Addr::new(10, 0, 0, 2);
    let link_local = Ipv4Addr::new(169, 254, 169, 253);
    let internet = Ipv4Addr::new(198, 18, 0, 1);
    let names = tokio::task::spawn_blocking(move || {
        let own = "ip-10-0-1-10.ec2.internal.";
        assert_eq!(resolve(&host, by_vpc, own), ["10.0.1.10"]);
        assert_eq!(resolve(&host, link_local, own), ["10.0.1.10"]);
        assert_eq!(resolve(&host, internet, own), [""; 0]);
        resolve(&host, by_vpc, "sts.amazonaws.com.")
    });
    assert_eq!(names.await.expect("resolved"), ["198.18.0.1"]);
}

#[tokio::test]
async fn hosts_reach_the_services_at_their_real_addresses() {
    if skipped("hosts_reach_the_services_at_their_real_addresses") {
        return;
    }
    let namespaces = Namespaces::make();
    let folder = TempDir::new().expect("folder");
    let mut world = world();
    world.vpcs = vec![Vpc::plain("vpc-1", "10.0.0.0/16")];
    world.instances = vec![
        instance("i-1", "vpc-1", Ipv4Addr::new(10, 0, 1, 10)),
        // Stands for a pod whose host does not masquerade: one hop further away than its own host.
        instance("i-2", "vpc-1", Ipv4Addr::new(10, 0, 9, 2)),
    ];
    let (sender, receiver) = watch::channel(Arc::new(world));
    let tasks = started(&namespaces.router, folder.path(), receiver).await;
    // The addresses come after the listeners: VPCs come and go.
    namespaces.addresses();

    assert!(token(&namespaces.host).await.is_some());
    let answer = token(&namespaces.pod).await;
    assert!(answer.is_none(), "one hop too far for a limit of 1");
    sender.send_modify(|world| Arc::make_mut(world).instances[1].hop_limit = 2);
    assert!(
        token(&namespaces.pod).await.is_some(),
        "a limit of 2 reaches"
    );

    check_names(namespaces.host.clone()).await;

    let by = ["ip", "netns", "exec", &namespaces.host, "curl"];
    let (ca, resolve) = (
        folder.path().join("ca.crt"),
        "sts.amazonaws.com:443:198.18.0.1",
    );
    let ca = ca.to_str().expect("text");
    let arguments = [
        "--cacert",
        ca,
        "--resolve",
        resolve,
        "https://sts.amazonaws.com/",
    ];
    let answer = curl_by(&by, &arguments).await.expect("an answer");
    assert_eq!(answer.status, 200);
    let log = log_at(&folder.path().join("log"));
    let calls: Vec<_> = log.iter().filter(|line| line["service"] == "aws").collect();
    assert_eq!(calls[0]["source"], "10.0.1.10");
    drop(tasks);
}
