//! `kctl get sshpublickeys` and `kctl get keypairs`: public halves only.

use super::super::existing_cluster::ExistingCluster;
use super::super::keypair::read_key_holders;
use super::super::session::Session;
use super::super::ssh_keys::{fingerprint, stored_names};
use crate::args::{GetKeypairs, GetOfCluster, ListFormat};
use crate::error::{CommandError, ErrorContext};
use crate::state::{ClusterState, PublicKeys};
use crate::ui::table;
use fleet::KeyUsers;
use node::pki::{Keyset, KeysetItem};
use serde::Serialize;
use spec::read::ReadOptions;
use x509_parser::pem::parse_x509_pem;

/// A public SSH key.
#[derive(Debug, Serialize)]
struct SshKey {
    /// MD5, in pairs of digits.
    fingerprint: String,
    #[serde(rename = "publicKey")]
    public_key: String,
}

/// A key of a keyset.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyPair {
    name: String,
    id: String,
    /// `primary`, `trusted`, `distrusted`.
    state: &'static str,
    issued: String,
    expires: String,
    primary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    distrusted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<KeyPairUsers>,
}

/// The instances that have a key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyPairUsers {
    trusted_by: Vec<String>,
    signed_for: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<String>,
}

/// Shows the cluster's public SSH keys.
pub async fn show_ssh_keys(args: &GetOfCluster, session: &Session<'_>) -> Result<(), CommandError> {
    let (state, public) = read_public_keys(args.cluster.as_deref(), session).await?;
    let keys: Vec<SshKey> = stored_names(&state)
        .iter()
        .zip(&public.ssh_keys)
        .map(|(name, key)| SshKey {
            fingerprint: fingerprint(name),
            public_key: key.clone(),
        })
        .collect();
    match args.form.output {
        ListFormat::Yaml | ListFormat::Json => {
            super::print_documents(session, &keys, args.form, false)
        }
        ListFormat::Name => {
            super::print_lines(session, keys.into_iter().map(|key| key.fingerprint))
        }
        _ => {
            let rows: Vec<_> = keys
                .into_iter()
                .map(|key| vec![key.fingerprint, key.public_key])
                .collect();
            session
                .shell
                .print_result(&table::render(&["FINGERPRINT", "KEY"], &rows))
        }
    }
}

/// Shows the cluster's keysets.
pub async fn show_key_pairs(args: &GetKeypairs, session: &Session<'_>) -> Result<(), CommandError> {
    let (state, public) = read_public_keys(None, session).await?;
    let wanted = |set: &&Keyset| args.keyset.as_ref().is_none_or(|only| set.name == *only);
    if let Some(only) = &args.keyset
        && !public.keysets.iter().any(|set| set.name == *only)
    {
        let known: Vec<&str> = public.keysets.iter().map(|set| set.name.as_str()).collect();
        let hint = spec::read::nearest::hint(only, &known);
        return Err(CommandError::usage_error(
            format!("there is no keyset {only}"),
            hint,
        ));
    }
    let holders = match args.instances {
        true => {
            let cluster = ExistingCluster::read(state.name(), session).await?;
            Some(Box::pin(read_key_holders(&cluster, session)).await?)
        }
        false => None,
    };
    let mut key_pairs = Vec::new();
    for set in public.keysets.iter().filter(wanted) {
        let shown = |item: &&KeysetItem| args.distrusted || item.distrusted.is_none();
        for item in set.items.iter().filter(shown) {
            let users = holders.as_ref().map(|holders| {
                let users = KeyUsers::find(set, &item.id, holders);
                KeyPairUsers {
                    trusted_by: users.trusted_by,
                    signed_for: users.signed_for,
                    unknown: users.unknown,
                }
            });
            key_pairs.push(KeyPair {
                instances: users,
                ..key_pair(set, item)?
            });
        }
    }
    match args.form.output {
        ListFormat::Yaml | ListFormat::Json => {
            super::print_documents(session, &key_pairs, args.form, false)
        }
        ListFormat::Name => super::print_lines(
            session,
            key_pairs
                .into_iter()
                .map(|pair| format!("{}/{}", pair.name, pair.id)),
        ),
        _ => session
            .shell
            .print_result(&key_pair_table(&key_pairs, args.instances)),
    }
}

fn key_pair_table(key_pairs: &[KeyPair], instances: bool) -> String {
    let mut headers = vec!["NAME", "ID", "ISSUED", "EXPIRES", "STATE"];
    if instances {
        headers.extend(["SIGNED FOR", "TRUSTED BY", "UNKNOWN"]);
    }
    let row = |pair: &KeyPair| {
        let state = match &pair.distrusted {
            Some(when) => format!("{} {when}", pair.state),
            None => pair.state.to_owned(),
        };
        let mut row = vec![
            pair.name.clone(),
            pair.id.clone(),
            pair.issued.clone(),
            pair.expires.clone(),
            state,
        ];
        if let Some(users) = &pair.instances {
            let all = [&users.signed_for, &users.trusted_by, &users.unknown];
            row.extend(all.map(|names| names.join(",")));
        }
        row
    };
    table::render(&headers, &key_pairs.iter().map(row).collect::<Vec<_>>())
}

async fn read_public_keys(
    cluster: Option<&str>,
    session: &Session<'_>,
) -> Result<(ClusterState, PublicKeys), CommandError> {
    let name = session.cluster_name(cluster).await?;
    let state = ClusterState::read(&session.store, &name, ReadOptions::AS_STORED).await?;
    let public = PublicKeys::read(&session.store, &state.keys, &state.entries).await?;
    Ok((state, public))
}

fn key_pair(set: &Keyset, item: &KeysetItem) -> Result<KeyPair, CommandError> {
    let what = || format!("a certificate of the keyset {} cannot be read", set.name);
    const RESTORE: &str = "restore the keyset from the bucket's versions";
    let (_, pem) = parse_x509_pem(item.certificate.as_bytes()).or_failed(what(), RESTORE)?;
    let certificate = pem.parse_x509().or_failed(what(), RESTORE)?;
    let day = |time: x509_parser::time::ASN1Time| time.to_datetime().date().to_string();
    Ok(KeyPair {
        name: set.name.clone(),
        id: item.id.clone(),
        issued: day(certificate.validity().not_before),
        expires: day(certificate.validity().not_after),
        state: match (item.id == set.primary, &item.distrusted) {
            (true, _) => "primary",
            (_, Some(_)) => "distrusted",
            _ => "trusted",
        },
        primary: item.id == set.primary,
        distrusted: item.distrusted.clone(),
        instances: None,
    })
}
