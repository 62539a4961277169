//! Users and groups of the machine, by its own files: those of directories elsewhere own nothing that agents write.

/// The numbers of `user:group`, either of which may be a number itself, by what the machine's passwd and group say; `None`
/// if it has no such user or group.
pub(crate) fn ids(passwd: &str, groups: &str, owner: &str) -> Option<(u32, u32)> {
    let (user, group) = owner.split_once(':').unwrap_or((owner, owner));
    id(passwd, user).zip(id(groups, group))
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
