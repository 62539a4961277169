//! Every `kctl …` that a page, an error or a help text tells somebody to type is one that kctl understands.

use crate::kctl::repository_folder;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::{Path, PathBuf};

/// Where texts for users lie.
const TEXTS: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "docs",
    "cli/src",
    "model/cloud/src",
    "model/engine/src",
    "model/full/src",
    "model/node/src",
    "model/spec/src",
    "etcd/rules/src",
    "etcd/store/src",
    "etcd/member/src",
    "aws/client/src",
    "aws/cloud/src",
    "nodeup/src",
    "protokube/src",
    "protokube/role/src",
];

/// Pages and sources below a path.
pub fn collect_texts(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("a folder") {
            collect_texts(&entry.expect("an entry").path(), found);
        }
    } else if matches!(path.extension(), Some(end) if end == "md" || end == "rs") {
        found.push(path.to_path_buf());
    }
}

/// A text with its lines put together where one goes on in the next: shell's and Rust's `\`, and comments of Rust.
fn join_lines(text: &str) -> String {
    let mut whole = String::new();
    for line in text.lines() {
        let rest = line.trim_start();
        let comment = ["/// ", "//! ", "// "]
            .iter()
            .find_map(|mark| rest.strip_prefix(mark));
        if whole.ends_with('\\') {
            whole.pop();
            whole.push_str(rest);
        } else if let Some(comment) = comment {
            whole.push(' ');
            whole.push_str(comment);
        } else {
            whole.push('\n');
            whole.push_str(line);
        }
    }
    whole
}

/// What stands between backticks after `kctl `: a command, whole or named by its beginning.
fn quoted_commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("`kctl ") {
        let Some((command, after)) = after.split_once('`') else {
            break;
        };
        found.push(command.to_owned());
        rest = after;
    }
    found
}

/// The lines of a page's examples that are commands, help texts included.
fn example_commands(page: &str) -> Vec<String> {
    let examples = page.split("```").skip(1).step_by(2);
    let commands = examples.flat_map(str::lines);
    let commands = commands.flat_map(|line| line.split("&&").flat_map(|part| part.split(" | ")));
    let commands = commands.map(|line| line.trim_start().trim_start_matches("$ "));
    commands
        .filter_map(|line| line.strip_prefix("kctl "))
        .filter(|rest| !rest.contains('<')) // A line of usage.
        .map(|rest| rest.split(['>', '#']).next().unwrap_or_default())
        // A help text says after its command, and after two blanks, what that does.
        .map(|rest| rest.split("  ").next().unwrap_or_default().to_owned())
        .collect()
}

/// The words of a command as somebody would type them: one of the values that it offers, all that is optional.
fn typed_words(command: &str) -> Vec<String> {
    let bare = command.replace(['[', ']'], "").replace("...", "");
    let typed = bare.split_whitespace().map(|word| {
        let word = word.split('|').next().unwrap_or_default();
        match word {
            "N" => "1",
            word if word.contains('{') => "x",
            word => word,
        }
    });
    std::iter::once("kctl")
        .chain(typed)
        .map(str::to_owned)
        .collect()
}

/// Why kctl does not understand a command. `begun`: a command that only begins is understood too.
fn why_misunderstood(command: &str, begun: bool) -> Option<String> {
    let error = cli::args::build_command()
        .try_get_matches_from(typed_words(command))
        .err()?;
    let begins = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return None,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        ErrorKind::InvalidValue => {
            matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(given)) if given.is_empty())
        }
        _ => false,
    };
    (!(begun && begins)).then(|| format!("kctl {command}: {error}"))
}

#[test]
fn every_command_that_a_text_names_is_understood() {
    let mut paths = Vec::new();
    for path in TEXTS {
        collect_texts(&repository_folder().join(path), &mut paths);
    }
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in paths {
        let text = join_lines(&std::fs::read_to_string(&path).expect("text"));
        let page = path.extension().is_some_and(|end| end == "md");
        let typed = if page {
            example_commands(&text)
        } else {
            Vec::new()
        };
        let named = quoted_commands(&text)
            .into_iter()
            .map(|command| (command, true));
        for (command, begun) in typed
            .into_iter()
            .map(|command| (command, false))
            .chain(named)
        {
            seen += 1;
            let why = why_misunderstood(&command, begun);
            wrong.extend(why.map(|why| format!("{}: {why}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 200, "only {seen} commands were found");
}

#[test]
fn a_command_that_is_none_is_found() {
    for none in [
        "updat",
        "update --yess",
        "get operatio",
        "lock status --wait 1m",
    ] {
        assert!(why_misunderstood(none, false).is_some(), "{none}");
    }
    for begun in ["lock", "create -f", "update --plan", "get operations"] {
        assert_eq!(why_misunderstood(begun, true), None, "{begun}");
    }
}
