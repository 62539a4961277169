//! Asks before something is taken out of a cluster's state store.

use crate::error::{CommandError, ErrorKind};
use crate::ui::Shell;

/// What a command takes out.
pub struct Removal<'a> {
    /// As in a question: `Take WHAT out of CLUSTER?`
    pub what: &'a str,
    pub cluster: &'a str,
    /// What would happen, as a sentence.
    pub preview: String,
    /// The command that does not ask, and what it does.
    pub command: &'a str,
    pub effect: &'a str,
}

/// True if it may go. False: nobody can be asked, and what would happen is printed. Fails if somebody says no.
pub async fn confirm_removal(
    removal: &Removal<'_>,
    yes: bool,
    shell: &Shell,
) -> Result<bool, CommandError> {
    let Removal {
        what,
        cluster,
        preview,
        command,
        effect,
    } = removal;
    if yes {
        return Ok(true);
    }
    if !shell.can_ask() {
        shell.print_result(preview)?;
        shell.hint(&format!("{command}    {effect}"));
        return Ok(false);
    }
    let question = format!("Take {what} out of {cluster}? Type yes:");
    if shell.confirm(&question, "yes").await {
        return Ok(true);
    }
    Err(CommandError::from_message(
        ErrorKind::Usage,
        format!("{what} was not deleted"),
        *command,
    ))
}
