//! A network without hosts in it: namespaces for the router and for each instance of a world. Dropping the value removes them.

use super::worlds::address;
use ipnet::Ipv4Net;
use lab::host::requirements_ready;
use lab::ledger::{self, Ledger, Made};
use lab::network::{Health, Router, attach_host, detach_host, netns};
use lab::place::Place;
use lab::world::World;
use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

/// How long a connection may take that must come about, and how long one is waited for that must not.
pub const PATIENCE: Duration = Duration::from_secs(5);
const DROPPED: Duration = Duration::from_millis(700);

pub struct Bench {
    pub place: Place,
    pub ledger: Ledger,
    pub router: Router,
    pub world: World,
}

impl Bench {
    pub fn new(name: &str, world: World) -> Self {
        requirements_ready().unwrap();
        let place = Place::named(name).unwrap();
        sweep(&place);
        std::fs::create_dir_all(place.run()).unwrap();
        let ledger = Ledger::open(&place).unwrap();
        let router = Router::up(&place, &ledger).unwrap();
        let mut bench = Self {
            place,
            ledger,
            router,
            world,
        };
        for instance in bench.world.instances.clone() {
            bench.attach(&instance.id);
        }
        bench.apply(&Health::new());
        bench
    }

    pub fn attach(&self, id: &str) {
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
        // What a machine learns by DHCP.
        let range: Ipv4Net = subnet.cidr.parse().unwrap();
        let gateway = range.hosts().next().unwrap();
        let lines = [
            "link set lo up".to_owned(),
            "link set eth0 up".to_owned(),
            format!(
                "address replace {}/{} dev eth0",
                instance.address,
                range.prefix_len()
            ),
            format!("route replace default via {gateway} dev eth0"),
        ];
        netns::ip_batch(&self.netns(id), &lines).unwrap();
    }

    pub fn apply(&mut self, health: &Health) -> lab::network::Applied {
        self.router.apply(&self.world, health).unwrap()
    }

    pub fn change(&mut self, change: impl FnOnce(&mut World)) {
        change(&mut self.world);
        self.apply(&Health::new());
    }

    /// A namespace by instance id; `operator` is the router's own.
    pub fn netns(&self, who: &str) -> String {
        if who == "operator" {
            self.place.router_netns()
        } else {
            self.place.host_netns(who)
        }
    }

    /// Answers every connection in `who` with `word` and the client's address; until the process ends.
    pub fn serve(&self, who: &str, at: &str, word: &str) {
        let listener = netns::inside(&self.netns(who), || TcpListener::bind(at))
            .unwrap()
            .unwrap();
        let word = word.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                drop(talk(stream, &word));
            }
        });
    }

    pub fn connect(&self, who: &str, to: &str, limit: Duration) -> std::io::Result<TcpStream> {
        let to: SocketAddrV4 = to.parse().unwrap();
        let stream = netns::inside(&self.netns(who), || {
            TcpStream::connect_timeout(&SocketAddr::V4(to), limit)
        })
        .unwrap()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// What a server answers: its word and who it sees.
    pub fn ask(&self, who: &str, to: &str) -> String {
        let mut stream = self
            .connect(who, to, PATIENCE)
            .unwrap_or_else(|error| panic!("{who} to {to}: {error}"));
        line(&mut stream).unwrap_or_else(|error| panic!("{who} to {to}: {error}"))
    }

    /// Dropped: neither accepted nor refused.
    pub fn dropped(&self, who: &str, to: &str) {
        let error = self
            .connect(who, to, DROPPED)
            .map(drop)
            .expect_err(&format!("{who} must not reach {to}"));
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::TimedOut,
            "{who} to {to}: {error}"
        );
    }

    pub fn udp(&self, who: &str, at: &str) -> UdpSocket {
        let socket = netns::inside(&self.netns(who), || UdpSocket::bind(at))
            .unwrap()
            .unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub fn run(&self, who: &str, command: &[&str]) -> std::process::Output {
        Command::new("ip")
            .args(["netns", "exec", &self.netns(who)])
            .args(command)
            .output()
            .unwrap()
    }
}

fn talk(mut stream: TcpStream, word: &str) -> std::io::Result<()> {
    let peer = stream.peer_addr()?.ip();
    stream.write_all(format!("{word} sees {peer}\n").as_bytes())
}

/// One line from a stream.
fn line(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
        text.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Undoes what the ledger names, newest first.
fn sweep(place: &Place) {
    for made in ledger::read(place).unwrap().into_iter().rev() {
        match made {
            Made::Netns { name } => netns::delete(&name).unwrap(),
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
        sweep(&self.place);
    }
}

pub fn says(word: &str, client: &str) -> String {
    format!("{word} sees {}", address(client))
}
