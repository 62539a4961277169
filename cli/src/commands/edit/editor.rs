//! Runs the user's editor on a temporary file.

use crate::env;
use crate::error::{CommandError, ErrorContext};
use spec::read::{Problem, render_problems};
use std::fs;
use std::io::Write;
use std::process::Command;
use tempfile::NamedTempFile;

/// Start of kctl's comment lines, which are removed from the edited text.
const MARK: &str = "#! ";

/// A text in an editor.
#[derive(Debug)]
pub struct Editor {
    command: String,
    file: NamedTempFile,
    /// Content of the file when the editor was last opened.
    shown: String,
    rejected: bool,
}

impl Editor {
    /// Writes the text to a file that only this user can read.
    pub fn open(what: &str, text: &str) -> Result<Self, CommandError> {
        let command =
            env::first_variable(&[env::VISUAL, env::EDITOR]).unwrap_or_else(|| "vi".to_owned());
        let name: String = what
            .chars()
            .map(|c| if c == '/' { '-' } else { c })
            .collect();
        let file = tempfile::Builder::new()
            .prefix(&format!("kctl-{name}-"))
            .suffix(".yaml")
            .tempfile();
        let file = file.or_failed(
            "could not make a temporary file",
            "set TMPDIR to a folder with space",
        )?;
        let mut editor = Self {
            command,
            file,
            shown: String::new(),
            rejected: false,
        };
        let head = format!(
            "{MARK}{what}\n{MARK}Lines that begin with this mark are left out. Leave the text as it is to change nothing.\n"
        );
        editor.write_file(&format!("{head}{text}"))?;
        Ok(editor)
    }

    fn write_file(&mut self, text: &str) -> Result<(), CommandError> {
        let written =
            fs::File::create(self.file.path()).and_then(|mut file| file.write_all(text.as_bytes()));
        written.or_failed(
            format!("could not write {}", self.file.path().display()),
            "set TMPDIR to a folder with space",
        )?;
        text.clone_into(&mut self.shown);
        Ok(())
    }

    /// Runs the editor. Returns the text without kctl's comments, or `None` if it is unchanged or empty.
    pub fn run_editor(&mut self) -> Result<Option<String>, CommandError> {
        let path = self.file.path();
        // Through the shell, because the variable may hold options; the path is an argument of its own.
        let status = Command::new("sh")
            .arg("-c")
            .arg(format!("{} \"$1\"", self.command))
            .arg("sh")
            .arg(path)
            .status();
        let failed = || format!("the editor `{}` did not run", self.command);
        const OTHERWISE: &str = "set EDITOR, or change single fields with --set PATH=VALUE";
        let status = status.or_failed(failed(), OTHERWISE)?;
        let text = fs::read_to_string(path)
            .or_failed(format!("could not read {}", path.display()), OTHERWISE)?;
        if !status.success() {
            let kept = if text == self.shown {
                None
            } else {
                Some(self.keep_file())
            };
            let error = CommandError::usage_error(
                format!(
                    "the editor `{}` ended with {status}: nothing was stored",
                    self.command
                ),
                OTHERWISE,
            );
            return Err(kept.into_iter().fold(error, |error, path| {
                error.with_hint(format!("your text is in {path}"))
            }));
        }
        let same = text == self.shown;
        let text = without_comments(&text);
        Ok((!same && !text.trim().is_empty()).then_some(text))
    }

    /// Writes the problems above the user's text, for the next run of the editor.
    pub fn show_problems(&mut self, text: &str, problems: &[Problem]) -> Result<(), CommandError> {
        self.rejected = true;
        let findings = render_problems(problems);
        let comments: String = findings
            .lines()
            .map(|line| format!("{MARK}{line}").trim_end().to_owned() + "\n")
            .collect();
        self.write_file(&format!("{comments}{text}"))
    }

    /// True if the last text was invalid.
    pub fn was_rejected(&self) -> bool {
        self.rejected
    }

    /// Keeps the file and returns its path.
    pub fn keep_file(&mut self) -> String {
        self.file.disable_cleanup(true);
        self.file.path().display().to_string()
    }
}

fn without_comments(text: &str) -> String {
    let is_own = |line: &&str| !line.starts_with(MARK.trim_end());
    text.lines()
        .filter(is_own)
        .map(|line| format!("{line}\n"))
        .collect()
}
