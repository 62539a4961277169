//! Whether an instance was launched from the launch template version that its Auto Scaling group launches now, and if
//! not, which versions differ.

use crate::{Instance, ScalingGroup, TemplateVersion};

/// Whether an instance is up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpToDate {
    /// A replacement would be launched from the same launch template version.
    Current,
    /// A replacement would be launched from another one.
    NeedsUpdate {
        /// What the instance was launched from.
        launched_from: TemplateVersion,
        /// What its Auto Scaling group launches now.
        group_launches: TemplateVersion,
    },
    /// The two versions cannot be compared.
    Unknown(UnknownVersion),
}

/// Which of the compared versions is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownVersion {
    /// No Auto Scaling group of the instance's instance group exists.
    NoScalingGroup,
    /// AWS does not say which version the Auto Scaling group launches.
    OfScalingGroup,
    /// AWS does not say which version the instance was launched from.
    OfInstance,
}

impl UpToDate {
    /// True if current, false if it needs an update, `None` if that is unknown.
    pub fn is_current(&self) -> Option<bool> {
        match self {
            Self::Current => Some(true),
            Self::NeedsUpdate { .. } => Some(false),
            Self::Unknown(_) => None,
        }
    }

    /// Why the instance is not known to be current, in one line; `None` if it is current.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Current => None,
            Self::NeedsUpdate {
                launched_from: old,
                group_launches: new,
            } if old.id == new.id => Some(format!(
                "launched from version {} of launch template {}, its group launches version {}",
                old.version, old.id, new.version
            )),
            Self::NeedsUpdate {
                launched_from: old,
                group_launches: new,
            } => Some(format!(
                "launched from version {} of launch template {}, its group launches version {} of {}",
                old.version, old.id, new.version, new.id
            )),
            Self::Unknown(version) => Some(version.reason().to_owned()),
        }
    }
}

impl UnknownVersion {
    fn reason(self) -> &'static str {
        match self {
            Self::NoScalingGroup => "its instance group has no Auto Scaling group",
            Self::OfScalingGroup => "its group launches an unknown launch template version",
            Self::OfInstance => "it was launched from an unknown launch template version",
        }
    }
}

/// Compares what an instance was launched from with what its Auto Scaling group launches. A detached instance is
/// compared with the Auto Scaling group of its instance group.
pub fn up_to_date(instance: &Instance, groups: &[ScalingGroup]) -> UpToDate {
    let is_its_group = |group: &&ScalingGroup| match &instance.scaling_group {
        Some(name) => group.name == *name,
        None => group.instance_group == instance.instance_group,
    };
    let Some(group) = groups.iter().find(is_its_group) else {
        return UpToDate::Unknown(UnknownVersion::NoScalingGroup);
    };
    let Some(group_launches) = &group.template else {
        return UpToDate::Unknown(UnknownVersion::OfScalingGroup);
    };
    match &instance.template {
        None => UpToDate::Unknown(UnknownVersion::OfInstance),
        Some(launched_from) if launched_from == group_launches => UpToDate::Current,
        Some(launched_from) => UpToDate::NeedsUpdate {
            launched_from: launched_from.clone(),
            group_launches: group_launches.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(id: &str, version: &str) -> TemplateVersion {
        TemplateVersion {
            id: id.to_owned(),
            version: version.to_owned(),
        }
    }

    fn group(name: &str, launches: Option<TemplateVersion>) -> ScalingGroup {
        ScalingGroup {
            name: name.to_owned(),
            instance_group: Some("nodes".to_owned()),
            min: 1,
            desired: 1,
            max: 1,
            template: launches,
            suspended: Vec::new(),
            target_groups: Vec::new(),
        }
    }

    fn instance(scaling_group: Option<&str>, from: Option<TemplateVersion>) -> Instance {
        Instance {
            id: "i-1".to_owned(),
            scaling_group: scaling_group.map(ToOwned::to_owned),
            instance_group: Some("nodes".to_owned()),
            template: from,
            ..Instance::default()
        }
    }

    #[test]
    fn the_version_that_the_group_launches_now_decides() {
        let groups = [group("nodes.a", Some(template("lt-1", "3")))];
        let of = |id, version| {
            let instance = instance(Some("nodes.a"), Some(template(id, version)));
            let compared = up_to_date(&instance, &groups);
            (compared.is_current(), compared.reason())
        };
        assert_eq!(of("lt-1", "3"), (Some(true), None));
        let (current, reason) = of("lt-1", "1");
        assert_eq!(current, Some(false));
        assert_eq!(
            reason.unwrap(),
            "launched from version 1 of launch template lt-1, its group launches version 3"
        );
        let (current, reason) = of("lt-0", "3");
        assert_eq!(current, Some(false));
        assert!(reason.unwrap().ends_with("launches version 3 of lt-1"));
    }

    #[test]
    fn a_detached_instance_is_compared_with_the_group_of_its_instance_group() {
        let groups = [group("nodes.a", Some(template("lt-1", "3")))];
        let detached = instance(None, Some(template("lt-1", "3")));
        assert_eq!(up_to_date(&detached, &groups), UpToDate::Current);
        let of_another = instance(Some("nodes.b"), Some(template("lt-1", "3")));
        assert_eq!(
            up_to_date(&of_another, &groups),
            UpToDate::Unknown(UnknownVersion::NoScalingGroup)
        );
    }

    #[test]
    fn without_both_versions_nothing_is_known() {
        let known = [group("nodes.a", Some(template("lt-1", "3")))];
        let cases = [
            (
                &[][..],
                Some(template("lt-1", "3")),
                UnknownVersion::NoScalingGroup,
            ),
            (
                &[group("nodes.a", None)][..],
                Some(template("lt-1", "3")),
                UnknownVersion::OfScalingGroup,
            ),
            (&known[..], None, UnknownVersion::OfInstance),
        ];
        for (groups, from, missing) in cases {
            let compared = up_to_date(&instance(Some("nodes.a"), from), groups);
            assert_eq!(compared, UpToDate::Unknown(missing));
            assert_eq!(compared.is_current(), None);
            assert!(compared.reason().is_some());
        }
    }
}
