//! All that is known of one instance: from AWS, from its Node, and where it matters from its boot report, its console
//! and what protokube waits for.

use crate::instance_json::InstanceJson;
use crate::membership::membership;
use crate::{
    AwsFleet, BootStage, Group, Instance, Membership, Node, RoleWait, UpToDate, unhealthy_waits,
    up_to_date,
};
use node::config::Role;
use serde::Serialize;
use std::collections::BTreeMap;

/// How long ago an instance without a Node must have been launched, in seconds, to count as one that will get none.
const LOST_AFTER: i64 = 600;

/// An instance with its node and its boot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "InstanceJson")]
pub struct InstanceStatus {
    pub instance: Instance,
    /// Its group's role; `None` if the spec has no such group.
    pub role: Option<Role>,
    /// Whether it was launched from what its group launches now.
    pub up_to_date: UpToDate,
    /// Whether it is a node.
    pub membership: Membership,
    /// Its Node, if it has joined.
    pub node: Option<Node>,
    /// How far its boot came, if it has not joined or that is not known.
    pub boot: Option<BootStage>,
    /// What protokube of a control plane waits for or refuses, joined or not, causes first.
    pub waits: Vec<RoleWait>,
}

impl InstanceStatus {
    /// Its instance group's name; empty if unknown.
    pub fn group(&self) -> &str {
        self.instance.instance_group.as_deref().unwrap_or_default()
    }

    /// True if it runs etcd or the API server.
    pub fn is_control_plane(&self) -> bool {
        self.role == Some(Role::ControlPlane)
    }

    /// True if its group can count on it: it is neither in a warm pool nor being terminated.
    pub fn is_counted(&self) -> bool {
        !self.instance.is_in_warm_pool() && !self.instance.is_leaving()
    }

    /// True if the state store may have what its protokube waits for.
    pub fn has_waits(&self) -> bool {
        self.is_control_plane() && self.instance.is_running() && self.is_counted()
    }

    /// True if nothing newer than its boot report has to be read: the report has an error; or it has none and the API
    /// cannot be asked, so that the instance has most likely joined. The latter does not hold for a control plane,
    /// whose protokube may be the reason why the API does not answer.
    pub fn is_explained_by(&self, report: &BootStage) -> bool {
        let probably_joined = self.membership == Membership::Unknown && !self.is_control_plane();
        report.error.is_some() || probably_joined
    }

    /// True if it will not become a node by itself any more: AWS launched it ten minutes ago or earlier, its nodeup is done, on a control
    /// plane nothing is wrong with its API server and etcd, and the API has no Node of it. `now`: seconds since 1970.
    ///
    /// kubelet makes its Node once, when it starts (`registerWithAPIServer` in Kubernetes' pkg/kubelet/kubelet_node_status.go), so an
    /// instance that joined after the moment to which etcd was restored has none.
    pub fn has_lost_its_node(&self, now: i64) -> bool {
        let is_old = |launched: i64| now - launched >= LOST_AFTER;
        let is_up = |boot: &BootStage| match self.is_control_plane() {
            true => boot.is_control_plane_up() && unhealthy_waits(&self.waits).next().is_none(),
            false => boot.is_nodeup_done(),
        };
        self.membership == Membership::NotJoined
            && self.is_counted()
            && self.instance.is_running()
            && self.instance.launched.is_some_and(is_old)
            && self.boot.as_ref().is_some_and(is_up)
    }

    /// What to do about what keeps it from joining, or else about what its protokube reports.
    pub fn next_step(&self) -> Option<String> {
        match &self.boot {
            Some(boot) => boot.error.as_ref().and(boot.next.clone()),
            None => unhealthy_waits(&self.waits).find_map(|wait| wait.next.clone()),
        }
    }
}

/// The status of every instance in AWS, without boot stages and waits. `nodes` are all Nodes; `None` if the API could
/// not be asked.
pub fn instance_statuses(
    aws: &AwsFleet,
    groups: &[Group],
    nodes: Option<&[Node]>,
) -> Vec<InstanceStatus> {
    let status = |instance: &Instance| {
        let group = groups
            .iter()
            .find(|group| Some(&group.name) == instance.instance_group.as_ref());
        let role = group.and_then(|group| group.role);
        let node = nodes.and_then(|nodes| nodes.iter().find(|node| node.is_on(instance)));
        InstanceStatus {
            instance: instance.clone(),
            role,
            up_to_date: up_to_date(instance, &aws.scaling_groups),
            membership: membership(instance, role, nodes),
            node: node.cloned(),
            boot: None,
            waits: Vec::new(),
        }
    };
    aws.instances.iter().map(status).collect()
}

