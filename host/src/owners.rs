//! Looks up user and group ids in the instance's passwd and group files. Directory services are not asked: they own no file that
//! agents write.

/// The uid and gid of `user:group`, by the texts of `/etc/passwd` and `/etc/group`; either part may be a number. `None` if there
/// is no such user or group.
pub(crate) fn find_owner_ids(passwd: &str, groups: &str, owner: &str) -> Option<(u32, u32)> {
    let (user, group) = owner.split_once(':').unwrap_or((owner, owner));
    find_id(passwd, user).zip(find_id(groups, group))
}

/// The id of a name in a file with lines `name:password:id:...`. root is 0 even if the file does not exist.
fn find_id(file: &str, name: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    };
    let known = file.lines().find_map(of_line);
    known
        .or_else(|| name.parse().ok())
        .or_else(|| (name == "root").then_some(0))
}
