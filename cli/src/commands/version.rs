//! `kctl version`.

use crate::error::{CommandError, Outcome};
use crate::ui::Shell;

/// Prints kctl's version.
pub fn run(shell: &Shell) -> Result<Outcome, CommandError> {
    shell.result(&format!("kctl {}", env!("CARGO_PKG_VERSION")))?;
    Ok(Outcome::Fine)
}
