//! The stories of `tests/stories`: what kctl does to a simulated cloud, told as commands with their output.
//! Everything between the text of the spec and the calls to the cloud is the real code; docs/tour.md says how to write one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets the unexpected fails"
)]

mod commands;
mod events;
mod instances;
mod output;
mod spec_side;
mod story;

use commands::run_command;
use std::path::{Path, PathBuf};
use story::Story;

const UPDATE: &str = "UPDATE_GOLDEN=1 cargo test -p simcloud --test stories    writes what they print now: review that like code";

fn story_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stories");
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|is| is == "txt"));
    files.sort();
    files
}

/// The story with what its commands print now. Fails at a line that is none of a story, or a command that does not exist.
fn run_story(file: &str, written: &str) -> Result<String, String> {
    let mut story = Story::default();
    let mut told = String::new();
    let mut after_command = false;
    for (number, line) in (1..).zip(written.lines()) {
        let mistake = |why: String| format!("tests/stories/{file}:{number}: {why}");
        let command = line.strip_prefix("> ");
        let begins = command.is_some() || line.starts_with('#');
        if begins && after_command {
            told.push('\n');
        }
        if let Some(command) = command {
            let printed = run_command(&mut story, command).map_err(mistake)?;
            told.push_str(&format!("{line}\n"));
            let lines = printed.lines().filter(|line| !line.trim().is_empty());
            lines.for_each(|line| told.push_str(&format!("{}\n", line.trim_end())));
            after_command = true;
        } else if begins || (!after_command && line.is_empty()) {
            told.push_str(&format!("{line}\n"));
            after_command = false;
        } else if !after_command {
            let why = "a line of prose begins with \"# \", a command with \"> \"";
            return Err(mistake(why.to_owned()));
        }
    }
    Ok(told)
}

/// The first line in which the two differ.
fn first_difference(file: &str, written: &str, told: &str) -> String {
    let (mut before, mut after) = (written.lines(), told.lines());
    for number in 1.. {
        let (before, after) = (before.next(), after.next());
        if before != after || before.is_none() {
            let [before, after] = [before, after].map(|line| line.unwrap_or("(the end)"));
            return format!(
                "tests/stories/{file}:{number}: written\n    {before}\nand printed now\n    {after}"
            );
        }
    }
    String::new()
}

#[test]
fn every_story_goes_as_it_is_written() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    let files = story_files();
    assert!(files.len() >= 10, "{} stories", files.len());
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let written = std::fs::read_to_string(&path).unwrap();
        match run_story(&file, &written) {
            Err(mistake) => wrong.push(mistake),
            Ok(told) if told == written => {}
            Ok(told) if update => std::fs::write(&path, told).unwrap(),
            Ok(told) => wrong.push(first_difference(&file, &written, &told)),
        }
    }
    assert!(wrong.is_empty(), "{}\n{UPDATE}", wrong.join("\n"));
}

#[test]
fn a_mistake_in_a_story_is_told_with_file_line_and_what_can_be_written() {
    let mistake = |story: &str| run_story("x.txt", story).unwrap_err();
    let unknown = mistake("# Prose.\n\n> aply\n");
    assert!(
        unknown.starts_with("tests/stories/x.txt:3: there is no command \"aply\""),
        "{unknown}"
    );
    assert!(
        unknown.contains("    apply [--die-after CALLS]\n"),
        "{unknown}"
    );
    for (story, told) in [
        ("Prose.\n", "x.txt:1: a line of prose begins with \"# \""),
        ("> plan\n", "x.txt:1: there is no cluster yet: begin with"),
        (
            "> create cluster a.example.com --zone a\n",
            "x.txt:1: --zone is not",
        ),
        (
            "> somebody deletes vpc/none\n",
            "x.txt:1: there is no vpc/none",
        ),
        (
            "> create cluster a.example.com --zones eu-west-1a\n> show volumes\n",
            "x.txt:2: there is no kind volumes",
        ),
        (
            "> aws throttle often\n",
            "x.txt:1: \"often\" is not a number",
        ),
    ] {
        let mistake = mistake(story);
        assert!(mistake.contains(told), "{mistake}");
    }
}
