//! `kctl export kubeconfig`: writes a kubeconfig with a new administrator's certificate.

use super::existing_cluster::ExistingCluster;
use super::session::Session;
use crate::args::{ExportKubeconfig, KubeconfigCredentials};
use crate::duration;
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::kubeconfig;

/// Default validity of the certificate, as in kOps.
const DEFAULT_VALIDITY: &str = "18h";

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
    let name = session.cluster_name(options.cluster.as_deref()).await?;
    let cluster = ExistingCluster::read(&name, session).await?;
    write_kubeconfig(&cluster, &options.credentials, session).await?;
    Ok(Outcome::Fine)
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
