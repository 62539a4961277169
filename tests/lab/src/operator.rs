//! The operator's place: the router's network namespace, with the lab's resolver, authority and an administrator's
//! credentials, where AWS and the clusters are reached under their public names.

use crate::daemon::LabAddresses;
use crate::lab_paths::LabPaths;
use crate::netns;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who answers names for the operator.
const RESOLVER: &str = "nameserver 198.18.0.1\noptions ndots:1 timeout:2\n";

/// In a mount namespace of its own, so that the resolver is the lab's here only.
const ENTER: &str = "mount --bind \"$1\" /etc/resolv.conf && shift && exec \"$@\"";

/// A command in the operator's place; the caller runs it.
pub fn operator_command(place: &LabPaths, up: &LabAddresses, words: &[String]) -> Result<Command> {
    let resolver = place.run().join("operator.resolv.conf");
    write_once(&resolver, RESOLVER)?;
    let mut command = Command::new("nsenter");
    command
        .arg(format!(
            "--net={}",
            netns::netns_path(&place.router_netns()).display()
        ))
        .args([
            "--",
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            ENTER,
            "sh",
        ])
        .arg(resolver)
        .args(words);
    for (name, value) in operator_environment(place, up)? {
        command.env(name, value);
    }
    for name in [
        "AWS_ENDPOINT_URL",
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ] {
        command.env_remove(name);
    }
    Ok(command)
}

/// What programs read: region, credentials, whom to trust, where kubectl is, and `LAB_CATALOG`: what the mirror serves.
pub fn operator_environment(
    place: &LabPaths,
    up: &LabAddresses,
) -> Result<Vec<(&'static str, String)>> {
    let trust = write_ca_bundle(place, &up.authority)?.display().to_string();
    let mut all = vec![
        ("AWS_REGION", up.region.clone()),
        // Python's SDK and its relatives know this one only.
        ("AWS_DEFAULT_REGION", up.region.clone()),
        (
            "AWS_SHARED_CREDENTIALS_FILE",
            up.credentials.display().to_string(),
        ),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ("AWS_CA_BUNDLE", trust.clone()),
        ("SSL_CERT_FILE", trust.clone()),
        ("CURL_CA_BUNDLE", trust.clone()),
        ("REQUESTS_CA_BUNDLE", trust),
        (
            "KUBECONFIG",
            place.run().join("kubeconfig").display().to_string(),
        ),
    ];
    if let Some(catalog) = &up.catalog {
        all.push(("LAB_CATALOG", catalog.display().to_string()));
    }
    if let Some(tools) = &up.tools {
        let path = std::env::var("PATH").unwrap_or_default();
        all.push(("PATH", format!("{}:{path}", tools.display())));
    }
    Ok(all)
}

/// The machine's authorities and the lab's, in one file.
fn write_ca_bundle(place: &LabPaths, authority: &Path) -> Result<PathBuf> {
    let path = place.run().join("operator.crt");
    let lab = std::fs::read_to_string(authority)
        .with_context(|| format!("reading {}", authority.display()))?;
    let machine = std::fs::read_to_string("/etc/ssl/certs/ca-certificates.crt").unwrap_or_default();
    write_once(&path, &format!("{machine}{lab}"))?;
    Ok(path)
}

/// Writes a file unless it has this content: other programs read it at the same time.
fn write_once(path: &Path, content: &str) -> Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    std::fs::write(path, content).with_context(|| format!("writing {}", path.display()))
}
