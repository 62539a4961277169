//! The Amazon VPC CNI, which gives pods addresses of the VPC.

use super::flannel::container_domain;
use super::manifest::AddonName;
use super::permissions::{change_own, create_own, tag_own};
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use node::names::{self, CLUSTER_TAG};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use templates::Template;

/// The release of kOps 1.37.
const VERSION: &str = "v1.23.0";

/// Variables that kOps sets whatever the spec says.
pub const FORCED: [&str; 3] = ["ADDITIONAL_ENI_TAGS", "ENABLE_IPv4", "ENABLE_IPv6"];

/// Variables that say where the agent runs. A second value beside them would be a matter of order.
pub const RESERVED: [&str; 4] = [
    "CLUSTER_NAME",
    "MY_NODE_NAME",
    "MY_POD_NAME",
    "VPC_CNI_VERSION",
];

/// With it the agent writes the address of a pod into an annotation.
const ANNOTATES: &str = "ANNOTATE_POD_IP";

/// The settings of kOps, which those of the spec win over.
const SETTINGS: [(&str, &str); 20] = [
    ("AWS_VPC_CNI_NODE_PORT_SUPPORT", "true"),
    ("AWS_VPC_ENI_MTU", "9001"),
    ("AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER", "false"),
    ("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "false"),
    ("AWS_VPC_K8S_CNI_EXTERNALSNAT", "false"),
    ("AWS_VPC_K8S_CNI_LOGLEVEL", "DEBUG"),
    (
        "AWS_VPC_K8S_CNI_LOG_FILE",
        "/host/var/log/aws-routed-eni/ipamd.log",
    ),
    ("AWS_VPC_K8S_CNI_RANDOMIZESNAT", "prng"),
    ("AWS_VPC_K8S_CNI_VETHPREFIX", "eni"),
    (
        "AWS_VPC_K8S_PLUGIN_LOG_FILE",
        "/var/log/aws-routed-eni/plugin.log",
    ),
    ("AWS_VPC_K8S_PLUGIN_LOG_LEVEL", "DEBUG"),
    ("DISABLE_INTROSPECTION", "false"),
    ("DISABLE_METRICS", "false"),
    ("DISABLE_NETWORK_RESOURCE_PROVISIONING", "false"),
    ("ENABLE_POD_ENI", "false"),
    ("ENABLE_PREFIX_DELEGATION", "false"),
    ("ENABLE_SUBNET_DISCOVERY", "true"),
    ("NETWORK_POLICY_ENFORCING_MODE", "standard"),
    ("WARM_ENI_TARGET", "1"),
    ("WARM_PREFIX_TARGET", "1"),
];

/// Settings of the Amazon VPC CNI: `spec.networking.amazonvpc`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmazonVpc {
    pub image: String,
    pub init_image: String,
    pub policy_image: String,
    /// Variables of the agent beside and instead of kOps'.
    pub variables: BTreeMap<String, String>,
    /// SELinux is enabled for containers.
    pub selinux: bool,
}

#[derive(Serialize)]
struct Manifest {
    version: &'static str,
    image: String,
    init_image: String,
    policy_image: String,
    variables: Vec<Value>,
    pod_verbs: Vec<&'static str>,
    /// The agent writes the address of a pod into an annotation.
    annotates: bool,
    security: Option<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "amazon_vpc/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("amazon_vpc/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(plugin) = &full.addons.amazon_vpc else {
        return Ok(None);
    };
    let named = AddonName {
        name: "networking.amazon-vpc-routed-eni",
        id: "k8s-1.16",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    // The values that the agent, in Go, takes for true.
    let annotates = plugin
        .variables
        .get(ANNOTATES)
        .is_some_and(|value| matches!(value.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"));
    let mut pod_verbs = vec!["list", "watch", "get"];
    if annotates {
        pod_verbs.push("patch");
    }
    let manifest = named.render_template(&Manifest {
        version: VERSION,
        image: plugin.image.clone(),
        init_image: plugin.init_image.clone(),
        policy_image: plugin.policy_image.clone(),
        variables: variables(full, plugin),
        pod_verbs,
        annotates,
        security: plugin
            .selinux
            .then(|| json!({ "seLinuxOptions": container_domain() })),
    })?;
    named.make_addon(full, &[manifest]).map(Some)
}

/// The agent's variables: sorted those that the spec may change, then where it runs.
fn variables(full: &FullSpec, plugin: &AmazonVpc) -> Vec<Value> {
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut all = BTreeMap::from(settings);
    all.extend(plugin.variables.clone());
    let owner = names::ownership_tag(&full.name);
    let tags = json!({ CLUSTER_TAG: full.name, owner: "owned" });
    let forced = [tags.to_string(), "true".to_owned(), "false".to_owned()];
    all.extend(FORCED.map(str::to_owned).into_iter().zip(forced));
    let of_spec = all.into_iter();
    let of_spec = of_spec.map(|(name, value)| json!({ "name": name, "value": value }));
    let field = |name: &str, path: &str| {
        let from = json!({ "fieldRef": { "apiVersion": "v1", "fieldPath": path } });
        json!({ "name": name, "valueFrom": from })
    };
    let places = [
        json!({ "name": "VPC_CNI_VERSION", "value": VERSION }),
        field("MY_NODE_NAME", "spec.nodeName"),
        field("MY_POD_NAME", "metadata.name"),
        json!({ "name": "CLUSTER_NAME", "value": full.name }),
    ];
    // Who has credentials from elsewhere than the instance takes the region from elsewhere too.
    let region = full
        .addons_have_roles()
        .then(|| json!({ "name": "AWS_REGION", "value": full.placement.region }));
    of_spec.chain(places).chain(region).collect()
}

/// Network interfaces and their addresses: on instances of the cluster, and of interfaces with its tag, which the plugin gives its own
/// (`ADDITIONAL_ENI_TAGS`) and launch templates the first of each instance. As the plugin's
/// [narrow policy](https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/iam-policy.md).
pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    if full.addons.amazon_vpc.is_none() {
        return Vec::new();
    }
    let arn = |kind: &str| format!("arn:{}:ec2:*:*:{kind}/*", full.placement.partition);
    let create = "ec2:CreateNetworkInterface";
    let modify = "ec2:ModifyNetworkInterfaceAttribute";
    let mut all = tag_own(full, &["network-interface"], &["CreateNetworkInterface"]).to_vec();
    all.extend([
        create_own(full, [create]).on_each([arn("network-interface")]),
        // These can be the user's, without the cluster's tag.
        Statement::allow([create]).on_each([arn("security-group"), arn("subnet")]),
        Statement::allow([modify]).on_each([arn("security-group")]),
        change_own(
            full,
            [
                "ec2:AssignPrivateIpAddresses",
                "ec2:DeleteNetworkInterface",
                "ec2:UnassignPrivateIpAddresses",
            ],
        )
        .on_each([arn("network-interface")]),
        change_own(
            full,
            [
                "ec2:AttachNetworkInterface",
                "ec2:DetachNetworkInterface",
                modify,
            ],
        )
        .on_each([arn("instance"), arn("network-interface")]),
        Statement::allow([
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeTags",
        ])
        .on_all(),
    ]);
    all
}
