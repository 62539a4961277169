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

/// The first release in which the label counts for an image that `ctr` has imported (containerd#9381).
const PINS_SINCE: [u64; 3] = [1, 7, 10];

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
    check_pins(host, &call)?;
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

/// Fails of a containerd that is known to be older: one of the machine image (`skipInstall`), or of the spec.
fn check_pins(host: &Host, call: &str) -> Result<(), Failure> {
    let answer = run_ctr(host, &["version"])?;
    // The client's is before the server's.
    let lines = answer.stdout.lines();
    let mut versions = lines.filter_map(|line| line.trim().strip_prefix("Version:"));
    match versions.next_back().map(str::trim) {
        Some(version) if is_before_pins(version) => {
            let message = format!(
                "containerd {version} does not pin images that ctr imports: kubelet would remove them to make room, and no registry \
                 has them for this node. Use a machine image with containerd 1.7.10 or newer, or leave out containerd.skipInstall"
            );
            Err(permanent_failure(call, &message))
        }
        _ => Ok(()),
    }
}

/// By the numbers of a version: `v1.7.24`, `1.6.20~ds1`. One of another form is not known to be older.
fn is_before_pins(version: &str) -> bool {
    let parts = version.trim_start_matches('v').split(['.', '-', '+', '~']);
    let numbers = parts.map_while(|part| part.parse().ok());
    let numbers: Vec<u64> = numbers.take(PINS_SINCE.len()).collect();
    numbers.len() == PINS_SINCE.len() && numbers.as_slice() < PINS_SINCE.as_slice()
}

fn run_ctr(host: &Host, arguments: &[&str]) -> Result<Output, Failure> {
    let all = [&["--namespace", "k8s.io"], arguments].concat();
    host.run_program("ctr", &all)
        .map_err(call_failure("starting ctr"))
}
