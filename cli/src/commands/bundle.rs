//! `kctl bundle`: bundles are made, checked and stored.

mod create;
mod push;

pub use create::create;
pub use push::push;

use crate::args::BundleVerify;
use crate::bundle::BundleFile;
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::ui::Shell;
use std::fs::File;
use std::path::{Path, PathBuf};

const DAMAGED: &str =
    "copy it again from where it was made, or make it again: `kctl bundle create`";

/// Checks every byte of a bundle.
pub fn verify(args: &BundleVerify, shell: &Shell) -> Result<Outcome, CommandError> {
    let file = open_checked(&args.file)?;
    shell.print_result(&describe(&file, &args.file))?;
    Ok(Outcome::Fine)
}

/// Opens a bundle in which every byte is as it was written.
fn open_checked(path: &Path) -> Result<BundleFile, CommandError> {
    let failed = || format!("{} cannot be used as a bundle", path.display());
    // A file that cannot be opened is not damaged.
    let named = File::open(path);
    named.or_usage_error(
        failed(),
        "name a file that `kctl bundle create` has written",
    )?;
    let opened = BundleFile::open(path).and_then(|file| file.check().map(|()| file));
    opened.or_failed(failed(), DAMAGED)
}

fn describe(file: &BundleFile, path: &Path) -> String {
    let bundle = &file.bundle;
    format!(
        "{}: Kubernetes {} for {}, {} files and {} archives of images, {} MB\nsha256: {}\n",
        path.display(),
        bundle.kubernetes_version,
        bundle.cluster,
        bundle.files.len(),
        bundle.images.len(),
        file.size() / 1_000_000,
        file.sha256()
    )
}

/// The file with something more in its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
