//! The running kernel: modules, parameters, and how mounts are seen.

use super::failure::{failed, file_failure, invalid};
use engine::Failure;
use host::{Error, Host};
use node::host::{KernelModule, Propagation, Sysctl};

/// What the kernel would not take, by parameter: value and kernel.
const REFUSED: &str = "/var/lib/kctl/sysctls-refused";

pub(super) fn observe_module(host: &Host, want: &KernelModule) -> Option<KernelModule> {
    let loaded = format!("/sys/module/{}", want.name.replace('-', "_"));
    let there = [&loaded, &want.sign];
    let there = there.iter().any(|path| host.at(path).exists());
    there.then(|| want.clone())
}

pub(super) fn load(host: &Host, want: &KernelModule) -> Result<(), Failure> {
    let call = format!("modprobe {}", want.name);
    host.may_change().map_err(failed(&call))?;
    let answer = host.run("modprobe", &[&want.name]);
    let answer = answer.map_err(failed(&call))?;
    if answer.is_success() {
        return Ok(());
    }
    let mut failure = invalid(&call, answer.stderr.trim());
    failure.hint = Some("use an image whose kernel has it".to_owned());
    Err(failure)
}

/// The parameter as it is. One of ours that this kernel would not take earlier is as wanted: nothing can be done about it. That a parameter is not there says nothing yet: it may come with a module that is still to be loaded.
pub(super) fn observe_sysctl(host: &Host, want: &Sysctl) -> Result<Option<Sysctl>, Failure> {
    if !want.required && refused(host, want)? {
        return Ok(Some(want.clone()));
    }
    let path = path(&want.key);
    let read = host.read(&path).map_err(file_failure("reading", &path))?;
    Ok(read.map(|bytes| Sysctl {
        value: words(&String::from_utf8_lossy(&bytes)),
        ..want.clone()
    }))
}

/// Writes the parameter and reads it back: some values are taken and not kept.
pub(super) fn put_sysctl(host: &Host, want: &Sysctl, tell: &dyn Fn(&str)) -> Result<(), Failure> {
    let path = path(&want.key);
    let failed = file_failure("setting", &want.key);
    let why = match host.write_kernel_file(&path, &format!("{}\n", want.value)) {
        Err(Error::File { source, .. }) => source.to_string(),
        Err(error) => return Err(failed(error)),
        Ok(()) => {
            let kept = words(&host.read_lossy(&path).map_err(&failed)?);
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
    let refused = refusal(host, want)?;
    let written = host.write(
        &record(&want.key),
        refused.as_bytes(),
        0o644,
        Some("root:root"),
    );
    written.map_err(&failed)
}

fn refused(host: &Host, want: &Sysctl) -> Result<bool, Failure> {
    let path = record(&want.key);
    let value = host
        .read_lossy(&path)
        .map_err(file_failure("reading", &path))?;
    Ok(value == refusal(host, want)?)
}

/// That this kernel would not take this value.
fn refusal(host: &Host, want: &Sysctl) -> Result<String, Failure> {
    let path = "/proc/sys/kernel/osrelease";
    let kernel = host
        .read_lossy(path)
        .map_err(file_failure("reading", path))?;
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

/// Shares the mount that the folder is on, as systemd does with `/` at boot.
pub(super) fn share(host: &Host, want: &Propagation) -> Result<(), Failure> {
    let failed = file_failure("sharing the mount of", &want.path);
    match host.mount_above(&want.path).map_err(&failed)? {
        Some(mount) => host.share(&mount.path).map_err(failed),
        None => Ok(()),
    }
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
