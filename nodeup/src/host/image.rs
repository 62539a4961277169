//! Imports container images into containerd, and pins them: where nodes reach no registry, an image that kubelet removes to make room
//! is gone.

use super::failure::{call_failure, file_failure, permanent_failure};
use crate::digest;
use engine::Failure;
use host::{Host, Output};
use node::host::Image;
use std::path::Path;

/// The label by which kubelet leaves an image alone (containerd: `internal/cri/labels`, `PinnedImageLabelKey`).
const PIN: &str = "io.cri-containerd.pinned=pinned";

/// The image as containerd has it, once its import was recorded. While containerd does not answer, as early in a boot, the record counts:
/// otherwise every boot would download all archives again.
pub(super) fn observe_image(host: &Host, want: &Image) -> Result<Option<Image>, Failure> {
    let recorded = host.read_lossy(&want.record);
    let recorded = recorded.map_err(file_failure("reading", &want.record))?;
    if recorded != want.digest {
        return Ok(None);
    }
    let filter = format!("name=={}", want.name);
    let listed = run_ctr(host, &["images", "list", &filter]);
    let Some(listed) = listed.ok().filter(Output::is_success) else {
        return Ok(Some(want.clone()));
    };
    Ok(listed.stdout.lines().find_map(|line| parse_row(line, want)))
}

/// The image in a row of `ctr images list`: REF, TYPE, DIGEST, SIZE, PLATFORMS, LABELS.
fn parse_row(row: &str, want: &Image) -> Option<Image> {
    let mut words = row.split_whitespace();
    if words.next()? != want.name {
        return None;
    }
    let digest = words.find(|word| word.starts_with("sha256:"))?;
    let labels = words.next_back().unwrap_or_default();
    Some(Image {
        digest: digest.to_owned(),
        pinned: labels.split(',').any(|label| label == PIN),
        ..want.clone()
    })
}

/// Imports the image from its archive in the cache. The hash is verified again, because the cache may be damaged by a power failure.
pub(super) fn put_image(host: &Host, cache: &Path, want: &Image) -> Result<(), Failure> {
    let call = format!("importing {}", want.name);
    let archive = cache.join(&want.archive);
    let found = digest::sha256_of_file(&archive);
    let found = found.map_err(|error| {
        let message = format!("could not read {}: {error}", archive.display());
        permanent_failure(&call, &message)
    })?;
    if found != want.archive {
        let message = format!("{} has sha256 {found}", archive.display());
        return Err(permanent_failure(&call, &message));
    }
    let (path, platform) = (
        archive.display().to_string(),
        format!("linux/{}", want.arch.as_str()),
    );
    // Without the platform, releases before 2 also look for images of 32 bits, which the archive does not have.
    let import = ["images", "import", "--platform", &platform, &path];
    let label = ["images", "label", &want.name, PIN];
    for arguments in [&import[..], &label] {
        host.may_change().map_err(call_failure(&call))?;
        let ran = run_ctr(host, arguments)?;
        if !ran.is_success() {
            let message = format!("ctr {}: {}", arguments.join(" "), ran.error_output());
            return Err(permanent_failure(&call, &message));
        }
    }
    let written = host.write_file(&want.record, want.digest.as_bytes(), 0o644, None);
    written.map_err(file_failure("writing", &want.record))
}

fn run_ctr(host: &Host, arguments: &[&str]) -> Result<Output, Failure> {
    let all = [&["--namespace", "k8s.io"], arguments].concat();
    host.run_program("ctr", &all)
        .map_err(call_failure("starting ctr"))
}
