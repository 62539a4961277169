//! What the lab's network and services give a host, in the smallest form: one namespace with a bridge, dnsmasq for DHCP,
//! and a metadata service.

use lab::ledger::{Ledger, Made};
use lab::place::Place;
use lab::process::Process;
use lab::tool;
use serde_json::json;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const METADATA: &str = include_str!("double.py");
const GATEWAY: &str = "10.77.0.1";

pub struct Double<'a> {
    pub place: &'a Place,
    pub ledger: &'a Ledger,
}

impl Double<'_> {
    /// Makes namespace, bridge, DHCP and metadata service.
    pub fn up(&self) {
        let netns = self.place.router_netns();
        self.record(&Made::Netns {
            name: netns.clone(),
        });
        self.ip(&format!("netns add {netns}"));
        for command in [
            "link set lo up",
            "link add br0 type bridge",
            "addr add 10.77.0.1/24 dev br0",
            "addr add 169.254.169.254/32 dev br0",
            "link set br0 up",
        ] {
            self.ip(&format!("-n {netns} {command}"));
        }
        fs::create_dir_all(self.folder()).unwrap();
        let script = self.folder().join("metadata.py");
        fs::write(&script, METADATA).unwrap();
        self.stay(
            "python3",
            &[script.to_str().unwrap(), self.folder().to_str().unwrap()],
        );
        let folder = self.folder().display().to_string();
        fs::create_dir_all(self.folder().join("leases")).unwrap();
        self.stay(
            "dnsmasq",
            &[
                "--keep-in-foreground",
                "--user=root",
                "--conf-file=/dev/null",
                "--no-resolv",
                "--no-hosts",
                "--port=53",
                "--interface=br0",
                "--bind-interfaces",
                "--pid-file=",
                "--dhcp-range=10.77.0.0,static,255.255.255.0,1h",
                &format!("--dhcp-hostsdir={folder}/leases"),
                &format!("--dhcp-leasefile={folder}/leasefile"),
                &format!("--dhcp-option=option:router,{GATEWAY}"),
                &format!("--dhcp-option=option:dns-server,{GATEWAY}"),
                "--dhcp-option=option:domain-name,ec2.internal",
                "--dhcp-authoritative",
            ],
        );
    }

    /// Makes a host's namespace with its interface, and what the services know of it.
    pub fn attach(&self, number: u8, user_data: &str) {
        let (instance, netns) = (instance(number), self.place.host_netns(&instance(number)));
        self.record(&Made::Netns {
            name: netns.clone(),
        });
        self.ip(&format!("netns add {netns}"));
        let router = self.place.router_netns();
        self.ip(&format!(
            "-n {router} link add h{number} type veth peer name eth0 netns {netns}"
        ));
        self.ip(&format!("-n {netns} link set eth0 address {}", mac(number)));
        self.ip(&format!("-n {router} link set h{number} master br0 up"));
        let (address, hostname) = (address(number), format!("ip-10-77-0-{number}"));
        let lease = format!("{},{address}\n", mac(number));
        fs::write(self.folder().join("leases").join(&instance), lease).unwrap();
        let interface = json!({
            "device-number": "0", "interface-id": format!("eni-{number:017x}"), "local-ipv4s": address, "mac": mac(number),
            "local-hostname": format!("{hostname}.ec2.internal"), "subnet-ipv4-cidr-block": "10.77.0.0/24", "vpc-id": "vpc-1",
        });
        let knowledge = json!({
            "meta-data": {
                "ami-id": "ami-1", "instance-id": instance, "instance-type": "m6i.large", "local-ipv4": address,
                "local-hostname": format!("{hostname}.ec2.internal"), "hostname": format!("{hostname}.ec2.internal"),
                "mac": mac(number), "placement": {"availability-zone": "us-test-1a", "region": "us-test-1"},
                "network": {"interfaces": {"macs": {mac(number): interface}}},
                "services": {"domain": "amazonaws.com", "partition": "aws"},
            },
            "dynamic": {"instance-identity": {"document":
                json!({"instanceId": instance, "region": "us-test-1", "availabilityZone": "us-test-1a"}).to_string()}},
            "user-data": user_data,
        });
        fs::write(
            self.folder().join(format!("{address}.json")),
            knowledge.to_string(),
        )
        .unwrap();
    }

    /// Requests that the metadata service has answered, one a line.
    pub fn requests(&self) -> String {
        fs::read_to_string(self.folder().join("python3.log")).unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.place.run().join("double")
    }

    fn record(&self, made: &Made) {
        self.ledger.record(made).unwrap();
    }

    fn ip(&self, arguments: &str) {
        let mut command = self.ledger.command("ip").unwrap();
        tool::run(command.args(arguments.split(' '))).unwrap();
    }

    /// A program in the router's namespace that stays.
    fn stay(&self, program: &str, arguments: &[&str]) {
        let log = File::create(self.folder().join(format!("{program}.log"))).unwrap();
        let mut child = Command::new("ip")
            .args([
                "netns",
                "exec",
                &self.place.router_netns(),
                "sh",
                "-c",
                "read go && exec \"$@\" </dev/null",
                "stay",
            ])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.record(&Made::Process(Process::of(child.id()).unwrap()));
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"go\n").unwrap();
        sleep(Duration::from_millis(100));
        assert!(
            child.try_wait().unwrap().is_none(),
            "{program} ended: see {}",
            self.folder().display()
        );
    }
}

pub fn instance(number: u8) -> String {
    format!("i-{number:017x}")
}

pub fn address(number: u8) -> String {
    format!("10.77.0.{number}")
}

fn mac(number: u8) -> String {
    format!("02:0e:0a:4d:00:{number:02x}")
}
