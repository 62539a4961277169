//! Users and groups of the machine, by its own files: those of directories elsewhere own nothing that nodeup writes.

use super::disk::Disk;
use std::io;

/// The numbers of `user:group`, either of which may be a number itself; `None` if the machine has no such user or group.
pub(super) fn ids(disk: &Disk, owner: &str) -> io::Result<Option<(u32, u32)>> {
    let (user, group) = owner.split_once(':').unwrap_or((owner, owner));
    let user = id(&disk.text("/etc/passwd")?, user);
    let group = id(&disk.text("/etc/group")?, group);
    Ok(user.zip(group))
}

/// The number of a name in a file with lines `name:password:number:...`. root is 0 where there is no file at all.
fn id(file: &str, name: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    };
    let known = file.lines().find_map(of_line);
    known
        .or_else(|| name.parse().ok())
        .or_else(|| (name == "root").then_some(0))
}
