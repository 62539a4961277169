//! The files that nodeup writes on a host, for comparison between hosts.

use anyhow::{Context, Result};
use lab::aws_state::Instance;
use lab::scenario::Lab;
use std::collections::BTreeMap;

/// Prints a line for each file, folder and link: path, type, mode, owner, hash of the content. It leaves out the content of keys,
/// certificates and kubeconfigs, and replaces what belongs to the host alone: its id by `<id>`, its address by `<address>`, and the
/// UUIDs of its volumes by `<uuid>`.
const LIST: &str = r#"
import hashlib, os, re, stat, sys
own = [(sys.argv[1].encode(), b"<id>"), (sys.argv[2].encode(), b"<address>")]
folders = ["/etc/kubernetes", "/etc/systemd/system", "/opt/cni/bin", "/usr/local/bin", "/etc/containerd"]
secret = (".key", ".crt", ".pem")

def one(path):
    about = os.lstat(path)
    line = [path, stat.filemode(about.st_mode), f"{about.st_uid}:{about.st_gid}"]
    if stat.S_ISLNK(about.st_mode):
        line.append("-> " + os.readlink(path))
    elif stat.S_ISREG(about.st_mode) and not path.endswith(secret) and "kubeconfig" not in path:
        content = open(path, "rb").read()
        for mine, word in own:
            content = content.replace(mine, word)
        content = re.sub(rb"(?<=/dev/disk/by-uuid/)[0-9a-f-]+", b"<uuid>", content)
        line.append(hashlib.sha256(content).hexdigest())
    print(*line)

for folder in folders:
    if os.path.isdir(folder):
        one(folder)
    for parent, folders_in, files in os.walk(folder):
        for name in sorted(folders_in + files):
            one(os.path.join(parent, name))
for name in sorted(os.listdir("/var/lib/kubelet")):
    if name.endswith(".conf"):
        one("/var/lib/kubelet/" + name)
"#;

/// Path, and the properties that must be equal.
pub type Files = BTreeMap<String, String>;

pub fn list_files(lab: &Lab, host: &Instance) -> Result<Files> {
    let address = host.address.to_string();
    let said = lab.exec_in_host(&host.id, &["python3", "-c", LIST, &host.id, &address])?;
    let line = |line: &str| {
        let (path, rest) = line.split_once(' ').context("a line without a blank")?;
        Ok((path.to_owned(), rest.to_owned()))
    };
    said.lines().map(line).collect()
}

/// The differences, one per line; empty if both are equal.
pub fn describe_difference(wanted: &Files, found: &Files) -> String {
    let mut lines = String::new();
    for path in wanted
        .keys()
        .chain(found.keys().filter(|path| !wanted.contains_key(*path)))
    {
        let (one, other) = (wanted.get(path), found.get(path));
        if one != other {
            lines += &format!("{path}: {one:?}, and {other:?}\n");
        }
    }
    lines
}
