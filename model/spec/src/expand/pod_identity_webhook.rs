//! `spec.podIdentityWebhook`.

use crate::api::addons::PodIdentityWebhookSpec;
use crate::api::cluster::ClusterSpec;
use full::PodIdentityWebhook;

/// The pod identity webhook of a completed spec; `None` if it is off.
pub(super) fn full_pod_identity_webhook(spec: &ClusterSpec) -> Option<PodIdentityWebhook> {
    let PodIdentityWebhookSpec { enabled, replicas } = spec.pod_identity_webhook.clone()?;
    (enabled == Some(true)).then_some(PodIdentityWebhook { replicas })
}
