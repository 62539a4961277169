//! The user's editor, and the file between it and us.

use crate::env;
use crate::error::{CommandError, Context};
use spec::read::{Problem, render};
use std::fs;
use std::io::Write;
use std::process::Command;
use tempfile::NamedTempFile;

/// Lines with which comments of ours begin; they are taken out of what comes back.
const OURS: &str = "#! ";

/// A text in an editor.
#[derive(Debug)]
pub struct Editor {
    command: String,
    file: NamedTempFile,
    /// What the file held when the editor last opened.
    shown: String,
    complained: bool,
}

impl Editor {
    /// Puts the text into a file that only this user can read.
    pub fn open(what: &str, text: &str) -> Result<Self, CommandError> {
        let command = env::first(&[env::VISUAL, env::EDITOR]).unwrap_or_else(|| "vi".to_owned());
        let name: String = what
            .chars()
            .map(|c| if c == '/' { '-' } else { c })
            .collect();
        let file = tempfile::Builder::new()
            .prefix(&format!("kctl-{name}-"))
            .suffix(".yaml")
            .tempfile();
        let file = file.failed(
            "could not make a temporary file",
            "set TMPDIR to a folder with space",
        )?;
        let mut editor = Self {
            command,
            file,
            shown: String::new(),
            complained: false,
        };
        let head = format!(
            "{OURS}{what}\n{OURS}Lines that begin with this mark are left out. Leave the text as it is to change nothing.\n"
        );
        editor.show(&format!("{head}{text}"))?;
        Ok(editor)
    }

    fn show(&mut self, text: &str) -> Result<(), CommandError> {
        let written =
            fs::File::create(self.file.path()).and_then(|mut file| file.write_all(text.as_bytes()));
        written.failed(
            format!("could not write {}", self.file.path().display()),
            "set TMPDIR to a folder with space",
        )?;
        text.clone_into(&mut self.shown);
        Ok(())
    }

    /// Runs the editor: the text without our comments, or `None` if it is as it was or empty.
    pub fn edited(&mut self) -> Result<Option<String>, CommandError> {
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
        let status = status.failed(failed(), OTHERWISE)?;
        let text = fs::read_to_string(path)
            .failed(format!("could not read {}", path.display()), OTHERWISE)?;
        if !status.success() {
            let kept = if text == self.shown {
                None
            } else {
                Some(self.keep())
            };
            let error = CommandError::usage(
                format!(
                    "the editor `{}` ended with {status}: nothing was stored",
                    self.command
                ),
                OTHERWISE,
            );
            return Err(kept.into_iter().fold(error, |error, path| {
                error.hint(format!("your text is in {path}"))
            }));
        }
        let same = text == self.shown;
        let text = without_comments(&text);
        Ok((!same && !text.trim().is_empty()).then_some(text))
    }

    /// Puts the findings above the user's text, for the next look.
    pub fn complain(&mut self, text: &str, problems: &[Problem]) -> Result<(), CommandError> {
        self.complained = true;
        let findings = render(problems);
        let comments: String = findings
            .lines()
            .map(|line| format!("{OURS}{line}").trim_end().to_owned() + "\n")
            .collect();
        self.show(&format!("{comments}{text}"))
    }

    /// Whether the last text could not be used.
    pub fn unusable(&self) -> bool {
        self.complained
    }

    /// Leaves the file where it is, and says where.
    pub fn keep(&mut self) -> String {
        self.file.disable_cleanup(true);
        self.file.path().display().to_string()
    }
}

fn without_comments(text: &str) -> String {
    let ours = |line: &&str| !line.starts_with(OURS.trim_end());
    text.lines()
        .filter(ours)
        .map(|line| format!("{line}\n"))
        .collect()
}
