//! The command line of a virtual machine, which is an EC2 instance as far as QEMU can say it.

use super::super::recipe::ROOT_LABEL;
use super::super::state::{HostPaths, HostSpec};
use super::super::volume::HostVolume;
use super::image::MachineImage;
use crate::lab_paths::LabPaths;
use crate::netns;
use crate::network::names;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;

/// Name of QEMU's process, as far as the kernel keeps it.
pub(in super::super) const PROCESS_NAME: &str = "qemu-system-x86";

/// MiB, whatever the instance type: as much as a control plane needs.
const MEMORY: &str = "3072";

/// Of a t3.medium.
const PROCESSORS: &str = "2";

/// Names QEMU's accelerator, as `kvm`.
const ACCELERATOR: &str = "KCTL_LAB_ACCEL";

/// The emulator, which every lab machine can run.
const EMULATOR: &str = "tcg";

/// The name by which QEMU's agent looks for its port.
const AGENT_PORT: &str = "org.qemu.guest_agent.0";

/// What the firmware of an EC2 instance says as its maker.
const MAKER: &str = "Amazon EC2";

/// The command that runs a machine until it is powered off. `uuid` is the firmware's.
pub(in super::super) fn qemu_command(
    place: &LabPaths,
    spec: &HostSpec,
    uuid: &str,
    image: &MachineImage,
    volumes: &[HostVolume],
) -> Vec<OsString> {
    let accelerator = std::env::var(ACCELERATOR).unwrap_or_else(|_| EMULATOR.to_owned());
    let paths = HostPaths::for_host(place, &spec.instance);
    let router = netns::netns_path(&place.router_netns());
    // The router's end of the machine's link is a device there, and QEMU the other end.
    let mut words = vec!["nsenter".to_owned(), format!("--net={}", router.display())];
    words.extend(["--", "qemu-system-x86_64"].map(str::to_owned));
    words.extend(["-nodefaults", "-no-user-config"].map(str::to_owned));
    let mut options = machine_options(spec, uuid, &accelerator);
    options.extend(kernel_options(image, &accelerator));
    options.extend(socket_options(&paths));
    options.extend(network_options(spec));
    options.extend(disk_options(spec, &paths, volumes));
    for (name, value) in options {
        words.extend([format!("-{name}"), value]);
    }
    words.into_iter().map(OsString::from).collect()
}

