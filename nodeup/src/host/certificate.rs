//! Observes the instance's certificates and issues those that are not as desired. Keys leave this module only towards the disk.

use super::HostContext;
use super::certificate_state::{ExpectedCertificate, judge_certificate};
use super::failure::{file_failure, permanent_failure};
use crate::lock::lock_ignoring_poison;
use engine::Failure;
use host::{Error, Host};
use node::bootstrap;
use node::host::{Certificate, CertificateState, CertificateStorage};
use node::pki::{self, IssuedCertificate, KUBERNETES_CA, SystemKeys, trust_bundle};

/// First target of the link to kubelet's certificate. kubelet names later ones after the time.
const FIRST: &str = "kubelet-client-first.pem";

/// The certificate with its observed state; `None` if it does not exist.
pub(super) fn observe_certificate(
    host: &Host,
    context: &HostContext,
    want: &Certificate,
) -> Result<Option<Certificate>, Failure> {
    let failed = file_failure("reading", want.path());
    let text = |path: &str| -> Result<Option<String>, Failure> {
        let bytes = host.read_bytes(path).map_err(&failed)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let standing = match &want.storage {
        CertificateStorage::Pair {
            certificate, key, ..
        } => {
            let (Some(certificate), Some(key)) = (text(certificate)?, text(key)?) else {
                return Ok(None);
            };
            let standing = certificate_state(context, want, &certificate, &key);
            if is_forced(context, want, standing) {
                CertificateState::Forced
            } else {
                standing
            }
        }
        CertificateStorage::Rotating { link } => {
            let Some(pem) = text(link)? else {
                return Ok(None);
            };
            let standing = certificate_state(context, want, &pem, &pem);
            let linked = host.link_target(link).map_err(&failed)?.is_some();
            if standing == CertificateState::Good && !linked {
                CertificateState::NotALink
            } else {
                standing
            }
        }
    };
    Ok(Some(Certificate {
        standing,
        ..want.clone()
    }))
}

fn certificate_state(
    context: &HostContext,
    want: &Certificate,
    certificate: &str,
    key: &str,
) -> CertificateState {
    let keyset = context.signer.keysets.get(&want.signer);
    let trusted = match keyset {
        Some(keyset) => trust_bundle(keyset),
        None if want.signer == KUBERNETES_CA => context.trust_bundle.clone(),
        None => String::new(),
    };
    judge_certificate(
        &ExpectedCertificate {
            certificate: want,
            trusted: &trusted,
            now: (context.clock)(),
            // kubelet renews its certificate itself.
            until_it_ends: matches!(want.storage, CertificateStorage::Rotating { .. }),
        },
        certificate,
        key,
    )
}

/// True if a certificate that could stay is to be issued again. What this run has issued stays, so that observing it afterwards finds
/// nothing left to do.
fn is_forced(context: &HostContext, want: &Certificate, standing: CertificateState) -> bool {
    let usable = matches!(
        standing,
        CertificateState::Good | CertificateState::Expiring
    );
    let forced = context.forced.as_ref();
    usable && forced.is_some_and(|done| !lock_ignoring_poison(done).contains(want.path()))
}

/// Installs a new certificate and its key.
pub(super) fn put_certificate(
    host: &Host,
    context: &HostContext,
    want: &Certificate,
    have: Option<&Certificate>,
) -> Result<(), Failure> {
    if have.is_some_and(|have| have.standing == CertificateState::NotALink) {
        return replace_by_link(host, want).map_err(file_failure("linking", want.path()));
    }
    let issued = issue_or_take_joined(context, want)?;
    let standing = certificate_state(context, want, &issued.certificate, issued.key.reveal());
    if standing != CertificateState::Good {
        let message = format!(
            "the certificate that {} signed is not as desired: {standing:?}",
            want.signer
        );
        let mut failure = permanent_failure(&format!("issuing {}", want.path()), &message);
        failure.hint = Some("compare the clocks of this instance and the control plane".to_owned());
        return Err(failure);
    }
    write_pair(host, want, &issued).map_err(file_failure("writing", want.path()))?;
    if let Some(done) = &context.forced {
        lock_ignoring_poison(done).insert(want.path().to_owned());
    }
    Ok(())
}

fn issue_or_take_joined(
    context: &HostContext,
    want: &Certificate,
) -> Result<IssuedCertificate, Failure> {
    let call = format!("issuing {}", want.path());
    if let Some(keyset) = context.signer.keysets.get(&want.signer) {
        let mut keys = SystemKeys::issuing_at((context.clock)());
        let issued = pki::issue_certificate(keyset, &want.leaf_to_issue(), &mut keys);
        return issued.map_err(|error| permanent_failure(&call, &engine::error_chain(&error)));
    }
    let asked = match want.common_name.as_str() {
        "system:kube-proxy" => bootstrap::CertificateKind::KubeProxy,
        _ => bootstrap::CertificateKind::Kubelet,
    };
    let joined = context.signer.joined.get(&asked).cloned();
    joined.ok_or_else(|| {
        permanent_failure(
            &call,
            &format!(
                "this instance has neither the key of {} nor a certificate from joining",
                want.signer
            ),
        )
    })
}

/// Both files are complete under temporary names before either is renamed. If the instance dies between the two renames, key and
/// certificate do not match, which the next observation detects.
fn write_pair(host: &Host, want: &Certificate, issued: &IssuedCertificate) -> Result<(), Error> {
    match &want.storage {
        CertificateStorage::Pair {
            certificate,
            key,
            owner,
        } => {
            let owner = owner.map_or("root:root".to_owned(), |id| format!("{id}:{id}"));
            let mut staged = host.stage_file(certificate, 0o644, Some(&owner))?;
            staged.append(issued.certificate.as_bytes())?;
            host.write_file(key, issued.key.reveal().as_bytes(), 0o400, Some(&owner))?;
            staged.commit(host)
        }
        CertificateStorage::Rotating { link } => {
            let both = format!("{}{}", issued.certificate, issued.key.reveal());
            host.write_file(
                &first_target_path(link),
                both.as_bytes(),
                0o600,
                Some("root:root"),
            )?;
            host.make_link(link, FIRST)
        }
    }
}

/// Replaces a plain file by a link to a file with its content, as kubelet needs it.
fn replace_by_link(host: &Host, want: &Certificate) -> Result<(), Error> {
    let link = want.path();
    let content = host.read_bytes(link)?.unwrap_or_default();
    host.write_file(&first_target_path(link), &content, 0o600, Some("root:root"))?;
    host.make_link(link, FIRST)
}

fn first_target_path(link: &str) -> String {
    let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{folder}/{FIRST}")
}
