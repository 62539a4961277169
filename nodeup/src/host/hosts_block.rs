//! Observes and writes nodeup's block in `/etc/hosts`.

use super::failure::file_failure;
use engine::Failure;
use host::Host;
use node::host::HostsBlock;

pub(super) fn observe_hosts_block(
    host: &Host,
    want: &HostsBlock,
) -> Result<Option<HostsBlock>, Failure> {
    let file = host
        .read_lossy(&want.path)
        .map_err(file_failure("reading", &want.path))?;
    let lines = want.lines_in(&file);
    Ok(lines.map(|lines| HostsBlock {
        lines,
        ..want.clone()
    }))
}

/// Rewrites the file in place, because pods bind-mount it.
pub(super) fn put_hosts_block(host: &Host, want: &HostsBlock) -> Result<(), Failure> {
    let rewritten = host.rewrite_in_place(&want.path, |text| want.insert_into(text));
    rewritten.map_err(file_failure("rewriting", &want.path))
}
