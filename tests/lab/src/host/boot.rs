//! Booting: a disk of layers, cgroups, and a process that runs the host in its network namespace; or QEMU with a disk of its own.

use super::image::write_file;
use super::images::Images;
use super::machine::{self, MachineImage};
use super::state::{Host, HostPaths, HostSpec};
use super::{recipe, volume};
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use crate::process::Process;
use crate::{cgroup, json_file, mounts, netns, tool};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const LAUNCH: &str = include_str!("../../image/launch");

/// Of a host's disk, sparse. As kOps' root volumes for control planes.
const DISK_BYTES: u64 = 64 << 30;

const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where the disk itself is seen, since an overlay cannot lie on an overlay.
const DIRECT: [(&str, &str); 2] = [
    ("containerd", "/var/lib/containerd"),
    ("kubelet", "/var/lib/kubelet"),
];

/// Taken from every host: both would reach the machine.
const DROPPED: &str = "CAP_SYS_TIME,CAP_SYS_MODULE";

/// What is booted, for the first time or again.
struct Boot<'a> {
    spec: &'a HostSpec,
    /// For a virtual machine.
    machine: Option<&'a MachineImage>,
    again: bool,
}

/// Boots a new host in the network namespace [`LabPaths::host_netns`], which must exist and have the interface `eth0`; a virtual
/// machine at its link in the router's. Returns when its first process is begun, before systemd has booted.
pub fn boot_host(
    place: &LabPaths,
    ledger: &Ledger,
    images: &Images,
    spec: &HostSpec,
) -> Result<Host> {
    let paths = HostPaths::for_host(place, &spec.instance);
    let begun = || -> Result<Host> {
        if paths.host_file().exists() {
            bail!("it was booted before: start it, or terminate it first");
        }
        let machine = match images {
            Images::Layers(lower) => {
                mount_disk(ledger, &paths)?;
                mount_root(ledger, &paths, lower.find_layers(&spec.image)?)?;
                None
            }
            Images::Machines(machines) => {
                let image = machines.find_image(&spec.image)?;
                machine::copy_root_disk(ledger, &paths, image)?;
                Some(image)
            }
        };
        let boot = Boot {
            spec,
            machine,
            again: false,
        };
        begin_boot(place, ledger, &paths, &boot)
    };
    begun().with_context(|| format!("booting host {} of lab {}", spec.instance, place.name()))
}

/// Boots a host that is off from its disk, with its network namespace renewed.
pub(super) fn boot_again(place: &LabPaths, ledger: &Ledger, host: &Host) -> Result<Host> {
    let spec = &host.spec;
    let paths = HostPaths::for_host(place, &spec.instance);
    let begun = || -> Result<Host> {
        if host.launcher.is_alive()? {
            bail!("it is on");
        }
        let boot = Boot {
            spec,
            machine: host.machine.as_ref(),
            again: true,
        };
        begin_boot(place, ledger, &paths, &boot)
    };
    begun().with_context(|| format!("starting host {} of lab {}", spec.instance, place.name()))
}

fn begin_boot(
    place: &LabPaths,
    ledger: &Ledger,
    paths: &HostPaths,
    boot: &Boot<'_>,
) -> Result<Host> {
    let spec = boot.spec;
    let words = if let Some(image) = boot.machine {
        let volumes = paths.read_volumes()?;
        machine::qemu_command(place, spec, &firmware_uuid(spec), image, &volumes)
    } else {
        write_dmi(paths, spec)?;
        volume::write_devices(place, &spec.instance)?;
        runtime_command(paths, spec, &place.host_netns(&spec.instance))?
    };
    // What a crash left behind: nothing of it runs, and the new systemd begins with empty cgroups.
    cgroup::remove_cgroup(&place.host_cgroup(&spec.instance))?;
    launch_host(place, ledger, paths, boot, words)
}

