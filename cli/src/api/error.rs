//! Explains failed calls of the cluster's API: the reason, from the errors of the client, and the next step.

use super::ApiServer;
use fleet::{ApiError, ApiErrorReason};
use node::names::{PLACEHOLDER, PLACEHOLDER_V6};
use std::error::Error;
use std::io;
use std::net::IpAddr;

/// The cluster does not have an AWS resource that the API needs yet, for example its load balancer.
pub fn missing_resource(cluster: &str, lacks: &str) -> ApiError {
    ApiError {
        reason: ApiErrorReason::NotMade,
        message: format!("the cluster has no {lacks} yet"),
        next: format!("create it: kctl update {cluster} --yes"),
    }
}

/// The API's name does not resolve.
pub(super) fn no_name(server: &ApiServer, cause: &str) -> ApiError {
    let next = if server.certified_as.is_some() {
        "a new load balancer's name takes a few minutes: wait, or check whether this computer can resolve names of AWS"
    } else {
        "check that the domain is delegated to the cluster's hosted zone; names of a private zone resolve only in its VPCs"
    };
    ApiError {
        reason: ApiErrorReason::NoName,
        message: format!("{} has no address: {cause}", server.host),
        next: next.to_owned(),
    }
}

/// An error if all of these addresses are placeholders; `None` if one is usable.
pub(super) fn unusable_addresses(
    server: &ApiServer,
    cluster: &str,
    addresses: &[IpAddr],
) -> Option<ApiError> {
    let placeholder =
        |address: &IpAddr| [PLACEHOLDER, PLACEHOLDER_V6].contains(&address.to_string().as_str());
    if addresses.is_empty() {
        return Some(no_name(server, "the answer is empty"));
    }
    addresses.iter().all(placeholder).then(|| ApiError {
        reason: ApiErrorReason::Placeholder,
        message: format!(
            "{} still has the address that stands for \"not yet\": no control plane has published its own",
            server.host
        ),
        next: format!("see the progress of the control planes: kctl get instances {cluster}"),
    })
}

/// Explains an error of the client.
pub fn read_client_error(server: &ApiServer, cluster: &str, error: &kube::Error) -> ApiError {
    if let kube::Error::Api(status) = error {
        return answered_with(server, cluster, status);
    }
    let causes = error_causes(error);
    let last = if causes.iter().any(|cause| is_timeout(*cause)) {
        "no answer in time, as if a firewall dropped the packets".to_owned()
    } else {
        causes.last().map_or(String::new(), ToString::to_string)
    };
    if causes.iter().any(|cause| is_certificate(*cause)) {
        return ApiError {
            reason: ApiErrorReason::Certificate,
            message: format!(
                "{} answers with a certificate that is not this cluster's: {last}",
                server.url
            ),
            next: "check whether a proxy on the way terminates TLS, and whether the name points to another cluster".to_owned(),
        };
    }
    ApiError {
        reason: ApiErrorReason::NoAnswer,
        message: format!("no answer from {}: {last}", server.url),
        next: format!(
            "a new control plane takes a few minutes: kctl get instances {cluster}; if it has joined, check that spec.kubernetesApiAccess allows your address"
        ),
    }
}

/// Explains an error status of the API.
fn answered_with(server: &ApiServer, cluster: &str, status: &kube::core::Status) -> ApiError {
    let message = format!("{} answers {}: {}", server.url, status.code, status.message);
    let (reason, next) = match status.code {
        401 | 403 => (
            ApiErrorReason::Denied,
            "it does not trust the kubernetes-ca of this state store: check that --state is the store from which the cluster was created".to_owned(),
        ),
        _ => (
            ApiErrorReason::Failing,
            format!("see the control planes: kctl get instances {cluster}, and the logs of kube-apiserver and etcd on them"),
        ),
    };
    ApiError {
        reason,
        message: message.trim_end_matches([' ', ':']).to_owned(),
        next,
    }
}

/// An error and all its causes. The error inside an I/O error counts as a cause, which `source` skips.
fn error_causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut all = vec![error];
    let mut next: Option<&(dyn Error + 'static)> = next_cause(error);
    while let Some(cause) = next {
        all.push(cause);
        next = next_cause(cause);
    }
    all
}

fn next_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match wrapped {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn is_certificate(cause: &(dyn Error + 'static)) -> bool {
    matches!(
        cause.downcast_ref::<rustls::Error>(),
        Some(rustls::Error::InvalidCertificate(_))
    )
}

fn is_timeout(cause: &(dyn Error + 'static)) -> bool {
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::TimedOut) || cause.is::<tokio::time::error::Elapsed>()
}
