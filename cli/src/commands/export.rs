//! `kctl export kubeconfig`: writes a kubeconfig with a new administrator's certificate.

use super::existing_cluster::ExistingCluster;
use super::session::Session;
use crate::api::{ApiServer, answers_readyz, api_client};
use crate::args::{ApiReach, ExportKubeconfig, KubeconfigCredentials};
use crate::duration;
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::kubeconfig;
use crate::state::store_error;
use futures::future::join_all;
use node::pki::{Keyset, Kubeconfig, trust_bundle};
use std::path::Path;
use std::time::Duration;
use url::Url;

/// Default validity of the certificate, as in kOps.
const DEFAULT_VALIDITY: &str = "18h";

/// How long an address may take to answer before another is taken.
const ANSWER: Duration = Duration::from_secs(5);

/// Exports the kubeconfig of a cluster.
pub async fn run(
    options: &ExportKubeconfig,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    if let (Some(word), Some(_)) = (&options.cluster, &options.credentials.admin)
        && duration::parse(word).is_ok()
    {
        return Err(CommandError::usage_error(
            format!("{word} is how long, not which cluster"),
            format!("--admin={word}"),
        ));
    }
    // Secrets go to where the kubeconfig points.
    session.store.find_caller().await.map_err(store_error)?;
    let name = session.cluster_name(options.cluster.as_deref()).await?;
    let cluster = ExistingCluster::read(&name, session).await?;
    let mut credentials = options.credentials.clone();
    if let Some(answers) = find_answering(&cluster, &credentials.reach, session).await? {
        credentials.reach.api_server = Some(answers.url);
    }
    write_kubeconfig(&cluster, &credentials, session).await?;
    Ok(Outcome::Fine)
}

/// The first of the API's addresses that answers from here, if there is a choice; `None` also if none answers.
async fn find_answering(
    cluster: &ExistingCluster,
    reach: &ApiReach,
    session: &Session<'_>,
) -> Result<Option<ApiServer>, CommandError> {
    // Who names the address, or the internal name, has chosen.
    if reach.internal || reach.api_server.is_some() {
        return Ok(None);
    }
    let servers = cluster.api_servers().await?;
    if servers.len() < 2 {
        return Ok(None);
    }
    let authority = cluster.kubernetes_ca(session).await?;
    let ask = async |server: &ApiServer| {
        let config = cluster.admin_kubeconfig(&authority, server, ANSWER * 12);
        let Ok(config) = config else { return false };
        match api_client(&config).await {
            Ok(client) => answers_readyz(&client).await,
            Err(_) => false,
        }
    };
    Ok(first_answering(servers, ANSWER, ask).await)
}

/// The first of the servers, in their order, that answers within the limit. All are asked at once.
async fn first_answering<S>(
    servers: Vec<S>,
    limit: Duration,
    ask: impl AsyncFn(&S) -> bool,
) -> Option<S> {
    let ask = &ask;
    let asked = servers.into_iter().map(async |server| {
        let asked = tokio::time::timeout(limit, ask(&server)).await;
        asked.is_ok_and(|answers| answers).then_some(server)
    });
    join_all(asked).await.into_iter().flatten().next()
}

/// Replaces the address of a cluster that the user's kubeconfig has, if the API is elsewhere now. A kubeconfig that cannot be read
/// or written is a warning: the update itself is done.
pub async fn follow_address(
    cluster: &ExistingCluster,
    authority: &Keyset,
    file: Option<&Path>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let name = cluster.state.name();
    // Without HOME there is no kubeconfig to follow.
    let Ok(path) = kubeconfig::kubeconfig_path(file) else {
        return Ok(());
    };
    // A file that cannot be read is told below.
    if !kubeconfig::has_cluster(&path, name).unwrap_or(true) {
        return Ok(());
    }
    let Some(server) = cluster.api_server(&ApiReach::default()).await? else {
        return Ok(());
    };
    let config = node::pki::render_kubeconfig(&Kubeconfig {
        name: name.to_owned(),
        server: server.url.clone(),
        tls_server_name: server.certified_as.clone(),
        trust_bundle: Some(trust_bundle(authority)),
        credentials: None,
    });
    let config = config.or_failed("could not make the kubeconfig", "try again")?;
    let api = &cluster.completed.api;
    let is_ours = |address: &str| is_given_by_kctl(address, &api.public_name);
    match kubeconfig::follow_address(&path, config.reveal(), &is_ours) {
        Ok(None) => {}
        Ok(Some(former)) if former == server.url => session.shell.print_done(&format!(
            "{} now trusts the API of {name} by its current authorities; its user stays",
            path.display(),
        )),
        Ok(Some(former)) => session.shell.print_done(&format!(
            "{} now has {} for {name} instead of {former}; its user stays",
            path.display(),
            server.url
        )),
        Err(error) => session.shell.warning(&format!(
            "{name} may have another address or CA than in the kubeconfig: {}: `kctl export kubeconfig {name}` writes it",
            engine::error_chain(&error)
        )),
    }
    Ok(())
}

