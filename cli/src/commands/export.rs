//! `kctl export kubeconfig`: how to reach a cluster, with an administrator's certificate that expires.

use super::look::{Looked, aws_error, look};
use super::scope::{Place, scope};
use super::session::Session;
use crate::args::{ExportKubeconfig, KubeconfigCredentials};
use crate::env;
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::kubeconfig;
use crate::state::keyset;
use aws::AwsWorld;
use model::cloud::Cloud;
use model::engine::{Refs, World};
use model::full::{DnsKind, FullSpec};
use model::pki::{
    ClientCredentials, KUBERNETES_CA, Kubeconfig, Leaf, SystemKeys, Usage, issue, trust_bundle,
};
use model::read::ReadOptions;
use time::{Duration, OffsetDateTime};

/// How long an administrator's certificate is good for; kOps'.
const DEFAULT_VALIDITY: &str = "18h";

/// Exports the kubeconfig of a cluster.
pub async fn run(
    options: &ExportKubeconfig,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let name = session.cluster(options.cluster.as_deref()).await?;
    let looked = look(
        &name,
        ReadOptions {
            allow_unsupported: true,
        },
        session,
    )
    .await?;
    let assembled = looked.assemble()?;
    let full = &assembled.expanded.full;
    let place = Place {
        account: looked.target.account.clone(),
        partition: looked.partition.clone(),
        region: looked.target.region.clone(),
        hosted_zone: full.dns.zone.as_ref().map(|zone| zone.id.clone()),
        generation: String::new(),
    };
    let desired = assembled.desired.clone();
    let scope = scope(
        &assembled.expanded.cluster,
        place,
        desired.clone(),
        false,
        looked.found.source(),
    );
    let world = AwsWorld::new(looked.clients.clone(), session.store.clone(), scope);
    let server = server(full, &desired, &world, &options.credentials).await?;
    write(&looked, &server, &options.credentials, session).await?;
    Ok(Outcome::Fine)
}

/// The API's URL: a DNS name, or the load balancer's where names are published nowhere.
pub async fn server(
    full: &FullSpec,
    desired: &[Cloud],
    world: &AwsWorld,
    credentials: &KubeconfigCredentials,
) -> Result<String, CommandError> {
    // With a certificate of the user's on 443, client certificates are understood on 8443 only.
    let tls = full
        .api
        .load_balancer
        .as_ref()
        .is_some_and(|balancer| balancer.ssl_certificate.is_some());
    let port = if tls && !credentials.internal {
        ":8443"
    } else {
        ""
    };
    if full.dns.kind != DnsKind::None {
        let name = if credentials.internal {
            &full.dns.api_internal_name
        } else {
            &full.dns.api_public_name
        };
        return Ok(format!("https://{name}{port}"));
    }
    let balancer = desired.iter().find(|object| matches!(object, Cloud::Lb(lb) if lb.logical_name == model::names::api_load_balancer(&full.name)));
    let missing = || {
        CommandError::said(
            Kind::Precondition,
            "the API has no load balancer yet",
            format!("make the cluster first: kctl update {} --yes", full.name),
        )
    };
    let found = world
        .find(balancer.ok_or_else(missing)?, &Refs::default())
        .await
        .map_err(aws_error)?;
    let name = found
        .and_then(|found| found.attrs.get("dns_name").cloned())
        .ok_or_else(missing)?;
    Ok(format!("https://{name}{port}"))
}

/// Issues a certificate and writes the kubeconfig.
pub async fn write(
    looked: &Looked,
    server: &str,
    credentials: &KubeconfigCredentials,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let name = &looked.target.cluster;
    let said = credentials.admin.as_deref().unwrap_or(DEFAULT_VALIDITY);
    let validity = duration(said)?;
    let authority = keyset(&session.store, &looked.state.keys, KUBERNETES_CA).await?;
    let user = env::value(env::USER).unwrap_or_else(|| "admin".to_owned());
    let leaf = Leaf {
        common_name: format!("kubecfg-{user}"),
        organization: Some("system:masters".to_owned()),
        usage: Usage::Client,
        names: Vec::new(),
        validity,
    };
    const AGAIN: &str = "try again, or restore the keyset kubernetes-ca from the bucket's versions";
    let issued = issue(
        &authority,
        &leaf,
        &mut SystemKeys::at(OffsetDateTime::now_utc()),
    );
    let issued = issued.failed("could not issue a certificate", AGAIN)?;
    let config = model::pki::kubeconfig(&Kubeconfig {
        name: name.clone(),
        server: server.to_owned(),
        trust_bundle: Some(trust_bundle(&authority)),
        credentials: Some(ClientCredentials::Inside {
            certificate: issued.certificate,
            key: issued.key,
        }),
    });
    let config = config.failed("could not make the kubeconfig", AGAIN)?;
    const OTHER: &str = "choose another file with --kubeconfig";
    let path = kubeconfig::path(credentials.kubeconfig.as_deref())
        .usage("no kubeconfig was written", OTHER)?;
    kubeconfig::write(&path, config.reveal()).failed("no kubeconfig was written", OTHER)?;
    session
        .shell
        .done(&format!("wrote {} for {server}", path.display()));
    session.shell.hint(&format!(
        "its certificate is good for {said}: `kctl export kubeconfig {name}` writes a new one"
    ));
    Ok(())
}

/// A duration as Go writes it: `18h`, `1h30m`, `90s`.
fn duration(text: &str) -> Result<Duration, CommandError> {
    let wrong = || {
        CommandError::usage(
            format!("--admin={text} is not a duration"),
            "write for example --admin=18h or --admin=1h30m",
        )
    };
    let (mut total, mut digits) = (0_i64, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return Err(wrong()),
        };
        let number: i64 = digits.parse().map_err(|_| wrong())?;
        total = number
            .checked_mul(unit)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(wrong)?;
        digits.clear();
    }
    if total <= 0 || !digits.is_empty() {
        return Err(wrong());
    }
    Ok(Duration::seconds(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos() {
        assert_eq!(duration("18h").unwrap(), Duration::hours(18));
        assert_eq!(duration("1h30m").unwrap(), Duration::minutes(90));
        for wrong in ["", "18", "h", "1d", "-1h", "0s", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
