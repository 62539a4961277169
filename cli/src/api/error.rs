//! Why the API could not be asked, from the errors of its client, with what to do about it.

use super::Server;
use fleet::{ApiError, ApiErrorReason};
use node::names::{PLACEHOLDER, PLACEHOLDER_V6};
use std::error::Error;
use std::io;
use std::net::IpAddr;

/// The cluster lacks something in AWS that the API needs: `load balancer for its API`.
pub fn not_made(cluster: &str, lacks: &str) -> ApiError {
    ApiError {
        reason: ApiErrorReason::NotMade,
        message: format!("the cluster has no {lacks} yet"),
        next: format!("create it: kctl update {cluster} --yes"),
    }
}

/// The API's name does not resolve.
pub(super) fn no_name(server: &Server, cause: &str) -> ApiError {
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

/// Why none of these addresses can be the API's; `None` if one can.
pub(super) fn unusable_addresses(
    server: &Server,
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

/// The meaning of an error of the client.
pub(super) fn read_client_error(server: &Server, cluster: &str, error: &kube::Error) -> ApiError {
    if let kube::Error::Api(status) = error {
        return answered_with(server, cluster, status);
    }
    let causes = causes(error);
    let last = if causes.iter().any(|cause| is_late(*cause)) {
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
        message: format!("nobody answers at {}: {last}", server.url),
        next: format!(
            "a new control plane takes a few minutes: kctl get instances {cluster}; if it has joined, check that spec.kubernetesApiAccess allows your address"
        ),
    }
}

/// The meaning of a status that the API answered with.
fn answered_with(server: &Server, cluster: &str, status: &kube::core::Status) -> ApiError {
    let said = format!("{} answers {}: {}", server.url, status.code, status.message);
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
        message: said.trim_end_matches([' ', ':']).to_owned(),
        next,
    }
}

/// An error and everything below it. What an I/O error wraps is one of its causes, which `source` skips.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut all = vec![error];
    let mut next: Option<&(dyn Error + 'static)> = below(error);
    while let Some(cause) = next {
        all.push(cause);
        next = below(cause);
    }
    all
}

fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
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

fn is_late(cause: &(dyn Error + 'static)) -> bool {
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::TimedOut) || cause.is::<tokio::time::error::Elapsed>()
}
