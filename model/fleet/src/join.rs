//! Joins the instances that EC2 describes with the members that Auto Scaling lists.

use crate::{Instance, ScalingGroup};

/// A cluster's Auto Scaling groups and instances, as AWS describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwsFleet {
    /// Auto Scaling groups by name, without those that are being deleted.
    pub scaling_groups: Vec<ScalingGroup>,
    /// Instances by id, in any state but `terminated`.
    pub instances: Vec<Instance>,
}

/// The instances of the cluster's groups, by id: `found` from EC2, completed with what Auto Scaling says of `members`,
/// and the members that EC2 does not list yet. Instances in no group, for example NAT instances, are left out.
pub fn join_members(found: Vec<Instance>, members: &[Instance]) -> Vec<Instance> {
    let is_found = |id: &str| found.iter().any(|instance| instance.id == id);
    let not_found: Vec<Instance> = members
        .iter()
        .filter(|member| !is_found(&member.id))
        .cloned()
        .collect();
    let found = found.into_iter().filter_map(|instance| {
        let member = members.iter().find(|member| member.id == instance.id);
        let joined = join_member(instance, member);
        joined.instance_group.is_some().then_some(joined)
    });
    let mut all: Vec<Instance> = found.chain(not_found).collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

/// Auto Scaling decides the group and the lifecycle: the tag of a detached instance still names its former group. A member that is
/// being detached (`Detaching`, while its target groups drain it) is none any more: it counts for nothing and cannot be detached again.
fn join_member(instance: Instance, member: Option<&Instance>) -> Instance {
    let Some(member) = member.filter(|member| member.lifecycle.as_deref() != Some("Detaching"))
    else {
        return Instance {
            scaling_group: None,
            lifecycle: None,
            instance_group: instance
                .instance_group
                .or_else(|| member?.instance_group.clone()),
            ..instance
        };
    };
    Instance {
        scaling_group: member.scaling_group.clone(),
        lifecycle: member.lifecycle.clone(),
        template: member.template.clone().or(instance.template),
        instance_group: instance
            .instance_group
            .or_else(|| member.instance_group.clone()),
        ..instance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemplateVersion;

    fn instance(id: &str) -> Instance {
        Instance {
            id: id.to_owned(),
            ..Instance::default()
        }
    }

    fn template(version: &str) -> TemplateVersion {
        TemplateVersion {
            id: "lt-1".to_owned(),
            version: version.to_owned(),
        }
    }

    fn member(id: &str) -> Instance {
        Instance {
            scaling_group: Some("nodes.a".to_owned()),
            instance_group: Some("nodes".to_owned()),
            lifecycle: Some("InService".to_owned()),
            template: Some(template("2")),
            ..instance(id)
        }
    }

    #[test]
    fn a_member_has_ec2s_description_and_auto_scalings_group_lifecycle_and_template() {
        let found = Instance {
            state: "running".to_owned(),
            template: Some(template("1")),
            ..instance("i-1")
        };
        let expected = Instance {
            state: "running".to_owned(),
            ..member("i-1")
        };
        assert_eq!(join_members(vec![found], &[member("i-1")]), [expected]);
    }

    #[test]
    fn a_member_that_ec2_does_not_list_yet_is_kept() {
        let found = Instance {
            instance_group: Some("nodes".to_owned()),
            ..instance("i-2")
        };
        let joined = join_members(vec![found], &[member("i-1")]);
        let ids: Vec<&str> = joined.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["i-1", "i-2"]);
    }

    #[test]
    fn an_instance_that_is_being_detached_has_no_scaling_group() {
        let leaving = Instance {
            lifecycle: Some("Detaching".to_owned()),
            ..member("i-1")
        };
        let joined = join_members(vec![instance("i-1")], &[leaving]);
        assert_eq!(joined[0].scaling_group, None);
        assert_eq!(joined[0].lifecycle, None);
        assert_eq!(joined[0].instance_group.as_deref(), Some("nodes"));
    }

    #[test]
    fn a_detached_instance_has_no_scaling_group_whatever_its_tag_says() {
        let found = Instance {
            scaling_group: Some("nodes.a".to_owned()),
            instance_group: Some("nodes".to_owned()),
            ..instance("i-1")
        };
        let joined = join_members(vec![found], &[]);
        assert_eq!(joined[0].scaling_group, None);
        assert_eq!(joined[0].instance_group.as_deref(), Some("nodes"));
    }

    #[test]
    fn an_instance_of_no_group_is_left_out() {
        assert_eq!(join_members(vec![instance("i-nat")], &[]), []);
    }
}