/// Makes the host's disk and mounts it; it may be there already. A disk of its own, so that the host's free space is not the
/// machine's: agents and kubelet act on it.
fn mount_disk(ledger: &Ledger, paths: &HostPaths) -> Result<()> {
    for folder in [&paths.run, &paths.data] {
        ledger.record(&LedgerEntry::Directory {
            path: folder.clone(),
        })?;
    }
    let (image, disk) = (paths.disk_image(), paths.disk_folder());
    fs::create_dir_all(&disk).with_context(|| format!("making {}", disk.display()))?;
    if mounts::mount_points_below(&disk)?.contains(&disk) {
        return Ok(());
    }
    let made = File::create(&image).and_then(|file| file.set_len(DISK_BYTES));
    made.with_context(|| format!("making {}", image.display()))?;
    // No crash reaches it, so it needs no journal. A sparse file is zeroed already.
    let mut mkfs = ledger.locked_command("mkfs.ext4")?;
    mkfs.args(["-q", "-m", "0", "-O", "^has_journal"])
        .args(["-E", "lazy_itable_init=1,nodiscard"])
        .arg(&image);
    tool::run(&mut mkfs)?;
    ledger.record(&LedgerEntry::Mount { path: disk.clone() })?;
    // The loop device goes with the mount.
    let mut mount = ledger.locked_command("mount")?;
    mount
        .args(["-t", "ext4", "-o", "loop,noatime,noinit_itable"])
        .args([&image, &disk]);
    tool::run(&mut mount).map(drop)
}

