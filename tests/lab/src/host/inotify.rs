//! inotify instances: the kernel limits their number per user (`fs.inotify.max_user_instances`). The hosts of all labs share root's, and
//! a host that gets none hangs in its boot with "Too many open files".

use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a node uses: systemd and its services, containerd, kubelet, the programs of its pods.
const OF_A_HOST: usize = 25;

/// Fails if there are not enough left for so many more hosts.
pub fn ensure_left(hosts: usize) -> Result<()> {
    let path = "/proc/sys/fs/inotify/max_user_instances";
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    let limit = text
        .trim()
        .parse()
        .with_context(|| format!("{path} says {text:?}"))?;
    let user = rustix::process::geteuid().as_raw();
    check_instances(limit, count_instances(Path::new("/proc"), user)?, hosts)
}

fn check_instances(limit: usize, used: usize, hosts: usize) -> Result<()> {
    let wanted = hosts * OF_A_HOST;
    ensure!(
        used + wanted <= limit,
        "{hosts} hosts need about {wanted} inotify instances, but {used} of root's {limit} on this machine are in use: \
         remove other labs (lab down), or allow more: sysctl -w fs.inotify.max_user_instances=1024"
    );
    Ok(())
}

/// Counts the inotify descriptors of a user's processes.
fn count_instances(proc: &Path, user: u32) -> Result<usize> {
    let mut found = 0;
    for entry in fs::read_dir(proc).with_context(|| format!("reading {}", proc.display()))? {
        let process = entry?.path();
        // A process that ends meanwhile has none.
        let own = fs::metadata(&process).is_ok_and(|metadata| metadata.uid() == user);
        let Some(descriptors) = own.then(|| fs::read_dir(process.join("fd")).ok()).flatten() else {
            continue;
        };
        let targets = descriptors.filter_map(|one| fs::read_link(one.ok()?.path()).ok());
        found += targets
            .filter(|target| *target == Path::new("anon_inode:inotify"))
            .count();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn descriptors_of_the_users_processes_count() {
        let proc = tempfile::tempdir().unwrap();
        let descriptors = proc.path().join("17/fd");
        fs::create_dir_all(&descriptors).unwrap();
        fs::create_dir_all(proc.path().join("sys")).unwrap();
        for (number, target) in [
            ("3", "anon_inode:inotify"),
            ("4", "/dev/null"),
            ("9", "anon_inode:inotify"),
        ] {
            symlink(target, descriptors.join(number)).unwrap();
        }
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(count_instances(proc.path(), user).unwrap(), 2);
        assert_eq!(count_instances(proc.path(), user + 1).unwrap(), 0);
    }

    #[test]
    fn a_second_lab_of_five_hosts_exceeds_the_usual_limit() {
        assert!(check_instances(128, 3, 5).is_ok());
        let refused = check_instances(128, 125, 5).unwrap_err().to_string();
        assert!(
            refused.contains("sysctl -w fs.inotify.max_user_instances=1024"),
            "{refused}"
        );
        assert!(check_instances(1024, 125, 5).is_ok());
    }
}