/// Name, without the dash, and value.
type QemuOption = (&'static str, String);

fn machine_options(spec: &HostSpec, uuid: &str, accelerator: &str) -> Vec<QemuOption> {
    let (instance, kind) = (&spec.instance, &spec.instance_type);
    let emulated = accelerator == EMULATOR;
    // x86-64-v2 with AES; what later processors have, QEMU emulates at a greater cost than it saves.
    let processor = if emulated { "Westmere" } else { "host" };
    vec![
        ("name", instance.clone()),
        // Its disks are plugged and unplugged by ACPI.
        ("machine", "pc".to_owned()),
        ("accel", accelerator.to_owned()),
        ("cpu", processor.to_owned()),
        ("smp", PROCESSORS.to_owned()),
        ("m", MEMORY.to_owned()),
        ("rtc", "base=utc".to_owned()),
        ("display", "none".to_owned()),
        ("smbios", format!("type=0,vendor={MAKER},version=1.0")),
        (
            "smbios",
            format!("type=1,manufacturer={MAKER},product={kind},serial={uuid},uuid={uuid}"),
        ),
        (
            "smbios",
            format!("type=2,manufacturer={MAKER},asset={instance}"),
        ),
        (
            "smbios",
            format!("type=3,manufacturer={MAKER},asset={MAKER}"),
        ),
        ("device", "virtio-rng-pci".to_owned()),
    ]
}

fn kernel_options(image: &MachineImage, accelerator: &str) -> Vec<QemuOption> {
    // As Debian's images for EC2: NVMe requests have no time limit.
    let limit = "nvme_core.io_timeout=4294967295";
    let mut line = format!("root=LABEL={ROOT_LABEL} ro console=ttyS0 {limit}");
    if accelerator == EMULATOR {
        // The emulator has none of the faults against which they would switch page tables at every system call.
        line.push_str(" mitigations=off");
    }
    vec![
        ("kernel", image.kernel().display().to_string()),
        ("initrd", image.initrd().display().to_string()),
        ("append", line),
    ]
}

/// The serial console, the monitor, and the agent's port.
fn socket_options(paths: &HostPaths) -> Vec<QemuOption> {
    let console = paths.console_file();
    let (monitor, agent) = (paths.monitor_socket(), paths.agent_socket());
    let (console, monitor, agent) = (console.display(), monitor.display(), agent.display());
    vec![
        (
            "chardev",
            format!("file,id=console,path={console},append=on"),
        ),
        ("serial", "chardev:console".to_owned()),
        ("qmp", format!("unix:{monitor},server=on,wait=off")),
        (
            "chardev",
            format!("socket,id=agent,path={agent},server=on,wait=off"),
        ),
        ("device", "virtio-serial-pci".to_owned()),
        (
            "device",
            format!("virtserialport,chardev=agent,name={AGENT_PORT}"),
        ),
    ]
}

fn network_options(spec: &HostSpec) -> Vec<QemuOption> {
    let link = names::link_name(&spec.instance);
    let (mac, mtu) = (&spec.mac, names::MTU);
    vec![
        (
            "netdev",
            format!("tap,id=link,ifname={link},script=no,downscript=no"),
        ),
        // Without a network boot.
        (
            "device",
            format!("virtio-net-pci,netdev=link,mac={mac},host_mtu={mtu},romfile="),
        ),
    ]
}

/// The root disk, and the volumes that were attached before this boot.
fn disk_options(spec: &HostSpec, paths: &HostPaths, volumes: &[HostVolume]) -> Vec<QemuOption> {
    let root = backend("file", "root", &paths.disk_image());
    let serial = format!("vol{}", spec.instance.trim_start_matches("i-"));
    let mut disks = vec![(root, device("root", &serial))];
    for volume in volumes {
        disks.push((disk_backend(volume), disk_device(volume)));
    }
    let options = |(backend, device): (Value, Value)| {
        [
            ("blockdev", backend.to_string()),
            ("device", device.to_string()),
        ]
    };
    disks.into_iter().flat_map(options).collect()
}

/// What a volume's disk is stored on.
pub(super) fn disk_backend(volume: &HostVolume) -> Value {
    backend("host_device", &volume.volume, &volume.loop_device)
}

/// A volume's disk, as the machine sees it.
pub(super) fn disk_device(volume: &HostVolume) -> Value {
    device(&volume.volume, &volume.serial())
}

/// What the machine has written is in the lab machine's memory, which outlives QEMU, so nothing has to be flushed further. A machine
/// that loses its power loses what its own kernel has not written, as one with EBS volumes does.
fn backend(driver: &str, name: &str, path: &Path) -> Value {
    let path = path.display().to_string();
    json!({"driver": driver, "node-name": name, "filename": path, "cache": {"no-flush": true}})
}

fn device(name: &str, serial: &str) -> Value {
    json!({"driver": "nvme", "id": name, "drive": name, "serial": serial})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every option after its name.
    fn options_of(words: &[OsString], name: &str) -> Vec<String> {
        let pairs = words.iter().zip(words.iter().skip(1));
        let own = pairs.filter(|(option, _)| *option == name);
        own.map(|(_, value)| value.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_machine_has_the_firmware_and_the_disks_of_an_instance() {
        let place = LabPaths::from_name("t-qemu").unwrap();
        let spec = HostSpec {
            instance: "i-0123456789abcdef0".to_owned(),
            instance_type: "t3.medium".to_owned(),
            image: "ami-1".to_owned(),
            mac: "02:0e:0a:00:00:04".to_owned(),
        };
        let volume = HostVolume {
            volume: "vol-0fedcba9876543210".to_owned(),
            device: "/dev/xvdu".to_owned(),
            number: 1,
            loop_device: "/dev/loop7".into(),
            major: 7,
            minor: 7,
        };
        let image = MachineImage {
            folder: "/cache/machine-1".into(),
        };
        let uuid = "ec2e1916-9099-4caf-8d21-012345abcdef";
        let words = qemu_command(&place, &spec, uuid, &image, &[volume]);
        let nodes = options_of(&words, "-blockdev");
        let read = |text: &String| serde_json::from_str::<Value>(text).unwrap();
        let files: Vec<Value> = nodes.iter().map(read).collect();
        assert_eq!(
            files[0]["filename"],
            "/var/lib/kctl-lab/t-qemu/hosts/i-0123456789abcdef0/disk.img"
        );
        assert_eq!(files[1]["filename"], "/dev/loop7");
        let devices = options_of(&words, "-device");
        let disks: Vec<Value> = devices
            .iter()
            .filter(|device| device.starts_with('{'))
            .map(read)
            .collect();
        let serials: Vec<&Value> = disks.iter().map(|disk| &disk["serial"]).collect();
        assert_eq!(serials, ["vol0123456789abcdef0", "vol0fedcba9876543210"]);
        let drives: Vec<&Value> = disks.iter().map(|disk| &disk["drive"]).collect();
        let names: Vec<&Value> = files.iter().map(|file| &file["node-name"]).collect();
        assert_eq!(drives, names);
        let firmware = options_of(&words, "-smbios");
        assert!(firmware.iter().all(|table| table.contains("Amazon EC2")));
        assert!(firmware.iter().any(|table| table.ends_with(uuid)));
        let links = options_of(&words, "-netdev");
        assert!(links[0].contains("ifname=h56789abcdef0,"), "{links:?}");
    }
}
