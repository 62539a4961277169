//! Where the checkout is whose lab this is. Builds are shared between checkouts, and what is compiled in may name another one,
//! or one that is gone; cargo does not build anew for that.

use std::env;
use std::path::{Path, PathBuf};

/// The folder `tests` of the checkout: of the package that cargo runs, or around the working directory; else of the one
/// that this was built from.
pub fn tests_folder() -> PathBuf {
    let run = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = env::current_dir().ok();
    let built = Path::new(env!("CARGO_MANIFEST_DIR"));
    let around = |folder: PathBuf| folder.ancestors().find_map(tests_in);
    [run, here]
        .into_iter()
        .flatten()
        .find_map(around)
        .unwrap_or_else(|| built.join(".."))
}

fn tests_in(folder: &Path) -> Option<PathBuf> {
    let tests = folder.join("tests");
    tests.join("lab/content").is_dir().then_some(tests)
}
