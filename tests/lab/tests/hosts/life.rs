//! Two hosts from launch to termination.

use crate::double::{Double, address, instance};
use crate::machine;
use lab::cgroup;
use lab::host::{self, Detached, Host, HostSpec, Image, Lower, State, VolumeSpec};
use lab::ledger::Ledger;
use lab::place::Place;
use lab::teardown;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// For whatever a loaded machine may take its time.
pub const LIMIT: Duration = Duration::from_mins(3);

pub fn spec(number: u8) -> HostSpec {
    HostSpec {
        instance: instance(number),
        instance_type: "m6i.large".to_owned(),
        image: "ami-1".to_owned(),
    }
}

/// A lab that is removed, and has to be removed without a trace, when the test ends.
pub struct Lab {
    pub place: Place,
    pub ledger: Option<Ledger>,
    rest: machine::Traces,
}

impl Lab {
    pub fn named(name: &str) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "this test makes namespaces and mounts: run it as root"
        );
        let place = Place::named(name).unwrap();
        teardown::down(&place).unwrap();
        let rest = machine::rest();
        let ledger = Ledger::begin(&place).unwrap();
        Self {
            place,
            ledger: Some(ledger),
            rest,
        }
    }

    pub fn ledger(&self) -> &Ledger {
        self.ledger.as_ref().unwrap()
    }

    pub fn lower(&self, authority: Option<&str>) -> Lower {
        let image = Image::ready(&host::cache().unwrap()).unwrap();
        image
            .with_layer(&self.place, self.ledger(), authority)
            .unwrap()
    }

    /// Output of a script in a host.
    pub fn said(&self, number: u8, script: &str) -> String {
        let (succeeded, said) = self.tried(number, script);
        assert!(succeeded, "{script}: {said}");
        said
    }

    pub fn tried(&self, number: u8, script: &str) -> (bool, String) {
        let output =
            host::exec_output(&self.place, &instance(number), &["sh", "-c", script]).unwrap();
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (
            output.status.success(),
            said + &String::from_utf8_lossy(&output.stderr),
        )
    }

    /// Waits for a script to succeed in a host.
    pub fn until(&self, number: u8, script: &str) {
        let end = Instant::now() + LIMIT;
        while !self.tried(number, script).0 {
            let console = host::console(&self.place, &instance(number)).unwrap();
            assert!(
                Instant::now() < end,
                "not true: {script}\n{}",
                String::from_utf8_lossy(&console)
            );
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits until all units of a host are up.
    pub fn settled(&self, number: u8) {
        self.until(
            number,
            "case $(systemctl is-system-running) in running | degraded) ;; *) false ;; esac",
        );
        assert_eq!(
            self.said(
                number,
                "systemctl is-system-running; systemctl --failed --no-legend"
            ),
            "running"
        );
    }

    pub fn state(&self, number: u8) -> State {
        Host::read(&self.place, &instance(number))
            .unwrap()
            .state(&self.place)
            .unwrap()
    }

    /// The law: all that was made is gone, nothing else is changed.
    pub fn down(mut self) {
        self.ledger = None;
        teardown::down(&self.place).unwrap();
        let left = machine::traces(self.place.name());
        assert!(left.values().all(Vec::is_empty), "left behind: {left:?}");
        assert_eq!(machine::rest(), self.rest, "the machine itself was changed");
        teardown::down(&self.place).unwrap();
    }
}

const USER_DATA: &str = "#!/bin/sh
token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
curl -sf -H \"X-aws-ec2-metadata-token: $token\" http://169.254.169.254/latest/meta-data/instance-id >/root/instance
echo again >>/root/runs
echo '{\"stage\":\"user-data\"}' >/dev/console
";

#[test]
#[ignore = "needs root, and a machine that may mount"]
fn two_hosts_live_as_ec2_instances_do() {
    let lab = Lab::named("life");
    let lower = lab.lower(Some(
        "-----BEGIN CERTIFICATE-----\nlab\n-----END CERTIFICATE-----\n",
    ));
    let double = Double {
        place: &lab.place,
        ledger: lab.ledger(),
    };
    double.up();
    double.attach(11, USER_DATA);
    double.attach(12, USER_DATA);
    let begin = Instant::now();
    for number in [11, 12] {
        host::boot(&lab.place, lab.ledger(), &lower, &spec(number)).unwrap();
    }
    for number in [11, 12] {
        lab.until(number, "test -e /root/runs");
        eprintln!(
            "host {number}: user data has run {:.1} s after launch",
            begin.elapsed().as_secs_f32()
        );
    }
    for number in [11, 12] {
        lab.settled(number);
    }
    is_configured(&lab, &double);
    leaves_the_machine_alone(&lab);
    keeps_its_disk(&lab);
    has_volumes(&lab);
    host::terminate(&lab.place, &instance(12), LIMIT).unwrap();
    let left: Vec<String> = host::hosts(&lab.place)
        .unwrap()
        .into_iter()
        .map(|host| host.spec.instance)
        .collect();
    assert_eq!(left, [instance(11)]);
    lab.down();
}

fn is_configured(lab: &Lab, double: &Double) {
    for number in [11, 12] {
        assert_eq!(lab.said(number, "cat /root/instance"), instance(number));
        assert_eq!(lab.said(number, "hostname"), format!("ip-10-77-0-{number}"));
        assert!(
            lab.said(number, "ip -4 addr show dev eth0")
                .contains(&address(number))
        );
        assert_eq!(
            lab.said(number, "ls /sys/class/net | tr '\\n' ' '"),
            "eth0 lo"
        );
        assert_eq!(
            lab.said(number, "grep ^nameserver /run/systemd/resolve/resolv.conf"),
            "nameserver 10.77.0.1"
        );
        let console = host::console(&lab.place, &instance(number)).unwrap();
        assert!(String::from_utf8_lossy(&console).contains(r#"{"stage":"user-data"}"#));
    }
    assert_eq!(
        lab.said(11, "ping -qc1 10.77.0.12 >/dev/null && echo reached"),
        "reached"
    );
    let requests = double.requests();
    assert!(
        requests.contains("PUT /latest/api/token HTTP/1.1\" 200"),
        "{requests}"
    );
    assert!(
        !requests.contains("\" 401"),
        "asked without a token: {requests}"
    );
    assert!(
        lab.said(11, "tail -3 /etc/ssl/certs/ca-certificates.crt")
            .contains("lab")
    );
    assert_eq!(
        lab.said(
            11,
            "modprobe overlay && ! modprobe no-such-module 2>/dev/null && echo as ever"
        ),
        "as ever"
    );
    assert_eq!(
        lab.said(11, "cat /proc/self/cgroup | grep -c '\\.\\.' || true"),
        "0",
        "outside its cgroups"
    );
    // kubelet wants each, at the place it has on the machine.
    for hierarchy in cgroup::hierarchies().unwrap() {
        if hierarchy.unified && !cgroup::only_unified().unwrap() {
            continue;
        }
        let root = hierarchy.root.display();
        lab.said(
            11,
            &format!("mountpoint -q {root} && mkdir {root}/own && rmdir {root}/own"),
        );
    }
    assert_eq!(lab.tried(11, "exit 7"), (false, String::new()));
}

fn leaves_the_machine_alone(lab: &Lab) {
    let (set, said) = lab.tried(11, "date -s '2001-01-01'");
    assert!(!set, "a host set the clock: {said}");
    // The service itself, not only what comes from outside, is without the capability.
    assert!(
        !lab.tried(11, "systemd-run --quiet --wait date -s '2001-01-01'")
            .0
    );
    let year = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        / 31_556_952
        + 1970;
    assert!(year > 2020, "the machine's clock was set");
    assert_eq!(
        lab.said(
            11,
            "sysctl -qw vm.overcommit_memory=1 kernel.panic=10 && cat /proc/sys/kernel/panic"
        ),
        "10"
    );
    lab.said(11, "sysctl -qw net.ipv4.ip_forward=1");
    assert_eq!(lab.said(12, "cat /proc/sys/net/ipv4/ip_forward"), "0");
}

fn keeps_its_disk(lab: &Lab) {
    lab.said(
        11,
        "echo kept >/root/kept; sync; ip link add leftover type bridge",
    );
    let boot = "cat /proc/sys/kernel/random/boot_id";
    let first = lab.said(11, boot);
    host::reboot(&lab.place, lab.ledger(), &instance(11), LIMIT).unwrap();
    lab.settled(11);
    let second = lab.said(11, boot);
    assert_ne!(first, second);
    assert_eq!(lab.said(11, "cat /root/kept"), "kept");
    assert_eq!(
        lab.said(11, "ls /sys/class/net | tr '\\n' ' '"),
        "eth0 lo",
        "the network outlived the boot"
    );
    // From the inside, as an update of the system would.
    lab.tried(11, "systemctl --no-block reboot");
    lab.until(11, &format!("test $({boot}) != {second}"));
    lab.settled(11);
    host::kill9(&lab.place, &instance(11)).unwrap();
    assert_eq!(lab.state(11), State::Crashed);
    assert_eq!(lab.state(12), State::Running);
    host::start(&lab.place, lab.ledger(), &instance(11)).unwrap();
    lab.settled(11);
    assert_eq!(
        lab.said(11, "cat /root/kept /root/runs"),
        "kept\nagain",
        "user data ran at another boot than the first"
    );
    assert_eq!(
        host::poweroff(&lab.place, &instance(12), LIMIT).unwrap(),
        State::Off
    );
    host::start(&lab.place, lab.ledger(), &instance(12)).unwrap();
    lab.settled(12);
}

fn has_volumes(lab: &Lab) {
    let volume = |size| VolumeSpec {
        id: "vol-0123456789abcdef0".to_owned(),
        size,
        device: "/dev/xvdu".to_owned(),
    };
    let attach = |number, size| {
        host::attach_volume(&lab.place, lab.ledger(), &instance(number), &volume(size))
    };
    let detach = |number, force| {
        host::detach_volume(&lab.place, &instance(number), &volume(1).id, force).unwrap()
    };
    let by_id = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0";
    assert_eq!(attach(11, 1).unwrap().node(), "nvme1n1");
    for link in [by_id, &format!("{by_id}_1"), "/dev/xvdu"] {
        assert_eq!(lab.said(11, &format!("readlink -f {link}")), "/dev/nvme1n1");
    }
    assert_eq!(
        lab.said(11, "blockdev --getsize64 /dev/nvme1n1"),
        (1_u64 << 30).to_string()
    );
    lab.said(
        11,
        &format!("mkfs.ext4 -q {by_id} && mount {by_id} /mnt && echo etcd >/mnt/data && sync"),
    );
    assert!(attach(12, 1).is_err(), "attached twice");
    assert_eq!(detach(11, false), Detached::Busy);
    attach(11, 2).unwrap();
    assert_eq!(
        lab.said(11, "blockdev --getsize64 /dev/nvme1n1"),
        (2_u64 << 30).to_string()
    );
    // Attached volumes are there from the first moment of the next boot.
    host::reboot(&lab.place, lab.ledger(), &instance(11), LIMIT).unwrap();
    lab.settled(11);
    lab.said(11, &format!("mount {by_id} /mnt && grep etcd /mnt/data"));
    assert_eq!(detach(11, true), Detached::Done);
    assert!(
        !lab.tried(11, "echo late >/mnt/late && sync /mnt/late").0,
        "written after the plug was pulled"
    );
    assert!(!lab.tried(11, "test -e /dev/nvme1n1 || test -e /dev/xvdu").0);
    attach(12, 2).unwrap();
    lab.said(
        12,
        &format!(
            "fsck.ext4 -p {by_id}; mount {by_id} /mnt && grep etcd /mnt/data && ! test -e /mnt/late"
        ),
    );
    lab.said(12, "umount /mnt");
    assert_eq!(detach(12, false), Detached::Done);
    assert_eq!(detach(12, false), Detached::Done);
    // The law of the teardown has to hold with one attached and mounted.
    attach(11, 2).unwrap();
    lab.said(11, "umount -l /mnt; mount /dev/nvme1n1 /mnt");
}
