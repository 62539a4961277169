//! A network without hosts in it: namespaces for the router and for each instance of a world. Dropping the value removes them.

use ipnet::Ipv4Net;
use lab::aws_state::{AwsState, Instance};
use lab::host::requirements_ready;
use lab::lab_paths::LabPaths;
use lab::ledger::{self, Ledger, LedgerEntry};
use lab::network::family::Family;
use lab::network::{Router, TargetHealth, attach_host, detach_host, names, netns};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

/// How long a connection may take that must come about, and how long one is waited for that must not.
pub const PATIENCE: Duration = Duration::from_secs(5);
const DROPPED: Duration = Duration::from_millis(700);

pub struct Bench {
    pub place: LabPaths,
    pub ledger: Ledger,
    pub router: Router,
    pub world: AwsState,
}

impl Bench {
    pub fn new(name: &str, world: AwsState) -> Self {
        requirements_ready().unwrap();
        let place = LabPaths::from_name(name).unwrap();
        remove_leftovers(&place);
        std::fs::create_dir_all(place.run()).unwrap();
        let ledger = Ledger::open(&place).unwrap();
        let router = Router::set_up(&place, &ledger).unwrap();
        let mut bench = Self {
            place,
            ledger,
            router,
            world,
        };
        for instance in bench.world.instances.clone() {
            bench.attach_host(&instance.id);
        }
        bench.apply_world(&TargetHealth::new());
        bench
    }

    pub fn attach_host(&self, id: &str) {
        let instance = self
            .world
            .instances
            .iter()
            .find(|instance| instance.id == id)
            .unwrap();
        let subnet = self
            .world
            .subnets
            .iter()
            .find(|subnet| subnet.id == instance.subnet)
            .unwrap();
        attach_host(&self.place, &self.ledger, instance).unwrap();
        // What a machine learns by DHCP and from the router.
        let (length, way) = match (&subnet.cidr, instance.private_address()) {
            (Some(cidr), Some(_)) => {
                let range: Ipv4Net = cidr.parse().unwrap();
                let gateway = range.hosts().next().unwrap();
                let way = format!("default via {gateway}");
                (range.prefix_len(), way)
            }
            _ => (32, names::LINK_LOCAL.to_string()),
        };
        let lines = [
            "link set lo up".to_owned(),
            "link set eth0 up".to_owned(),
            format!("address replace {}/{length} dev eth0", instance.address),
            format!("route replace {way} dev eth0"),
        ];
        netns::ip_batch(&self.netns_of(id), Family::V4, &lines).unwrap();
        self.give_ipv6(instance);
    }

    fn give_ipv6(&self, instance: &Instance) {
        let Some(address) = instance.ipv6_addresses.first() else {
            return;
        };
        let settings = [("ipv6/conf/eth0/accept_dad".to_owned(), "0")];
        netns::write_settings(&self.netns_of(&instance.id), &settings).unwrap();
        let router = self.link_local_address(&names::link_name(&instance.id));
        let lines = [
            format!("address replace {address}/128 dev eth0 nodad"),
            format!("route replace default via {router} dev eth0"),
        ];
        netns::ip_batch(&self.netns_of(&instance.id), Family::V6, &lines).unwrap();
    }

    /// Of the router's end of a host's link.
    fn link_local_address(&self, link: &str) -> String {
        #[derive(serde::Deserialize)]
        struct Line {
            addr_info: Vec<Info>,
        }
        #[derive(serde::Deserialize)]
        struct Info {
            local: String,
        }
        let words = ["address", "show", "dev", link, "scope", "link"];
        let lines: Vec<Line> =
            netns::ip_json(&self.place.router_netns(), Family::V6, &words).unwrap();
        lines[0].addr_info[0].local.clone()
    }

    pub fn apply_world(&mut self, health: &TargetHealth) -> lab::network::AppliedState {
        self.router.apply_world(&self.world, health).unwrap()
    }

    pub fn change_world(&mut self, change: impl FnOnce(&mut AwsState)) {
        change(&mut self.world);
        self.apply_world(&TargetHealth::new());
    }

    /// A namespace by instance id; `operator` is the router's own.
    pub fn netns_of(&self, who: &str) -> String {
        if who == "operator" {
            self.place.router_netns()
        } else {
            self.place.host_netns(who)
        }
    }

    /// Answers every connection in `who` with `word` and the client's address; until the process ends.
    pub fn serve_word(&self, who: &str, at: &str, word: &str) {
        let listener = netns::run_inside(&self.netns_of(who), || TcpListener::bind(at))
            .unwrap()
            .unwrap();
        let word = word.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                drop(answer_line(stream, &word));
            }
        });
    }

    pub fn connect_to(&self, who: &str, to: &str, limit: Duration) -> std::io::Result<TcpStream> {
        let to: SocketAddr = to.parse().unwrap();
        let stream = netns::run_inside(&self.netns_of(who), || {
            TcpStream::connect_timeout(&to, limit)
        })
        .unwrap()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// What a server answers: its word and who it sees.
    pub fn ask_server(&self, who: &str, to: &str) -> String {
        let mut stream = self
            .connect_to(who, to, PATIENCE)
            .unwrap_or_else(|error| panic!("{who} to {to}: {error}"));
        read_line(&mut stream).unwrap_or_else(|error| panic!("{who} to {to}: {error}"))
    }

    /// Dropped: neither accepted nor refused.
    pub fn assert_dropped(&self, who: &str, to: &str) {
        let error = self
            .connect_to(who, to, DROPPED)
            .map(drop)
            .expect_err(&format!("{who} must not reach {to}"));
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::TimedOut,
            "{who} to {to}: {error}"
        );
    }

    pub fn bind_udp(&self, who: &str, at: &str) -> UdpSocket {
        let socket = netns::run_inside(&self.netns_of(who), || UdpSocket::bind(at))
            .unwrap()
            .unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub fn run(&self, who: &str, command: &[&str]) -> std::process::Output {
        Command::new("ip")
            .args(["netns", "exec", &self.netns_of(who)])
            .args(command)
            .output()
            .unwrap()
    }
}

fn answer_line(mut stream: TcpStream, word: &str) -> std::io::Result<()> {
    let peer = stream.peer_addr()?.ip();
    stream.write_all(format!("{word} sees {peer}\n").as_bytes())
}

/// One line from a stream.
fn read_line(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
        text.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Undoes what the ledger names, newest first.
fn remove_leftovers(place: &LabPaths) {
    for made in ledger::read_entries(place).unwrap().into_iter().rev() {
        match made {
            LedgerEntry::Netns { name } => netns::delete_netns(&name).unwrap(),
            other => panic!("the network makes no {other:?}"),
        }
    }
    let _ = std::fs::remove_dir_all(place.run());
}

impl Drop for Bench {
    fn drop(&mut self) {
        for instance in &self.world.instances {
            let _ = detach_host(&self.place, &instance.id);
        }
        remove_leftovers(&self.place);
    }
}

pub fn expected_answer(word: &str, client: &str) -> String {
    format!("{word} sees {client}")
}
