//! Observes and sets kernel modules, kernel parameters and mount propagation.

use super::failure::{call_failure, file_failure, permanent_failure};
use engine::Failure;
use host::{Error, Host};
use node::host::{KernelModule, Propagation, Sysctl};
use std::io::ErrorKind;

/// Folder with one file for each rejected parameter, which contains the value and the kernel version.
const REFUSED: &str = "/var/lib/kctl/sysctls-refused";

/// Folder with one file for each parameter of which the kernel keeps another value than was written: the written and the kept one.
const KEPT: &str = "/var/lib/kctl/sysctls-kept";

pub(super) fn observe_module(host: &Host, want: &KernelModule) -> Option<KernelModule> {
    let loaded = format!("/sys/module/{}", want.name.replace('-', "_"));
    let there = [&loaded, &want.sign];
    let there = there.iter().any(|path| host.path_below_root(path).exists());
    there.then(|| want.clone())
}

pub(super) fn load_module(host: &Host, want: &KernelModule) -> Result<(), Failure> {
    let call = format!("modprobe {}", want.name);
    host.may_change().map_err(call_failure(&call))?;
    let answer = host.run_program("modprobe", &[&want.name]);
    let answer = answer.map_err(call_failure(&call))?;
    if answer.is_success() {
        return Ok(());
    }
    let mut failure = permanent_failure(&call, answer.stderr.trim());
    failure.hint = Some("use an image whose kernel has this module".to_owned());
    Err(failure)
}

/// The observed parameter; `None` if it does not exist, which may change once a module is loaded. A parameter of kctl's own that
/// this kernel rejected before counts as set, and so does one for which the kernel keeps what it made of the value.
pub(super) fn observe_sysctl(host: &Host, want: &Sysctl) -> Result<Option<Sysctl>, Failure> {
    if !want.required && is_recorded_rejection(host, want)? {
        return Ok(Some(want.clone()));
    }
    let path = sysctl_path(&want.key);
    let read = host
        .read_bytes(&path)
        .map_err(file_failure("reading", &path))?;
    let Some(bytes) = read else {
        return Ok(None);
    };
    let value = normalize_blanks(&String::from_utf8_lossy(&bytes));
    let record = kept_path(&want.key);
    let record = host
        .read_lossy(&record)
        .map_err(file_failure("reading", &record))?;
    Ok(Some(if record == kept_text(&want.value, &value) {
        want.clone()
    } else {
        Sysctl {
            value,
            ..want.clone()
        }
    }))
}

/// Writes the parameter. A value that the kernel takes is set, also if the kernel rounds, sorts or rewrites it: what it keeps is
/// recorded, so that the parameter is written again only if somebody changes it. A parameter of the user's that does not exist may
/// come with a module; it is told, and looked for again at the next run.
pub(super) fn put_sysctl(host: &Host, want: &Sysctl, tell: &dyn Fn(&str)) -> Result<(), Failure> {
    let path = sysctl_path(&want.key);
    let failed = file_failure("setting", &want.key);
    let why = match host.write_kernel_file(&path, &format!("{}\n", want.value)) {
        Err(Error::File { source, .. }) => source,
        Err(error) => return Err(failed(error)),
        Ok(()) => return record_kept(host, want, tell),
    };
    if !want.required {
        tell(&format!(
            "the kernel rejected {}, which is not required: {why}",
            want.key
        ));
        return write_record(
            host,
            &rejection_path(&want.key),
            &rejection_text(host, want)?,
        );
    }
    if why.kind() == ErrorKind::NotFound {
        tell(&format!(
            "this kernel has no parameter {}, or not before a module is loaded: it is not set, and tried again when nodeup runs again",
            want.key
        ));
        return Ok(());
    }
    let call = format!("setting {} to {}", want.key, want.value);
    let mut failure = permanent_failure(&call, &why.to_string());
    failure.hint = Some("correct sysctlParameters in the spec".to_owned());
    Err(failure)
}

/// Tells and records what the kernel made of a value that it took, if that is something else.
fn record_kept(host: &Host, want: &Sysctl, tell: &dyn Fn(&str)) -> Result<(), Failure> {
    let path = sysctl_path(&want.key);
    let kept = host.read_lossy(&path);
    let kept = normalize_blanks(&kept.map_err(file_failure("reading", &path))?);
    if kept == want.value {
        return Ok(());
    }
    tell(&format!(
        "the kernel took {:?} for {} and keeps {kept:?}",
        want.value, want.key
    ));
    write_record(host, &kept_path(&want.key), &kept_text(&want.value, &kept))
}

fn write_record(host: &Host, path: &str, text: &str) -> Result<(), Failure> {
    let written = host.write_file(path, text.as_bytes(), 0o644, Some("root:root"));
    written.map_err(file_failure("writing", path))
}

/// The text of a record of what the kernel keeps of a value.
fn kept_text(value: &str, kept: &str) -> String {
    format!("{value}\n{kept}\n")
}

fn kept_path(key: &str) -> String {
    format!("{KEPT}/{}", key.replace('/', "."))
}

fn is_recorded_rejection(host: &Host, want: &Sysctl) -> Result<bool, Failure> {
    let path = rejection_path(&want.key);
    let value = host
        .read_lossy(&path)
        .map_err(file_failure("reading", &path))?;
    Ok(value == rejection_text(host, want)?)
}

/// The text of a record that this kernel rejected this value.
fn rejection_text(host: &Host, want: &Sysctl) -> Result<String, Failure> {
    let path = "/proc/sys/kernel/osrelease";
    let kernel = host
        .read_lossy(path)
        .map_err(file_failure("reading", path))?;
    Ok(format!("{} in {}\n", want.value, kernel.trim()))
}

fn rejection_path(key: &str) -> String {
    format!("{REFUSED}/{}", key.replace('/', "."))
}

/// The path of a parameter. Dots in keys become slashes; if a key has a slash first, it is the other way round (sysctl.d(5)).
fn sysctl_path(key: &str) -> String {
    let slashes_first = key
        .find('/')
        .is_some_and(|slash| key.find('.').is_none_or(|dot| slash < dot));
    let path = if slashes_first {
        key.to_owned()
    } else {
        swap_dots_and_slashes(key)
    };
    format!("/proc/sys/{path}")
}

fn swap_dots_and_slashes(key: &str) -> String {
    let swap = |character| match character {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    key.chars().map(swap).collect()
}

fn normalize_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn observe_propagation(
    host: &Host,
    want: &Propagation,
) -> Result<Option<Propagation>, Failure> {
    let mount = host.mount_above(&want.path);
    let mount = mount.map_err(file_failure("reading the mount of", &want.path))?;
    let shared = mount.is_none_or(|mount| mount.shared);
    Ok(Some(Propagation {
        shared,
        ..want.clone()
    }))
}

/// Makes the mount that contains the folder shared, as systemd does with `/` at boot.
pub(super) fn put_propagation(host: &Host, want: &Propagation) -> Result<(), Failure> {
    let failed = file_failure("sharing the mount of", &want.path);
    match host.mount_above(&want.path).map_err(&failed)? {
        Some(mount) => host.share_mount(&mount.path).map_err(failed),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::sysctl_path;

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
            assert_eq!(sysctl_path(key), expected);
        }
    }
}
