//! The AWS cloud controller manager: tells Nodes what EC2 knows of them, makes load balancers of Services, and with
//! kubenet routes to pods.

use crate::addons::manifest::Named;
use crate::addons::{Addon, Error};
use node::config::sha256_hex;
use templates::addons::{CloudConfig, CloudControllerManager, CloudSetting};

/// Where its configuration is in the pod.
const FOLDER: &str = "/etc/kubernetes/cloud-controller-manager";

/// The addon.
pub(super) fn addon(manager: &crate::CloudControllerManager) -> Result<Addon, Error> {
    let named = Named::new("aws-cloud-controller.addons.k8s.io", "k8s-1.18");
    let mut flags = manager.flags.clone();
    flags.set("cloud-config", format!("{FOLDER}/cloud.config"));
    let settings = manager.settings.iter();
    let cloud_config = named.render(&CloudConfig {
        settings: settings
            .map(|(name, value)| CloudSetting {
                name: name.clone(),
                value: value.clone(),
            })
            .collect(),
    })?;
    let context = CloudControllerManager {
        image: manager.image.clone(),
        arguments: flags.arguments(),
        cpu_request: manager.cpu_request.clone(),
        config_sha256: sha256_hex(&cloud_config),
        cloud_config,
        config_folder: FOLDER.to_owned(),
    };
    named.addon(&[named.render(&context)?])
}
