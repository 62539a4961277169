//! The command `protokube admin-kubeconfig`: prints a kubeconfig with an administrator's certificate that is valid for hours. No key of
//! an administrator lies on a control plane; who is root there may have one issued, as the instance's role may read the authority.

use crate::api::{ADMINISTRATORS, api_server_url};
use crate::arguments::Arguments;
use crate::daemon::{identify_instance, read_configuration};
use anyhow::Context;
use node::config::DIRECTORY;
use node::duration::{duration_text, parse_whole_seconds};
use node::pki::{
    ClientCredentials, KUBERNETES_CA, Keyset, Kubeconfig, Leaf, SystemKeys, Usage,
    issue_certificate, render_kubeconfig, trust_bundle,
};
use node::secret::Secret;
use protokube_role::keysets::read_keyset_object;
use std::io::Write;
use std::path::Path;
use time::{Duration, OffsetDateTime};

/// Printed for `--help`.
pub const USAGE: &str = "\
usage: protokube admin-kubeconfig [OPTIONS]

Prints a kubeconfig with a new administrator's certificate, for the API server of this control plane.

Options
  --valid DURATION             validity of the certificate, such as 1h, 30m; at most 24h [default: 1h]
  --boot-config FILE           [default: /opt/kctl/boot.yaml]
  --node-config FILE           [default: /opt/kctl/node-config.yaml]

Example: (umask 077; /opt/kctl/protokube admin-kubeconfig --valid 1h > /run/admin.kubeconfig)";

/// Validity without `--valid`.
const DEFAULT: Duration = Duration::hours(1);

/// Longest validity.
const LONGEST: Duration = Duration::hours(24);

/// The command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminKubeconfig {
    pub configuration: Arguments,
    /// Validity of the certificate.
    pub validity: Duration,
}

/// Parses what follows `admin-kubeconfig`. `None`: print the usage. The error is a message.
pub fn parse_admin_kubeconfig(
    arguments: impl IntoIterator<Item = String>,
) -> Result<Option<AdminKubeconfig>, String> {
    let in_folder = |file: &str| Path::new(DIRECTORY).join(file);
    let mut command = AdminKubeconfig {
        configuration: Arguments {
            boot_config: in_folder("boot.yaml"),
            node_config: in_folder("node-config.yaml"),
        },
        validity: DEFAULT,
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        if ["--help", "-h"].contains(&name) {
            return Ok(None);
        }
        if !["--valid", "--boot-config", "--node-config"].contains(&name) {
            return Err(format!("admin-kubeconfig has no option {name}"));
        }
        let value = inline.or_else(|| arguments.next());
        let value = value.ok_or_else(|| format!("{name} needs a value"))?;
        match name {
            "--valid" => command.validity = parse_validity(&value)?,
            "--boot-config" => command.configuration.boot_config = value.into(),
            _ => command.configuration.node_config = value.into(),
        }
    }
    Ok(Some(command))
}

fn parse_validity(text: &str) -> Result<Duration, String> {
    let seconds = parse_whole_seconds(text);
    let seconds = seconds.ok_or_else(|| format!("--valid {text}: write for example 1h or 30m"))?;
    let validity = Duration::seconds(seconds.into());
    if validity.is_zero() {
        return Err(format!(
            "--valid {text}: such a certificate would never be good"
        ));
    }
    if validity > LONGEST {
        return Err(format!(
            "--valid {text}: at most {}; issue a new one when it is over",
            duration_text(LONGEST.whole_seconds())
        ));
    }
    Ok(validity)
}

/// Prints the kubeconfig.
pub async fn run(command: &AdminKubeconfig) -> anyhow::Result<()> {
    let (boot, config) = read_configuration(&command.configuration)?;
    let note = |cause: &str| drop(writeln!(std::io::stderr(), "{cause}"));
    let daemon = identify_instance(&boot, config, &note).await?;
    let authority = read_keyset_object(&daemon.store, KUBERNETES_CA).await?;
    let issued = issue_kubeconfig(
        &authority,
        &KubeconfigRequest {
            cluster: &daemon.config.cluster,
            server: &api_server_url(&daemon.config),
            instance: &daemon.instance,
            validity: command.validity,
            now: OffsetDateTime::now_utc(),
        },
    )?;
    let mut out = std::io::stdout();
    let written = out.write_all(issued.reveal().as_bytes());
    written
        .and_then(|()| out.flush())
        .context("could not print the kubeconfig")
}

