//! A page's commands: what stands in its blocks of shell.

/// A command, and what the page says of it behind `#`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCommand {
    pub command: String,
    pub comment: String,
}

/// All commands of a page in order: the lines of ```` ```sh ````, and those of ```` ```console ```` that begin with `$`.
pub fn page_commands(page: &str) -> Vec<TypedCommand> {
    let mut found = Vec::new();
    let mut block: Option<&str> = None;
    let mut begun = String::new();
    for line in page.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            block = block.is_none().then_some(language);
            continue;
        }
        let line = match block {
            Some("sh") => line,
            Some("console") => match line.strip_prefix("$ ") {
                Some(line) => line,
                None => continue,
            },
            _ => continue,
        };
        if let Some(line) = line.strip_suffix('\\') {
            begun += line;
            continue;
        }
        let whole = std::mem::take(&mut begun) + line;
        let (command, comment) = whole.split_once(" #").unwrap_or((&whole, ""));
        if !command.is_empty() {
            found.push(TypedCommand {
                command: command.trim().to_owned(),
                comment: comment.trim().to_owned(),
            });
        }
    }
    found
}

#[test]
fn commands_are_found_in_blocks_of_shell_only() {
    let page = "a\n```sh\none    # with a comment\ntwo \\\n  three\n```\n`four`\n```yaml\nfive: 5\n```\n1. b\n\n   ```console\n   $ six\n   output\n   ```\n";
    let typed = |command: &str, comment: &str| TypedCommand {
        command: command.to_owned(),
        comment: comment.to_owned(),
    };
    let expected = [
        typed("one", "with a comment"),
        typed("two three", ""),
        typed("six", ""),
    ];
    assert_eq!(page_commands(page), expected);
}
