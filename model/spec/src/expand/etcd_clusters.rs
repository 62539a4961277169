//! The etcd clusters of a new cluster.

use crate::api::etcd::{EtcdClusterSpec, EtcdManagerSpec, EtcdMemberSpec};

/// Days that etcd backups are kept.
pub(super) const RETENTION_DAYS: i32 = 90;

/// etcd clusters of these names with one member in each control-plane group, as kOps' `create
/// cluster` writes them.
pub fn etcd_clusters<S: AsRef<str>>(
    names: &[S],
    control_planes: &[&str],
    encrypted: bool,
    volume_type: Option<&str>,
) -> Vec<EtcdClusterSpec> {
    let members: Vec<EtcdMemberSpec> = member_names(control_planes)
        .into_iter()
        .zip(control_planes)
        .map(|(name, group)| EtcdMemberSpec {
            name,
            instance_group: (*group).to_owned(),
            encrypted_volume: encrypted.then_some(true),
            volume_type: volume_type.map(str::to_owned),
            ..EtcdMemberSpec::default()
        })
        .collect();
    let cluster = |name: &S| EtcdClusterSpec {
        name: name.as_ref().to_owned(),
        cpu_request: Some(
            if name.as_ref() == "main" {
                "200m"
            } else {
                "100m"
            }
            .to_owned(),
        ),
        memory_request: Some("100Mi".to_owned()),
        manager: Some(EtcdManagerSpec {
            backup_retention_days: Some(RETENTION_DAYS),
            ..EtcdManagerSpec::default()
        }),
        etcd_members: members.clone(),
        ..EtcdClusterSpec::default()
    };
    names.iter().map(cluster).collect()
}

/// Short names for the members in these groups: the group names without their common prefix, at least
/// one character. A name that starts with a digit gets the prefix `etcd-`.
fn member_names(groups: &[&str]) -> Vec<String> {
    let mut names: Vec<&str> = groups.iter().map(|group| without_role(group)).collect();
    while let Some(rest) = without_first(&names) {
        names = rest;
    }
    names
        .into_iter()
        .map(|name| match name.as_bytes().first() {
            Some(first) if first.is_ascii_digit() => format!("etcd-{name}"),
            _ => name.to_owned(),
        })
        .collect()
}

fn without_role(group: &str) -> &str {
    let name = group.strip_prefix("control-plane-").unwrap_or(group);
    name.strip_prefix("master-").unwrap_or(name)
}

/// The names without their first letter, if all share it and the first name is longer.
fn without_first<'a>(names: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut letters = names.first()?.chars();
    let (first, _second) = (letters.next()?, letters.next()?);
    names.iter().map(|name| name.strip_prefix(first)).collect()
}

#[cfg(test)]
mod tests {
    use super::member_names;

    #[test]
    fn members_are_named_by_what_tells_their_groups_apart() {
        let named = |groups: &[&str]| member_names(groups).join(" ");
        assert_eq!(named(&["control-plane-us-east-1a"]), "a");
        assert_eq!(
            named(&["control-plane-eu-west-1a", "control-plane-eu-west-1b"]),
            "a b"
        );
        assert_eq!(
            named(&[
                "master-us-east-1a-1",
                "master-us-east-1b-1",
                "master-us-east-1a-2"
            ]),
            "a-1 b-1 a-2"
        );
        assert_eq!(
            named(&["control-plane-us-east-1a-1", "control-plane-us-east-1a-2"]),
            "etcd-1 etcd-2"
        );
        assert_eq!(named(&[]), "");
    }
}
