//! external-dns: publishes the names of Services, Ingresses and pods in the cluster's hosted zone.

use super::control_planes::{needs_host_network, tolerations};
use super::manifest::AddonName;
use super::{Addon, Error};
use crate::iam::{Statement, published_names};
use crate::{FullSpec, Zone};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use templates::Template;

const VERSION: &str = "v0.14.1";

/// Settings of external-dns: `spec.externalDns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalDns {
    /// It publishes names of Ingresses too.
    pub watch_ingress: bool,
    /// The one namespace in which it looks; `None`: all.
    pub watch_namespace: Option<String>,
    /// Priority class of its pod.
    pub priority_class: String,
}

#[derive(Serialize)]
struct Manifest {
    version: &'static str,
    arguments: Vec<String>,
    region: String,
    priority_class: String,
    host_network: Option<bool>,
    tolerations: Vec<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "external_dns/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("external_dns/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some((dns, zone)) = wanted(full) else {
        return Ok(None);
    };
    let named = AddonName::new("external-dns.addons.k8s.io", "k8s-1.19");
    let manifest = named.render_template(&Manifest {
        version: VERSION,
        arguments: arguments(full, dns, zone),
        region: full.placement.region.clone(),
        priority_class: dns.priority_class.clone(),
        host_network: needs_host_network(full),
        tolerations: tolerations(full),
    })?;
    named.make_addon(full, &[manifest]).map(Some)
}

/// Its settings and the zone of its records; `None`: there is no external-dns.
fn wanted(full: &FullSpec) -> Option<(&ExternalDns, &Zone)> {
    Some((full.addons.external_dns.as_ref()?, full.dns.zone.as_ref()?))
}

/// As in kOps; and it leaves alone what protokube publishes. The pods of the API server have these names in annotations that it reads, and
/// it would publish them whether or not the API server is ready.
fn arguments(full: &FullSpec, dns: &ExternalDns, zone: &Zone) -> Vec<String> {
    let given = |wanted: bool, argument: &str| wanted.then(|| argument.to_owned());
    let namespace = dns.watch_namespace.as_ref();
    let published = published_names(full).into_iter();
    ["--provider=aws", "--events"]
        .map(str::to_owned)
        .into_iter()
        .chain(given(dns.watch_ingress, "--source=ingress"))
        .chain(["--source=pod", "--source=service"].map(str::to_owned))
        .chain(["--compatibility=kops-dns-controller", "--registry=txt"].map(str::to_owned))
        .chain([
            format!("--txt-owner-id=kops-{}", full.name),
            format!("--zone-id-filter={}", zone.id),
        ])
        .chain(namespace.map(|namespace| format!("--namespace={namespace}")))
        .chain(published.map(|name| format!("--exclude-domains={name}")))
        .collect()
}

/// Any record of the zone, as in kOps.
pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    let Some((_, zone)) = wanted(full) else {
        return Vec::new();
    };
    let partition = &full.placement.partition;
    let hosted_zone = format!("arn:{partition}:route53:::hostedzone/{}", zone.id);
    vec![
        Statement::allow([
            "route53:ChangeResourceRecordSets",
            "route53:GetHostedZone",
            "route53:ListResourceRecordSets",
        ])
        .on_each([hosted_zone]),
        Statement::allow(["route53:GetChange"])
            .on_each([format!("arn:{partition}:route53:::change/*")]),
        Statement::allow(["route53:ListHostedZones", "route53:ListTagsForResource"]).on_each(["*"]),
    ]
}
