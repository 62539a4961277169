//! `kctl reference`: generates `docs/reference/` from the clap definitions.

use crate::error::{CommandError, ErrorContext, Outcome, exit};
use crate::ui::Shell;
use crate::{args, env};
use clap::Command;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Writes one page per command into `dir`, and an index.
pub fn run(dir: &Path, shell: &Shell) -> Result<Outcome, CommandError> {
    let failed = || format!("could not write to {}", dir.display());
    fs::create_dir_all(dir).or_failed(failed(), "choose another folder")?;
    for (name, text) in reference_pages() {
        fs::write(dir.join(&name), text).or_failed(failed(), "choose another folder")?;
        shell.note(&format!("wrote {}", dir.join(name).display()));
    }
    Ok(Outcome::Fine)
}

/// File names and texts.
fn reference_pages() -> Vec<(String, String)> {
    let mut command = args::build_command().bin_name("kctl").term_width(100);
    command.build();
    let mut index = "# Commands\n\nMade by `kctl reference --out docs/reference`.\n\n".to_owned();
    let mut pages = Vec::new();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = sub.get_name();
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(index, "- [kctl {name}]({name}.md): {about}");
        let mut text = String::new();
        write_command(sub, &mut text);
        pages.push((format!("{name}.md"), text));
    }
    index.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in exit::DOCUMENTED {
        let _ = writeln!(index, "| {code} | {meaning} |");
    }
    index.push_str("\n## Environment\n\n| variable | meaning |\n|---|---|\n");
    for (name, meaning) in env::DOCUMENTED {
        let _ = writeln!(index, "| `{name}` | {meaning} |");
    }
    pages.push(("README.md".to_owned(), index));
    pages
}

fn write_command(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let help = command.clone().render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = write!(
        text,
        "# {name}\n\n```\n{}\n```\n",
        help.join("\n").trim_end()
    );
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_command(sub, text);
    }
}
