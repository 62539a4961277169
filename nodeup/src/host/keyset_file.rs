//! Parts of authorities in files. Their content passes through here and is shown nowhere.

use super::failure::{file_failure, invalid};
use super::file::mode;
use super::signer::Signer;
use engine::Failure;
use host::Host;
use node::host::{KeysetFile, KeysetPart, keyset_part};
use node::secret::Secret;

pub(super) fn observe(
    host: &Host,
    signer: &Signer,
    want: &KeysetFile,
) -> Result<Option<KeysetFile>, Failure> {
    let failed = file_failure("reading", &want.path);
    let Some(about) = host.metadata(&want.path).map_err(&failed)? else {
        return Ok(None);
    };
    let (mode, owner) = host.mode_and_owner(&about, "root:root").map_err(&failed)?;
    let found = host.read(&want.path).map_err(&failed)?.unwrap_or_default();
    let kept = want.part == KeysetPart::StoredSecret && !signer.secrets.contains_key(&want.keyset);
    let same = kept || found == content(signer, want)?.reveal().as_bytes();
    let current = same && owner == "root:root";
    Ok(Some(KeysetFile {
        mode,
        current,
        ..want.clone()
    }))
}

pub(super) fn put(host: &Host, signer: &Signer, want: &KeysetFile) -> Result<(), Failure> {
    let content = content(signer, want)?;
    let written = host.write(
        &want.path,
        content.reveal().as_bytes(),
        mode(&want.mode)?,
        Some("root:root"),
    );
    written.map_err(file_failure("writing", &want.path))
}

fn content(signer: &Signer, want: &KeysetFile) -> Result<Secret, Failure> {
    let call = format!("making {}", want.path);
    if want.part == KeysetPart::StoredSecret {
        let secret = signer.secrets.get(&want.keyset).cloned();
        return secret
            .ok_or_else(|| invalid(&call, &format!("the store has no secret {}", want.keyset)));
    }
    let keyset = signer.keysets.get(&want.keyset);
    let keyset = keyset
        .ok_or_else(|| invalid(&call, &format!("the store has no keyset {}", want.keyset)))?;
    keyset_part(keyset, want.part).map_err(|error| invalid(&call, &error.to_string()))
}
