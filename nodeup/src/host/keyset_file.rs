//! Observes and writes files with parts of keysets. Their content is never shown.

use super::failure::{file_failure, permanent_failure};
use super::file::parse_mode;
use super::signer::Signer;
use engine::Failure;
use host::Host;
use node::host::{KeysetFile, KeysetPart, keyset_part};
use node::secret::Secret;

pub(super) fn observe_keyset_file(
    host: &Host,
    signer: &Signer,
    want: &KeysetFile,
) -> Result<Option<KeysetFile>, Failure> {
    let failed = file_failure("reading", &want.path);
    let Some(about) = host.read_metadata(&want.path).map_err(&failed)? else {
        return Ok(None);
    };
    let (mode, owner) = host.mode_and_owner(&about, "root:root").map_err(&failed)?;
    let found = host
        .read_bytes(&want.path)
        .map_err(&failed)?
        .unwrap_or_default();
    let kept = want.part == KeysetPart::StoredSecret && !signer.secrets.contains_key(&want.keyset);
    let same = kept || found == file_content(signer, want)?.reveal().as_bytes();
    let current = same && owner == "root:root";
    Ok(Some(KeysetFile {
        mode,
        current,
        ..want.clone()
    }))
}

pub(super) fn put_keyset_file(
    host: &Host,
    signer: &Signer,
    want: &KeysetFile,
) -> Result<(), Failure> {
    let content = file_content(signer, want)?;
    let written = host.write_file(
        &want.path,
        content.reveal().as_bytes(),
        parse_mode(&want.mode)?,
        Some("root:root"),
    );
    written.map_err(file_failure("writing", &want.path))
}

fn file_content(signer: &Signer, want: &KeysetFile) -> Result<Secret, Failure> {
    let call = format!("making {}", want.path);
    if want.part == KeysetPart::StoredSecret {
        let secret = signer.secrets.get(&want.keyset).cloned();
        return secret.ok_or_else(|| {
            permanent_failure(
                &call,
                &format!("the state store has no secret {}", want.keyset),
            )
        });
    }
    let keyset = signer.keysets.get(&want.keyset);
    let keyset = keyset.ok_or_else(|| {
        permanent_failure(
            &call,
            &format!("the state store has no keyset {}", want.keyset),
        )
    })?;
    keyset_part(keyset, want.part).map_err(|error| permanent_failure(&call, &error.to_string()))
}
