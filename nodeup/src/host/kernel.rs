//! The running kernel: modules, parameters, and how mounts are seen.

use super::disk::{Disk, invalid, io_failure};
use super::system::System;
use model::engine::Failure;
use model::host::{KernelModule, Propagation, Sysctl};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// What the kernel would not take, by parameter: value and kernel.
const REFUSED: &str = "/var/lib/kctl/sysctls-refused";

pub(super) fn observe_module(disk: &Disk, want: &KernelModule) -> Option<KernelModule> {
    let loaded = format!("/sys/module/{}", want.name.replace('-', "_"));
    let there = [&loaded, &want.sign];
    let there = there.iter().any(|path| disk.at(path).exists());
    there.then(|| want.clone())
}

pub(super) fn load(disk: &Disk, system: &dyn System, want: &KernelModule) -> Result<(), Failure> {
    let call = format!("modprobe {}", want.name);
    disk.may_change()
        .map_err(|error| invalid(&call, &error.to_string()))?;
    let answer = system.run("modprobe", &[&want.name]);
    let answer = answer.map_err(|error| invalid(&call, &error.to_string()))?;
    if answer.code == 0 {
        return Ok(());
    }
    let mut failure = invalid(&call, answer.err.trim());
    failure.hint = Some("use an image whose kernel has it".to_owned());
    Err(failure)
}

/// The parameter as it is. One of ours that this kernel would not take earlier is as wanted: nothing can be done about it. That a parameter is not there says nothing yet: it may come with a module that is still to be loaded.
pub(super) fn observe_sysctl(disk: &Disk, want: &Sysctl) -> Result<Option<Sysctl>, Failure> {
    if !want.required && refused(disk, want)? {
        return Ok(Some(want.clone()));
    }
    let path = path(&want.key);
    let read = disk.read(&path).map_err(io_failure("reading", &path))?;
    Ok(read.map(|bytes| Sysctl {
        value: words(&String::from_utf8_lossy(&bytes)),
        ..want.clone()
    }))
}

/// Writes the parameter and reads it back: some values are taken and not kept.
pub(super) fn put_sysctl(disk: &Disk, want: &Sysctl, tell: &dyn Fn(&str)) -> Result<(), Failure> {
    let path = path(&want.key);
    let place = disk.at(&path);
    let failed = io_failure("setting", &want.key);
    disk.may_change().map_err(&failed)?;
    let written = OpenOptions::new().write(true).truncate(true).open(&place);
    let written =
        written.and_then(|mut file| file.write_all(format!("{}\n", want.value).as_bytes()));
    let why = match written {
        Err(error) => error.to_string(),
        Ok(()) => {
            let kept = words(&disk.text(&path).map_err(&failed)?);
            if kept == want.value {
                return Ok(());
            }
            format!("the kernel keeps {kept:?}")
        }
    };
    if want.required {
        let mut failure = invalid(&format!("setting {} to {}", want.key, want.value), &why);
        failure.hint = Some("correct sysctlParameters in the spec".to_owned());
        return Err(failure);
    }
    tell(&format!("{} stays as it is: {why}", want.key));
    let refused = refusal(disk, want)?;
    let written = disk.write(&record(&want.key), refused.as_bytes(), 0o644, "root:root");
    written.map_err(&failed)
}

fn refused(disk: &Disk, want: &Sysctl) -> Result<bool, Failure> {
    let path = record(&want.key);
    let value = disk.text(&path).map_err(io_failure("reading", &path))?;
    Ok(value == refusal(disk, want)?)
}

/// That this kernel would not take this value.
fn refusal(disk: &Disk, want: &Sysctl) -> Result<String, Failure> {
    let path = "/proc/sys/kernel/osrelease";
    let kernel = disk.text(path).map_err(io_failure("reading", path))?;
    Ok(format!("{} in {}\n", want.value, kernel.trim()))
}

fn record(key: &str) -> String {
    format!("{REFUSED}/{}", key.replace('/', "."))
}

/// Keys have dots where paths have slashes; a key with a slash has them the other way round (sysctl.d(5)).
fn path(key: &str) -> String {
    let slashes_first = key
        .find('/')
        .is_some_and(|slash| key.find('.').is_none_or(|dot| slash < dot));
    let path = if slashes_first {
        key.to_owned()
    } else {
        swapped(key)
    };
    format!("/proc/sys/{path}")
}

fn swapped(key: &str) -> String {
    let swap = |character| match character {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    key.chars().map(swap).collect()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn observe_propagation(
    disk: &Disk,
    want: &Propagation,
) -> Result<Option<Propagation>, Failure> {
    let shared = mount_of(disk, &want.path)?.is_none_or(|mount| mount.shared);
    Ok(Some(Propagation {
        shared,
        ..want.clone()
    }))
}

/// Shares the mount that the folder is on, as systemd does with `/` at boot.
pub(super) fn share(disk: &Disk, system: &dyn System, want: &Propagation) -> Result<(), Failure> {
    let failed = io_failure("sharing the mount of", &want.path);
    let Some(mount) = mount_of(disk, &want.path)? else {
        return Ok(());
    };
    disk.may_change().map_err(&failed)?;
    system.share(&disk.at(&mount.path)).map_err(&failed)
}

/// A mount, from `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    /// Where.
    pub path: String,
    /// Of what.
    pub source: String,
    /// Seen in other mount namespaces.
    pub shared: bool,
}

/// The mount that a path is on: the last of those that are nearest above it.
fn mount_of(disk: &Disk, path: &str) -> Result<Option<Mounted>, Failure> {
    let above = |mount: &Mounted| Path::new(path).starts_with(&mount.path);
    let mounts = mounts(disk)?.into_iter().filter(above);
    Ok(mounts.max_by_key(|mount| mount.path.len()))
}

/// All mounts, in the order in which they were made (proc_pid_mountinfo(5)).
pub(super) fn mounts(disk: &Disk) -> Result<Vec<Mounted>, Failure> {
    let path = "/proc/self/mountinfo";
    let text = disk.text(path).map_err(io_failure("reading", path))?;
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let fields: Vec<&str> = before.split(' ').collect();
        Some(Mounted {
            path: unescaped(fields.get(4)?),
            source: unescaped(after.split(' ').nth(1)?),
            shared: fields
                .iter()
                .skip(6)
                .any(|field| field.starts_with("shared:")),
        })
    };
    Ok(text.lines().filter_map(mount).collect())
}

/// Blanks in paths are written as octal numbers.
fn unescaped(text: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (code, character)| {
        text.replace(code, character)
    })
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn keys_are_read_as_sysctl_reads_them() {
        for (key, expected) in [
            ("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
            (
                "net.ipv4.conf.eth0/1.rp_filter",
                "/proc/sys/net/ipv4/conf/eth0.1/rp_filter",
            ),
            (
                "net/ipv4/conf/eth0.1/rp_filter",
                "/proc/sys/net/ipv4/conf/eth0.1/rp_filter",
            ),
        ] {
            assert_eq!(path(key), expected);
        }
    }
}