/// True for addresses that kctl writes by itself: the API's public name, and those of load balancers. Others, such as the
/// internal name or a tunnel's end, are the user's choice.
fn is_given_by_kctl(address: &str, public_name: &str) -> bool {
    let host = Url::parse(address).ok();
    let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
    let balancer = host.contains(".elb.") || host.contains(".elb-");
    let of_aws = host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
    host == public_name || (balancer && of_aws)
}

/// Issues a certificate and writes the kubeconfig.
pub async fn write_kubeconfig(
    cluster: &ExistingCluster,
    credentials: &KubeconfigCredentials,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let name = cluster.state.name();
    let validity_text = credentials.admin.as_deref().unwrap_or(DEFAULT_VALIDITY);
    let wrong = |cause: String| {
        CommandError::usage_error(
            format!("--admin={validity_text}: {cause}"),
            "write for example --admin=18h or --admin=1h30m",
        )
    };
    let validity = duration::parse(validity_text).map_err(wrong)?;
    if validity.is_zero() {
        return Err(wrong("such a certificate would never be good".to_owned()));
    }
    let server = cluster.api_server(&credentials.reach).await?;
    let server = server.ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Precondition,
            "the API has no load balancer yet",
            format!("make the cluster first: kctl update {name} --yes"),
        )
    })?;
    let authority = cluster.kubernetes_ca(session).await?;
    let config = cluster.admin_kubeconfig(&authority, &server, validity)?;
    const OTHER: &str = "choose another file with --kubeconfig";
    let path = kubeconfig::kubeconfig_path(credentials.kubeconfig.as_deref())
        .or_usage_error("no kubeconfig was written", OTHER)?;
    kubeconfig::write_entries(&path, config.reveal())
        .or_failed("no kubeconfig was written", OTHER)?;
    session
        .shell
        .print_done(&format!("wrote {} for {}", path.display(), server.url));
    session.shell.hint(&format!(
        "its certificate is good for {validity_text}: `kctl export kubeconfig {name}` writes a new one"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{first_answering, is_given_by_kctl};
    use std::time::Duration;

    #[tokio::test]
    async fn the_first_address_that_answers_is_taken() {
        // What one does: answers, refuses, or says nothing.
        for (servers, expected) in [
            (["refuses", "answers", "answers"], Some(1)),
            (["hangs", "hangs", "answers"], Some(2)),
            (["answers", "hangs", "refuses"], Some(0)),
            (["hangs", "refuses", "hangs"], None),
        ] {
            let numbered: Vec<(usize, &str)> = servers.into_iter().enumerate().collect();
            let ask = async |server: &(usize, &str)| match server.1 {
                "hangs" => std::future::pending().await,
                does => does == "answers",
            };
            let taken = first_answering(numbered, Duration::from_millis(50), ask).await;
            assert_eq!(taken.map(|(number, _)| number), expected, "{servers:?}");
        }
    }

    #[test]
    fn only_addresses_that_kctl_gives_are_replaced() {
        for (address, ours) in [
            ("https://api.a.example.com", true),
            ("https://api.a.example.com:8443", true),
            (
                "https://api-a-1234567890abcdef.elb.eu-west-1.amazonaws.com",
                true,
            ),
            ("https://api-a-123.eu-west-1.elb.amazonaws.com", true),
            ("https://a.elb.cn-north-1.amazonaws.com.cn", true),
            ("https://api.internal.a.example.com", false),
            ("https://127.0.0.1:6443", false),
            ("https://bastion.example.com:6443", false),
            ("https://a.elb.eu-west-1.amazonaws.com.example.com", false),
            ("", false),
        ] {
            assert_eq!(
                is_given_by_kctl(address, "api.a.example.com"),
                ours,
                "{address}"
            );
        }
    }
}
