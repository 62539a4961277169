//! Why the API cannot be asked, in words, with what to do about it.

use super::Server;
use node::names::{PLACEHOLDER, PLACEHOLDER_V6};
use serde::Serialize;
use std::error::Error;
use std::net::IpAddr;
use std::{fmt, io};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// What would answer has not been made.
    NotMade,
    /// Its name has no address.
    NoName,
    /// Its name has the address that stands for "not yet".
    Placeholder,
    /// Nobody answers at its address.
    NoAnswer,
    /// Who answers has no certificate of this cluster's.
    Certificate,
    /// It does not take this cluster's administrator for one.
    Denied,
    /// It answers with an error.
    Failing,
}

/// Why the API cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// What is wrong.
    pub reason: Reason,
    /// In words.
    pub message: String,
    /// What to do about it.
    pub next: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Trouble {
    /// There is no such cluster in AWS, or not all of it.
    pub fn not_made(cluster: &str, lacks: &str) -> Self {
        Self {
            reason: Reason::NotMade,
            message: format!("the cluster has no {lacks} yet"),
            next: format!("make it: kctl update {cluster} --yes"),
        }
    }

    /// Its name has no address.
    pub(super) fn no_name(server: &Server, cause: &str) -> Self {
        let next = if server.certified_as.is_some() {
            "a new load balancer's name takes a few minutes: wait, or look whether this machine can look up names of AWS"
        } else {
            "look whether the domain is delegated to the cluster's hosted zone, and whether a private zone can be seen from here"
        };
        Self {
            reason: Reason::NoName,
            message: format!("{} has no address: {cause}", server.host),
            next: next.to_owned(),
        }
    }

    /// What is wrong with addresses, before any of them is dialed.
    pub(super) fn of_addresses(
        server: &Server,
        cluster: &str,
        addresses: &[IpAddr],
    ) -> Option<Self> {
        let placeholder = |address: &IpAddr| {
            [PLACEHOLDER, PLACEHOLDER_V6].contains(&address.to_string().as_str())
        };
        if addresses.is_empty() {
            return Some(Self::no_name(server, "the answer is empty"));
        }
        addresses.iter().all(placeholder).then(|| Self {
            reason: Reason::Placeholder,
            message: format!(
                "{} still has the address that stands for \"not yet\": no control plane has published its own",
                server.host
            ),
            next: format!("see how far the control planes are: kctl get instances {cluster}"),
        })
    }

    /// What an error of the client means.
    pub(super) fn of(server: &Server, cluster: &str, error: &kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            return Self::answered(server, cluster, status);
        }
        let causes = causes(error);
        let last = if causes.iter().any(|cause| is_late(*cause)) {
            "no answer in time, as if something dropped what is sent there".to_owned()
        } else {
            causes.last().map_or(String::new(), ToString::to_string)
        };
        if causes.iter().any(|cause| is_certificate(*cause)) {
            return Self {
                reason: Reason::Certificate,
                message: format!(
                    "{} answers with a certificate that is not this cluster's: {last}",
                    server.url
                ),
                next: "look whether something between here and there ends TLS, or whether the name still points to another cluster".to_owned(),
            };
        }
        Self {
            reason: Reason::NoAnswer,
            message: format!("nobody answers at {}: {last}", server.url),
            next: format!(
                "a new control plane takes a few minutes: kctl get instances {cluster}; if it has joined, look whether spec.kubernetesApiAccess lets this machine in"
            ),
        }
    }

    /// What an error that the API answered with means.
    fn answered(server: &Server, cluster: &str, status: &kube::core::Status) -> Self {
        let said = format!("{} answers {}: {}", server.url, status.code, status.message);
        let (reason, next) = match status.code {
            401 | 403 => (
                Reason::Denied,
                "it does not know kubernetes-ca of this state store: look whether --state is the store that made this cluster".to_owned(),
            ),
            _ => (
                Reason::Failing,
                format!("look at the control planes: kctl get instances {cluster}, and there at kube-apiserver's and etcd's log"),
            ),
        };
        Self {
            reason,
            message: said.trim_end_matches([' ', ':']).to_owned(),
            next,
        }
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