/// Makes the directories and mounts the root file system; both may be there already.
fn mount_root(ledger: &Ledger, paths: &HostPaths, lower: &[PathBuf]) -> Result<()> {
    let disk = paths.disk_folder();
    let (root, upper, work) = (paths.root_folder(), disk.join("upper"), disk.join("work"));
    let direct = DIRECT.map(|(folder, _)| disk.join(folder));
    for folder in [&root, &upper, &work].into_iter().chain(&direct) {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    if mounts::mount_points_below(&root)?.contains(&root) {
        return Ok(());
    }
    ledger.record(&LedgerEntry::Mount { path: root.clone() })?;
    let mut options = OsString::from("lowerdir=");
    for (position, folder) in lower.iter().enumerate() {
        options.push(if position == 0 { "" } else { ":" });
        options.push(folder);
    }
    for (option, folder) in [(",upperdir=", &upper), (",workdir=", &work)] {
        options.push(option);
        options.push(folder);
    }
    let mut mount = ledger.locked_command("mount")?;
    mount
        .args(["-t", "overlay", "kctl-lab", "-o"])
        .arg(options)
        .arg(&root);
    tool::run(&mut mount).map(drop)
}

/// Of an EC2 machine: begins with ec2, as cloud-init expects of the platform.
fn firmware_uuid(spec: &HostSpec) -> String {
    let hex = format!("{:x}", Sha256::digest(&spec.instance));
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!(
        "ec2{}-{}-4{}-8{}-{}",
        part(0, 5),
        part(5, 9),
        part(9, 12),
        part(12, 15),
        part(15, 27)
    )
}

/// What the firmware of an EC2 machine says of it.
fn write_dmi(paths: &HostPaths, spec: &HostSpec) -> Result<()> {
    let uuid = firmware_uuid(spec);
    let (instance, kind) = (&spec.instance, &spec.instance_type);
    let text = format!("INSTANCE={instance}\nTYPE={kind}\nUUID={uuid}\n");
    write_file(&paths.root_folder().join("etc/kctl-lab/dmi"), 0o644, &text)
}

/// Starts the process that runs the host by these words, and lets it go on once it is in the ledger.
fn launch_host(
    place: &LabPaths,
    ledger: &Ledger,
    paths: &HostPaths,
    boot: &Boot<'_>,
    words: Vec<OsString>,
) -> Result<Host> {
    let spec = boot.spec;
    // A virtual machine's network is its own kernel's, and new at every boot.
    let renew = boot.again && boot.machine.is_none();
    let netns = place.host_netns(&spec.instance);
    if boot.machine.is_none() {
        ledger.record(&LedgerEntry::Netns {
            name: format!("{netns}.new"),
        })?;
    }
    let own = cgroup::create_cgroup(ledger, &place.cgroup_path().join("launchers"))?;
    let host = cgroup::create_cgroup(ledger, &place.host_cgroup(&spec.instance))?;
    let joined = |cgroups: &[PathBuf]| {
        cgroups
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let console = File::options()
        .create(true)
        .append(true)
        .open(paths.console_file())
        .with_context(|| format!("opening {}", paths.console_file().display()))?;
    let exit = paths.exit_file();
    if exit.exists() {
        fs::remove_file(&exit).with_context(|| format!("removing {}", exit.display()))?;
    }
    let mut command = Command::new("setsid");
    command
        .args(["--fork", "sh", "-c", LAUNCH, "kctl-lab-launch"])
        .args(words)
        .env("PATH", SEARCH)
        .env("NETNS", &netns)
        .env("RENEW", if renew { "1" } else { "" })
        .env("OWN_CGROUPS", joined(&own))
        .env("HOST_CGROUPS", joined(&host))
        .env("CONSOLE", paths.console_file())
        .env("EXIT", &exit)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(console);
    let mut child = command.spawn().context("starting setsid")?;
    let (Some(mut orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("setsid has no pipes");
    };
    let mut pid = String::new();
    BufReader::new(answers)
        .read_line(&mut pid)
        .context("reading the launcher's pid")?;
    child.wait().context("waiting for setsid")?;
    let pid = pid
        .trim()
        .parse()
        .with_context(|| format!("the launcher said {pid:?}, not its pid"))?;
    let launcher = Process::from_pid(pid)?;
    ledger.record(&LedgerEntry::Process(launcher))?;
    let host = Host {
        spec: spec.clone(),
        launcher,
        machine: boot.machine.cloned(),
    };
    json_file::write_json(&paths.host_file(), &host)?;
    orders
        .write_all(b"go\n")
        .context("telling the launcher to go on")?;
    Ok(host)
}

/// The container runtime and its arguments.
fn runtime_command(paths: &HostPaths, spec: &HostSpec, namespace: &str) -> Result<Vec<OsString>> {
    let unified = cgroup::only_unified()?;
    let mut words = ["env", "-i"].map(OsString::from).to_vec();
    words.push(format!("PATH={SEARCH}").into());
    words.push(format!("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY={}", u8::from(unified)).into());
    // On a machine /tmp is on the disk.
    words.push("SYSTEMD_NSPAWN_TMPFS_TMP=0".into());
    let fixed = [
        "systemd-nspawn",
        "--quiet",
        // Neither machined nor systemd is asked of the machine.
        "--register=no",
        "--keep-unit",
        "--kill-signal=SIGRTMIN+4",
        "--capability=all",
        // What container runtimes need beyond what the runtime allows by itself.
        "--system-call-filter=@keyring bpf perf_event_open",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--console=read-only",
        // As an image for EC2 begins; cloud-init sets the name.
        "--hostname=localhost",
    ];
    words.extend(fixed.map(OsString::from));
    words.push(format!("--drop-capability={DROPPED}").into());
    words.push(format!("--machine={}", spec.instance).into());
    let option = |name: &str, path: PathBuf| {
        let mut word = OsString::from(name);
        word.push(path);
        word
    };
    words.push(option(
        "--network-namespace-path=",
        netns::netns_path(namespace),
    ));
    words.push(option("--directory=", paths.root_folder()));
    for (folder, inside) in DIRECT {
        let mut word = option("--bind=", paths.disk_folder().join(folder));
        word.push(format!(":{inside}"));
        words.push(word);
    }
    words.push(recipe::init_program(&spec.image).into());
    Ok(words)
}
