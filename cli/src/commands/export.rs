//! `kctl export kubeconfig`: how to reach a cluster, with an administrator's certificate that expires.

use super::running::Running;
use super::session::Session;
use crate::args::{ExportKubeconfig, KubeconfigCredentials};
use crate::duration;
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::kubeconfig;

/// How long an administrator's certificate is good for; kOps'.
const DEFAULT_VALIDITY: &str = "18h";

/// Exports the kubeconfig of a cluster.
pub async fn run(
    options: &ExportKubeconfig,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    if let (Some(word), Some(_)) = (&options.cluster, &options.credentials.admin)
        && duration::parse(word).is_ok()
    {
        return Err(CommandError::usage(
            format!("{word} is how long, not which cluster"),
            format!("--admin={word}"),
        ));
    }
    let name = session.cluster(options.cluster.as_deref()).await?;
    let running = Running::read(&name, session).await?;
    write(&running, &options.credentials, session).await?;
    Ok(Outcome::Fine)
}

/// Issues a certificate and writes the kubeconfig.
pub async fn write(
    running: &Running,
    credentials: &KubeconfigCredentials,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let name = running.state.name();
    let said = credentials.admin.as_deref().unwrap_or(DEFAULT_VALIDITY);
    let wrong = |cause: String| {
        CommandError::usage(
            format!("--admin={said}: {cause}"),
            "write for example --admin=18h or --admin=1h30m",
        )
    };
    let validity = duration::parse(said).map_err(wrong)?;
    if validity.is_zero() {
        return Err(wrong("such a certificate would never be good".to_owned()));
    }
    let server = running.server(&credentials.reach).await?;
    let server = server.ok_or_else(|| {
        CommandError::said(
            Kind::Precondition,
            "the API has no load balancer yet",
            format!("make the cluster first: kctl update {name} --yes"),
        )
    })?;
    let authority = running.authority(session).await?;
    let config = running.kubeconfig(&authority, &server, validity)?;
    const OTHER: &str = "choose another file with --kubeconfig";
    let path = kubeconfig::path(credentials.kubeconfig.as_deref())
        .usage("no kubeconfig was written", OTHER)?;
    kubeconfig::write(&path, config.reveal()).failed("no kubeconfig was written", OTHER)?;
    session
        .shell
        .done(&format!("wrote {} for {}", path.display(), server.url));
    session.shell.hint(&format!(
        "its certificate is good for {said}: `kctl export kubeconfig {name}` writes a new one"
    ));
    Ok(())
}
