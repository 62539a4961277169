//! What each step of a rotation makes of a keyset, and why it should not be made.

use crate::args::{CreateKeypair, DistrustKeypair, PromoteKeypair, TrustKeypair};
use crate::error::{CommandError, ErrorContext, ErrorKind};
use fleet::{KeyHolder, KeyStep, find_hindrances};
use node::pki::{
    Keyset, KeysetItem, Refused, STATE_SIGNER, SystemKeys, check_brought, check_own_key,
    mint_further,
};
use node::secret::Secret;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What the user brings.
#[derive(Default)]
pub(super) struct Brought {
    pub(super) certificate: Option<String>,
    pub(super) key: Option<Secret>,
}

/// What keeps the instances of a keyset from the change.
pub(super) fn find_hindrances_between(
    before: &Keyset,
    after: &Keyset,
    holders: &[KeyHolder],
    now: OffsetDateTime,
) -> Vec<String> {
    let mut lines = Vec::new();
    // The first key of a keyset is nobody's before.
    if before.primary != after.primary && !before.items.is_empty() {
        let step = KeyStep::Promote(&after.primary);
        lines.extend(find_hindrances(after, step, holders, now));
    }
    let trusted = after.ids().trusted;
    let mut lost = before.ids().trusted;
    lost.retain(|id| !trusted.contains(id));
    if !lost.is_empty() {
        let step = KeyStep::Distrust(&lost);
        lines.extend(find_hindrances(after, step, holders, now));
    }
    lines
}

pub(super) fn add_key(
    keyset: &mut Keyset,
    args: &CreateKeypair,
    brought: &Brought,
    all: &[Keyset],
    now: OffsetDateTime,
) -> Result<String, CommandError> {
    let name = keyset.name.clone();
    let item = new_item(keyset, brought, now)?;
    check_own_key(keyset, &item, all).map_err(refused)?;
    let can_sign = item.key.is_some();
    let id = keyset.add(item, now).or_failed(
        format!("the key cannot be added to {name}"),
        "check the clock, and try again",
    )?;
    if args.primary {
        keyset.promote(&id).map_err(refused)?;
    }
    let state = match (args.primary, can_sign) {
        (true, _) => "it signs now",
        (false, true) => "it is trusted, and signs once it is promoted",
        (false, false) => "it is trusted, and cannot sign",
    };
    Ok(format!("{name} has the new key {id}: {state}"))
}

pub(super) fn promote_key(
    keyset: &mut Keyset,
    args: &PromoteKeypair,
) -> Result<Vec<String>, CommandError> {
    let newest = || keyset.successor().map(|item| item.id.clone());
    let Some(id) = args.id.clone().or_else(newest) else {
        return Ok(Vec::new());
    };
    keyset.promote(&id).map_err(refused)?;
    Ok(vec![format!("{} signs with {id} now", keyset.name)])
}

pub(super) fn trust_keys(
    keyset: &mut Keyset,
    args: &TrustKeypair,
) -> Result<Vec<String>, CommandError> {
    let mut done = Vec::new();
    for id in &args.ids {
        keyset.trust(id).map_err(refused)?;
        done.push(format!("{} trusts {id}", keyset.name));
    }
    Ok(done)
}

pub(super) fn distrust_keys(
    keyset: &mut Keyset,
    args: &DistrustKeypair,
    now: OffsetDateTime,
) -> Result<Vec<String>, CommandError> {
    let ids = match args.ids.is_empty() {
        true => keyset.predecessors(),
        false => args.ids.clone(),
    };
    let time = now.replace_nanosecond(0).unwrap_or(now);
    let time = time.format(&Rfc3339).or_failed(
        "the clock shows no time that can be written",
        "set the clock",
    )?;
    let mut done = Vec::new();
    for id in &ids {
        keyset.distrust(id, &time).map_err(refused)?;
        done.push(format!("{} does not trust {id} any more", keyset.name));
    }
    Ok(done)
}

/// The key that is brought, or a new one.
fn new_item(
    keyset: &Keyset,
    brought: &Brought,
    now: OffsetDateTime,
) -> Result<KeysetItem, CommandError> {
    let name = &keyset.name;
    let key = brought.key.as_ref();
    if name == STATE_SIGNER && (key.is_some() || brought.certificate.is_some()) {
        return Err(CommandError::usage_error(
            format!("the keys of {name} are kctl's own"),
            format!("kctl create keypair {name}    makes one"),
        ));
    }
    match &brought.certificate {
        Some(certificate) => check_brought(keyset, certificate, key, now).map_err(refused),
        None => {
            let made = mint_further(keyset, key, &mut SystemKeys::issuing_at(now));
            let made = made.or_usage_error(
                format!("no certificate for {name} could be made"),
                "give an RSA or ECDSA key in PEM, without a passphrase",
            )?;
            // The same rules as for a certificate that is brought.
            check_brought(keyset, &made.certificate, made.key.as_ref(), now).map_err(refused)
        }
    }
}

/// The command error of a step that a keyset does not allow.
fn refused(error: Refused) -> CommandError {
    let hint = match &error {
        Refused::NoKey { keyset, .. } => {
            format!("kctl get keypairs {keyset} --distrusted    lists its keys")
        }
        Refused::Distrusted { keyset, id } => {
            format!("kctl trust keypair {keyset} {id}    trusts it again")
        }
        Refused::NoPrivateKey { keyset, .. } => {
            format!("kctl create keypair {keyset} --cert FILE --key FILE    adds one that can sign")
        }
        Refused::Primary { keyset, .. } => {
            format!("kctl promote keypair {keyset} ID    lets another one sign first")
        }
        Refused::OtherKeyset { keyset, .. } => {
            format!("kctl create keypair {keyset}    makes one, or bring another one")
        }
        Refused::Certificate { .. } | Refused::Key { .. } | Refused::Unusable { .. } => {
            "give the certificate of an authority (--cert) and its private key (--key), both PEM"
                .to_owned()
        }
    };
    CommandError::new(ErrorKind::Usage, error, hint)
}
