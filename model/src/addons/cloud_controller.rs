//! The AWS cloud controller manager: tells Nodes what EC2 knows of them, makes load balancers of Services, and with
//! kubenet routes to pods.

use super::manifest::Named;
use super::{Addon, Error};
use crate::api::cloud::CloudConfiguration;
use crate::api::cluster::ClusterSpec;
use crate::components::cloud_controller_manager;
use crate::node::sha256;
use templates::addons::{CloudConfig, CloudControllerManager, CloudSetting};

/// Where its configuration is in the pod.
const FOLDER: &str = "/etc/kubernetes/cloud-controller-manager";

/// The addon.
pub(super) fn addon(spec: &ClusterSpec) -> Result<Addon, Error> {
    let named = Named::new("aws-cloud-controller.addons.k8s.io", "k8s-1.18");
    let manager = spec.cloud_controller_manager.clone().unwrap_or_default();
    let mut flags = cloud_controller_manager(&manager).map_err(|source| Error::Flags {
        addon: named.name,
        source,
    })?;
    flags.set("cloud-config", format!("{FOLDER}/cloud.config"));
    let cloud_config = named.render(&CloudConfig {
        settings: settings(&spec.cloud_config.clone().unwrap_or_default()),
    })?;
    let context = CloudControllerManager {
        image: manager.image.unwrap_or_default(),
        arguments: flags.arguments(),
        cpu_request: manager.cpu_request,
        config_sha256: sha256(&cloud_config),
        cloud_config,
        config_folder: FOLDER.to_owned(),
    };
    named.addon(&[named.render(&context)?])
}

/// What the spec says of it. kOps has the same in a file of the machine; here a change needs no new machine.
fn settings(config: &CloudConfiguration) -> Vec<CloudSetting> {
    let ingress = config.disable_security_group_ingress;
    let one = |name: &str, value: Option<String>| {
        value.map(|value| CloudSetting {
            name: name.to_owned(),
            value,
        })
    };
    let families = config.node_ip_families.iter();
    [
        one(
            "DisableSecurityGroupIngress",
            ingress.map(|disable| disable.to_string()),
        ),
        one("ElbSecurityGroup", config.elb_security_group.clone()),
        one(
            "NLBSecurityGroupMode",
            config.nlb_security_group_mode.clone(),
        ),
    ]
    .into_iter()
    .flatten()
    .chain(families.filter_map(|family| one("NodeIPFamilies", Some(family.clone()))))
    .collect()
}
