//! `kctl version`.

use crate::error::{CommandError, Outcome};
use crate::ui::Shell;

pub fn run(shell: &Shell) -> Result<Outcome, CommandError> {
    shell.print_result(&format!("kctl {}", env!("CARGO_PKG_VERSION")))?;
    Ok(Outcome::Fine)
}
