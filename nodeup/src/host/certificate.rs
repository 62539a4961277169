//! Certificates of this machine: looked at, and issued anew where they are not as wanted. Keys leave this file only
//! towards the disk.

use super::Context;
use super::failure::{file_failure, invalid, with_causes};
use super::judge::{Wanted, judge};
use engine::Failure;
use host::{Error, Host};
use node::bootstrap;
use node::host::{Certificate, CertificateStorage, Standing};
use node::pki::{self, Issued, KUBERNETES_CA, SystemKeys, trust_bundle};

/// What the link of kubelet's certificate points to at first; kubelet names its own after the time.
const FIRST: &str = "kubelet-client-first.pem";

/// How the certificate stands; `None`: there is none.
pub(super) fn observe(
    host: &Host,
    context: &Context,
    want: &Certificate,
) -> Result<Option<Certificate>, Failure> {
    let failed = file_failure("reading", want.path());
    let text = |path: &str| -> Result<Option<String>, Failure> {
        let bytes = host.read(path).map_err(&failed)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let standing = match &want.storage {
        CertificateStorage::Pair { certificate, key } => {
            let (Some(certificate), Some(key)) = (text(certificate)?, text(key)?) else {
                return Ok(None);
            };
            standing(context, want, &certificate, &key)
        }
        CertificateStorage::Rotating { link } => {
            let Some(pem) = text(link)? else {
                return Ok(None);
            };
            let standing = standing(context, want, &pem, &pem);
            let linked = host.link_target(link).map_err(&failed)?.is_some();
            if standing == Standing::Good && !linked {
                Standing::NotALink
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

fn standing(context: &Context, want: &Certificate, certificate: &str, key: &str) -> Standing {
    let keyset = context.signer.keysets.get(&want.signer);
    let trusted = match keyset {
        Some(keyset) => trust_bundle(keyset),
        None if want.signer == KUBERNETES_CA => context.trust_bundle.clone(),
        None => String::new(),
    };
    judge(
        &Wanted {
            certificate: want,
            trusted: &trusted,
            now: (context.clock)(),
            // kubelet renews its own in time, by its own rule.
            until_it_ends: matches!(want.storage, CertificateStorage::Rotating { .. }),
        },
        certificate,
        key,
    )
}

/// Puts a new certificate and its key in their places.
pub(super) fn put(
    host: &Host,
    context: &Context,
    want: &Certificate,
    have: Option<&Certificate>,
) -> Result<(), Failure> {
    if have.is_some_and(|have| have.standing == Standing::NotALink) {
        return relink(host, want).map_err(file_failure("linking", want.path()));
    }
    let issued = issue(context, want)?;
    let standing = standing(context, want, &issued.certificate, issued.key.reveal());
    if standing != Standing::Good {
        let message = format!(
            "what {} signed is not as it should be: {standing:?}",
            want.signer
        );
        let mut failure = invalid(&format!("issuing {}", want.path()), &message);
        failure.hint =
            Some("compare the clocks of this machine and of the control plane".to_owned());
        return Err(failure);
    }
    write(host, want, &issued).map_err(file_failure("writing", want.path()))
}

fn issue(context: &Context, want: &Certificate) -> Result<Issued, Failure> {
    let call = format!("issuing {}", want.path());
    if let Some(keyset) = context.signer.keysets.get(&want.signer) {
        let mut keys = SystemKeys::at((context.clock)());
        let issued = pki::issue(keyset, &want.leaf(), &mut keys);
        return issued.map_err(|error| invalid(&call, &with_causes(&error)));
    }
    let asked = match want.common_name.as_str() {
        "system:kube-proxy" => bootstrap::Certificate::KubeProxy,
        _ => bootstrap::Certificate::Kubelet,
    };
    let joined = context.signer.joined.get(&asked).cloned();
    joined.ok_or_else(|| {
        invalid(
            &call,
            &format!(
                "this machine has neither the key of {} nor a certificate from joining",
                want.signer
            ),
        )
    })
}

/// The key and its certificate are both whole beside their places before either is in it; a machine that dies between
/// the two renamings has a pair that does not fit, which the next look sees.
fn write(host: &Host, want: &Certificate, issued: &Issued) -> Result<(), Error> {
    match &want.storage {
        CertificateStorage::Pair { certificate, key } => {
            let mut staged = host.stage(certificate, 0o644, Some("root:root"))?;
            staged.append(issued.certificate.as_bytes())?;
            host.write(
                key,
                issued.key.reveal().as_bytes(),
                0o400,
                Some("root:root"),
            )?;
            staged.commit(host)
        }
        CertificateStorage::Rotating { link } => {
            let both = format!("{}{}", issued.certificate, issued.key.reveal());
            host.write(&beside(link), both.as_bytes(), 0o600, Some("root:root"))?;
            host.make_link(link, FIRST)
        }
    }
}

/// A plain file where kubelet wants a link: its content moves beside.
fn relink(host: &Host, want: &Certificate) -> Result<(), Error> {
    let link = want.path();
    let content = host.read(link)?.unwrap_or_default();
    host.write(&beside(link), &content, 0o600, Some("root:root"))?;
    host.make_link(link, FIRST)
}

fn beside(link: &str) -> String {
    let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{folder}/{FIRST}")
}
