//! An instance in the JSON and YAML of `kctl get instances` and `kctl validate`. Programs read these names: fields are
//! added, never renamed.

use crate::{BootStage, InstanceStatus, Membership, Node, RoleWait, role_name};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceJson {
    /// `i-...`.
    id: String,
    /// Name of the instance group; empty if unknown.
    group: String,
    /// `ControlPlane`, `Node`, `Bastion`; empty if the spec has no such group.
    role: &'static str,
    zone: String,
    machine_type: String,
    /// EC2's state.
    state: String,
    lifecycle: Option<String>,
    /// Seconds since 1970.
    launched: Option<i64>,
    private_ip: Option<String>,
    public_ip: Option<String>,
    ipv6_address: Option<String>,
    /// The launch template version that it was launched from.
    template_version: Option<String>,
    /// Null if unknown.
    up_to_date: Option<bool>,
    /// Why `upToDate` is not true; null if it is.
    update_reason: Option<String>,
    membership: Membership,
    node: Option<Node>,
    /// How far the boot came.
    start: Option<BootStage>,
    waits: Vec<RoleWait>,
}

impl From<InstanceStatus> for InstanceJson {
    fn from(status: InstanceStatus) -> Self {
        let instance = status.instance;
        Self {
            id: instance.id,
            group: instance.instance_group.unwrap_or_default(),
            role: role_name(status.role),
            zone: instance.zone,
            machine_type: instance.machine_type,
            state: instance.state,
            lifecycle: instance.lifecycle,
            launched: instance.launched,
            private_ip: instance.private_ip,
            public_ip: instance.public_ip,
            ipv6_address: instance.ipv6_address,
            template_version: instance.template.map(|template| template.version),
            up_to_date: status.up_to_date.is_current(),
            update_reason: status.up_to_date.reason(),
            membership: status.membership,
            node: status.node,
            start: status.boot,
            waits: status.waits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instance, TemplateVersion, UpToDate};
    use node::config::Role;
    use serde_json::{Value, json};

    #[test]
    fn every_field_has_its_published_name() {
        let template = |version: &str| TemplateVersion {
            id: "lt-1".to_owned(),
            version: version.to_owned(),
        };
        let status = InstanceStatus {
            instance: Instance {
                id: "i-1".to_owned(),
                instance_group: Some("nodes".to_owned()),
                template: Some(template("1")),
                ..Instance::default()
            },
            role: Some(Role::ControlPlane),
            up_to_date: UpToDate::NeedsUpdate {
                launched_from: template("1"),
                group_launches: template("2"),
            },
            membership: Membership::NotJoined,
            node: None,
            boot: None,
            waits: Vec::new(),
        };
        let expected = json!({
            "id": "i-1", "group": "nodes", "role": "ControlPlane", "zone": "", "machineType": "", "state": "",
            "lifecycle": null, "launched": null, "privateIp": null, "publicIp": null, "ipv6Address": null, "templateVersion": "1",
            "upToDate": false,
            "updateReason": "launched from version 1 of launch template lt-1, its group launches version 2",
            "membership": "not-joined", "node": null, "start": null, "waits": [],
        });
        assert_eq!(serde_json::to_value(status).unwrap(), expected);
    }

    #[test]
    fn an_instance_of_no_known_group_has_empty_names_and_no_answer() {
        let status = InstanceStatus {
            instance: Instance::default(),
            role: None,
            up_to_date: UpToDate::Unknown(crate::UnknownVersion::NoScalingGroup),
            membership: Membership::Unknown,
            node: None,
            boot: None,
            waits: Vec::new(),
        };
        let json = serde_json::to_value(status).unwrap();
        assert_eq!((&json["group"], &json["role"]), (&json!(""), &json!("")));
        assert_eq!(json["upToDate"], Value::Null);
    }
}
