//! cert-manager: issues and renews certificates that are objects of Kubernetes.

use super::crds::{compressed_crds, decompress};
use super::manifest::AddonName;
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use node::addons::ADDON_LABEL;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use templates::Template;

const NAME: &str = "certmanager.io";
pub const VERSION: &str = "v1.19.5";
const REPOSITORY: &str = "quay.io/jetstack/cert-manager";

/// Settings of cert-manager: `spec.certManager`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertManager {
    /// Image of the controller; `None`: that of the addon's version.
    pub image: Option<String>,
    /// The ClusterIssuer of Ingresses that name no issuer.
    pub default_issuer: Option<String>,
    /// Name servers of the controller; none: those of the cluster.
    pub nameservers: Vec<String>,
    /// Hosted zones in which it may answer challenges.
    pub hosted_zone_ids: Vec<String>,
    pub feature_gates: BTreeMap<String, bool>,
}

#[derive(Serialize)]
struct Access {
    version: String,
    cainjector: Value,
    controller: Value,
    webhook: Value,
    signing: Value,
}

impl Template for Access {
    const NAME: &'static str = "cert_manager/rbac.yaml.hbs";
    const SOURCE: &'static str = include_str!("cert_manager/rbac.yaml.hbs");
}

#[derive(Serialize)]
struct Manifest {
    version: String,
    cainjector: Value,
    controller: Value,
    webhook: Value,
    image: String,
    solver_image: String,
    arguments: Vec<String>,
    region: String,
    dns_config: Option<Value>,
    dns_policy: Option<String>,
    host_network: Option<bool>,
    strategy: Option<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "cert_manager/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("cert_manager/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(manager) = &full.addons.cert_manager else {
        return Ok(None);
    };
    let named = AddonName {
        name: NAME,
        id: "k8s-1.16",
        selector: (ADDON_LABEL, NAME),
    };
    let rendered = [
        decompress(named, compressed_crds!("cert_manager"))?,
        named.render_template(&make_access())?,
        named.render_template(&make_manifest(full, manager))?,
    ];
    named.make_addon(full, &rendered).map(Some)
}

fn make_access() -> Access {
    Access {
        version: VERSION.to_owned(),
        cainjector: labels("cainjector", "cainjector"),
        controller: labels("cert-manager", "controller"),
        webhook: labels("webhook", "webhook"),
        signing: labels("cert-manager", "cert-manager"),
    }
}

fn make_manifest(full: &FullSpec, manager: &CertManager) -> Manifest {
    let image = manager.image.clone();
    let own = &manager.nameservers;
    // Pods that are not on the network of the instance do not reach its metadata service, which has the role's credentials. A service
    // account's role needs none.
    let calls_aws = !manager.hosted_zone_ids.is_empty() && !full.addons_have_roles();
    let dns_policy = match (own.is_empty(), calls_aws) {
        (false, _) => Some("None"),
        (true, true) => Some("ClusterFirstWithHostNet"),
        (true, false) => None,
    };
    Manifest {
        version: VERSION.to_owned(),
        cainjector: labels("cainjector", "cainjector"),
        controller: labels("cert-manager", "controller"),
        webhook: labels("webhook", "webhook"),
        image: image.unwrap_or_else(|| format!("{REPOSITORY}-controller:{VERSION}")),
        // It is started by the controller, and so not an image of the manifest.
        solver_image: full
            .images
            .remap(&format!("{REPOSITORY}-acmesolver:{VERSION}")),
        arguments: arguments(manager),
        region: full.placement.region.clone(),
        dns_config: (!own.is_empty()).then(|| json!({ "nameservers": own })),
        dns_policy: dns_policy.map(str::to_owned),
        host_network: calls_aws.then_some(true),
        // Two pods would want the same ports of a single control plane.
        strategy: calls_aws.then(|| {
            json!({
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            })
        }),
    }
}

fn labels(name: &str, component: &str) -> Value {
    json!({
        "app": name,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/instance": "cert-manager",
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/version": VERSION,
    })
}

/// Arguments of the controller that follow from the spec.
fn arguments(manager: &CertManager) -> Vec<String> {
    let issuer = manager.default_issuer.iter();
    let issuer = issuer.flat_map(|issuer| {
        [
            format!("--default-issuer-name={issuer}"),
            "--default-issuer-kind=ClusterIssuer".to_owned(),
            "--default-issuer-group=cert-manager.io".to_owned(),
        ]
    });
    let gates = manager.feature_gates.iter();
    let gates = gates.map(|(gate, on)| format!("--feature-gates={gate}={on}"));
    issuer.chain(gates).collect()
}

/// Answering DNS challenges in the zones of the spec, as in kOps.
pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    let manager = full.addons.cert_manager.as_ref();
    let zones = manager.map_or(&[][..], |manager| &manager.hosted_zone_ids);
    if zones.is_empty() {
        return Vec::new();
    }
    let partition = &full.placement.partition;
    let zones = zones.iter();
    let zones = zones.map(|zone| format!("arn:{partition}:route53:::hostedzone/{zone}"));
    let zones: Vec<String> = zones.collect();
    let route53 = |field: &str| format!("route53:ChangeResourceRecordSets{field}");
    vec![
        Statement::allow(["route53:ListResourceRecordSets"]).on_each(&zones),
        Statement::allow(["route53:ChangeResourceRecordSets"])
            .on_each(&zones)
            .when(
                "ForAllValues:StringLike",
                &route53("NormalizedRecordNames"),
                json!(["_acme-challenge.*"]),
            )
            .when(
                "ForAllValues:StringEquals",
                &route53("RecordTypes"),
                json!(["TXT"]),
            ),
        Statement::allow(["route53:GetChange"])
            .on_each([format!("arn:{partition}:route53:::change/*")]),
        Statement::allow(["route53:ListHostedZonesByName"]).on_all(),
    ]
}