/// Where one of these instances waits for a volume that another one has: adds what Auto Scaling does with the other one,
/// which protokube need not know.
pub fn append_holders(statuses: &mut [InstanceStatus]) {
    let instances: Vec<Instance> = statuses.iter().map(|one| one.instance.clone()).collect();
    let instances: BTreeMap<&str, &Instance> = instances
        .iter()
        .map(|instance| (instance.id.as_str(), instance))
        .collect();
    for status in statuses {
        let waits = status.waits.iter_mut();
        waits.for_each(|wait| wait.append_holder(&instances));
        if let Some(boot) = &mut status.boot {
            boot.append_holder(&instances);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScalingGroup;
    use node::report::{BootReport, Stage, Status};
    use node::waits::{Wait, Waits};
    use time::OffsetDateTime;

    fn instance(id: &str, group: &str) -> Instance {
        Instance {
            id: id.to_owned(),
            scaling_group: Some(format!("{group}.a")),
            instance_group: Some(group.to_owned()),
            state: "running".to_owned(),
            lifecycle: Some("InService".to_owned()),
            ..Instance::default()
        }
    }

    fn group(name: &str, role: Role) -> Group {
        Group {
            name: name.to_owned(),
            role: Some(role),
            min: None,
            max: None,
        }
    }

    /// A control plane that joined, a worker that did not, and an instance whose group is not in the spec.
    fn statuses(api_answers: bool) -> Vec<InstanceStatus> {
        let aws = AwsFleet {
            scaling_groups: vec![ScalingGroup {
                name: "control.a".to_owned(),
                instance_group: Some("control".to_owned()),
                min: 1,
                desired: 2,
                max: 2,
                template: None,
                suspended: Vec::new(),
                target_groups: Vec::new(),
            }],
            instances: vec![
                instance("i-c", "control"),
                instance("i-n", "nodes"),
                instance("i-x", "removed"),
            ],
        };
        assert!(aws.scaling_groups[0].lacks_instances(&aws.instances));
        let groups = [
            group("control", Role::ControlPlane),
            group("nodes", Role::Node),
        ];
        let nodes = [Node {
            name: "i-c".to_owned(),
            ready: true,
            ..Node::default()
        }];
        instance_statuses(&aws, &groups, api_answers.then_some(&nodes[..]))
    }

    fn report(error: Option<&str>) -> BootStage {
        BootStage::from_report(&BootReport {
            format: 1,
            instance: "i-n".to_owned(),
            cluster: "a".to_owned(),
            group: "nodes".to_owned(),
            release: String::new(),
            fips: false,
            node_config: String::new(),
            started: String::new(),
            stages: vec![Stage {
                name: "apply".to_owned(),
                status: Status::Finished,
                seconds: 1.0,
            }],
            changes: 0,
            changed: Vec::new(),
            error: error.map(ToOwned::to_owned),
        })
    }

    fn waits(message: &str) -> Vec<RoleWait> {
        let waits = vec![Wait::new("etcd-main", "", Status::Started, message)];
        let now = OffsetDateTime::UNIX_EPOCH;
        crate::role_waits(Waits::new("i-c", "", "", waits), now)
    }

    #[test]
    fn an_instance_has_the_role_of_its_group_and_its_own_node() {
        let all = statuses(true);
        let read: Vec<_> = all
            .iter()
            .map(|one| (one.role, one.membership, one.node.is_some()))
            .collect();
        assert_eq!(
            read,
            [
                (Some(Role::ControlPlane), Membership::Ready, true),
                (Some(Role::Node), Membership::NotJoined, false),
                (None, Membership::NotJoined, false),
            ]
        );
        let waiting: Vec<bool> = all.iter().map(InstanceStatus::has_waits).collect();
        assert_eq!(waiting, [true, false, false]);
        let unknown = statuses(false);
        assert!(
            unknown
                .iter()
                .all(|one| one.membership == Membership::Unknown)
        );
    }

    #[test]
    fn a_report_without_an_error_explains_a_worker_only_while_the_api_cannot_be_asked() {
        for (api_answers, error, explained) in [
            (true, Some("no space left"), [true, true]),
            (true, None, [false, false]),
            (false, None, [false, true]),
        ] {
            let report = report(error);
            let [control_plane, worker, ..] = &statuses(api_answers)[..] else {
                panic!("three instances");
            };
            let found = [control_plane, worker].map(|one| one.is_explained_by(&report));
            assert_eq!(found, explained, "{api_answers} {error:?}");
        }
    }

    #[test]
    fn a_volume_that_another_instance_has_is_named_with_that_instances_lifecycle() {
        let mut all = statuses(true);
        all[0].waits = waits("vol-1 is attached to i-n, which is running");
        all[1].instance.lifecycle = Some("Terminating:Wait".to_owned());
        append_holders(&mut all);
        let message = &all[0].waits[0].message;
        assert!(message.contains("i-n is Terminating:Wait"), "{message}");
    }

    #[test]
    fn the_next_step_is_that_of_the_boot_and_else_of_the_first_wait() {
        let mut all = statuses(true);
        let control_plane = &mut all[0];
        assert_eq!(control_plane.next_step(), None);
        control_plane.waits = waits("vol-1 is attached to i-n");
        let step = control_plane.next_step().unwrap();
        assert!(step.contains("etcd volume"), "{step}");
        control_plane.boot = Some(report(Some("no space left")));
        let step = control_plane.next_step().unwrap();
        assert!(step.contains("journalctl -u nodeup"), "{step}");
    }
}
