//! The AWS cloud controller manager: initializes Nodes with data from EC2, creates load balancers for Services, and with
//! kubenet routes to pods.

use crate::addons::manifest::AddonName;
use crate::addons::{Addon, Error};
use node::digest::sha256_hex;
use templates::addons::{CloudConfig, CloudControllerManager, CloudSetting};

/// Folder of the configuration file in the pod.
const FOLDER: &str = "/etc/kubernetes/cloud-controller-manager";

pub(super) fn cloud_controller_addon(
    manager: &crate::CloudControllerManager,
) -> Result<Addon, Error> {
    let named = AddonName::new("aws-cloud-controller.addons.k8s.io", "k8s-1.18");
    let mut flags = manager.flags.clone();
    flags.set("cloud-config", format!("{FOLDER}/cloud.config"));
    let settings = manager.settings.iter();
    let cloud_config = named.render_template(&CloudConfig {
        settings: settings
            .map(|(name, value)| CloudSetting {
                name: name.clone(),
                value: value.clone(),
            })
            .collect(),
    })?;
    let of_lease = |flag: &str, default: &str| flags.get(flag).unwrap_or(default).to_owned();
    let migrates = flags.get("enable-leader-migration") == Some("true");
    let lease = of_lease("leader-elect-resource-name", "cloud-controller-manager");
    let context = CloudControllerManager {
        // The defaults are those of its flags, and of its leader migration
        // (https://kubernetes.io/docs/tasks/administer-cluster/controller-manager-leader-migration/).
        leases: [lease]
            .into_iter()
            .chain(migrates.then(|| "cloud-provider-extraction-migration".to_owned()))
            .collect(),
        lease_namespace: of_lease("leader-elect-resource-namespace", "kube-system"),
        image: manager.image.clone(),
        arguments: flags.arguments(),
        cpu_request: manager.cpu_request.clone(),
        config_sha256: sha256_hex(&cloud_config),
        cloud_config,
        config_folder: FOLDER.to_owned(),
    };
    named.make_addon(&[named.render_template(&context)?])
}