/// What a kubeconfig is made from.
#[derive(Clone, Copy, Debug)]
pub struct KubeconfigRequest<'a> {
    pub cluster: &'a str,
    /// URL of the API server.
    pub server: &'a str,
    /// Id of the instance that issues it; names the user, for audit logs.
    pub instance: &'a str,
    pub validity: Duration,
    pub now: OffsetDateTime,
}

/// Issues a certificate and returns the kubeconfig with it. Secret: it holds a private key.
pub fn issue_kubeconfig(
    authority: &Keyset,
    request: &KubeconfigRequest<'_>,
) -> anyhow::Result<Secret> {
    let leaf = Leaf {
        common_name: format!("kubecfg-{}", request.instance),
        organization: Some(ADMINISTRATORS.to_owned()),
        usage: Usage::Client,
        names: Vec::new(),
        validity: request.validity,
    };
    let issued = issue_certificate(authority, &leaf, &mut SystemKeys::issuing_at(request.now));
    let issued = issued.context("could not issue a certificate")?;
    let kubeconfig = render_kubeconfig(&Kubeconfig {
        name: request.cluster.to_owned(),
        server: request.server.to_owned(),
        tls_server_name: None,
        trust_bundle: Some(trust_bundle(authority)),
        credentials: Some(ClientCredentials::Inside {
            certificate: issued.certificate,
            key: issued.key,
        }),
    });
    kubeconfig.context("could not make the kubeconfig")
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::pki::{KeyAlgorithm, mint_keyset};

    fn parse_line(line: &str) -> Result<Option<AdminKubeconfig>, String> {
        parse_admin_kubeconfig(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_validity_is_an_hour_and_never_more_than_a_day() {
        for (line, expected) in [
            ("", Duration::hours(1)),
            ("--valid 30m", Duration::minutes(30)),
            ("--valid=1h30m", Duration::minutes(90)),
            ("--valid 24h", Duration::hours(24)),
        ] {
            let command = parse_line(line).unwrap().unwrap();
            assert_eq!(command.validity, expected, "{line}");
            let boot = Path::new("/opt/kctl/boot.yaml");
            assert_eq!(command.configuration.boot_config, boot);
        }
        let command = parse_line("--boot-config a --node-config=b")
            .unwrap()
            .unwrap();
        let paths = (
            command.configuration.boot_config,
            command.configuration.node_config,
        );
        assert_eq!(paths, ("a".into(), "b".into()));
        for wrong in [
            "--valid",
            "--valid 0",
            "--valid 0s",
            "--valid -1h",
            "--valid 1d",
            "--valid 24h1s",
            "--valid x",
            "--forever",
            "1h",
        ] {
            assert!(parse_line(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_line("--help"), Ok(None));
    }

    #[test]
    fn the_certificate_names_its_instance_and_ends_when_it_should() {
        let now = time::macros::datetime!(2026-01-01 12:00 UTC);
        let mut keys = SystemKeys::issuing_at(now);
        let authority = mint_keyset(KUBERNETES_CA, KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let request = KubeconfigRequest {
            cluster: "a.example.com",
            server: "https://127.0.0.1:443",
            instance: "i-1",
            validity: Duration::hours(1),
            now,
        };
        let text = issue_kubeconfig(&authority, &request).unwrap();
        let read: serde_json::Value = node::yaml::read_as(text.reveal()).unwrap();
        assert_eq!(read["clusters"][0]["cluster"]["server"], request.server);
        let data = read["users"][0]["user"]["client-certificate-data"]
            .as_str()
            .unwrap();
        use base64::Engine as _;
        let pem = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
        let certificate = pem.parse_x509().unwrap();
        assert_eq!(
            certificate.validity().not_after.to_datetime(),
            now + Duration::hours(1)
        );
        let subject = certificate.subject().to_string();
        assert!(
            subject.contains("CN=kubecfg-i-1") && subject.contains("O=system:masters"),
            "{subject}"
        );
    }
}
