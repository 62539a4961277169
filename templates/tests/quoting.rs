//! The shell reads what the helpers quoted as it was.
#![cfg(test)]
#![allow(clippy::disallowed_types, reason = "the shell is asked")]

use std::process::Command;
use templates::{here_document, quote_sh};

const AWKWARD: [&str; 9] = [
    "",
    "plain",
    "a b",
    "it's",
    "$HOME `id` $(id)",
    "\"\\",
    "END\nEND_\n",
    "~ * ? [a]",
    "-n",
];

fn shell(script: &str) -> String {
    let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
    assert!(output.status.success(), "{script}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_shell_reads_what_sh_quoted_as_it_was() {
    for value in AWKWARD {
        assert_eq!(shell(&format!("printf %s {}", quote_sh(value))), value);
    }
}

#[test]
fn the_shell_reads_a_here_document_as_it_was() {
    for value in AWKWARD {
        let newline = if value.is_empty() || value.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        assert_eq!(
            shell(&format!("cat {}\n", here_document(value))),
            format!("{value}{newline}")
        );
    }
}
