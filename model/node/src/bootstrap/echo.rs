//! What a caller said, as far as it is told back to it and to the log: anybody may call, and say anything at any length.

/// Characters that are told.
const LONGEST: usize = 100;

/// The beginning of a text, without what would steer a terminal.
pub fn echo(text: &str) -> String {
    let mut characters = text.chars();
    let shown = characters.by_ref().take(LONGEST);
    let plain = |character: char| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    };
    let shown: String = shown.map(plain).collect();
    match characters.next() {
        Some(_) => shown + "...",
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, echo};

    #[test]
    fn only_the_beginning_of_a_long_text_is_told_and_nothing_that_steers() {
        assert_eq!(echo("a.example.com"), "a.example.com");
        assert_eq!(echo(&"\u{e4}".repeat(LONGEST)), "\u{e4}".repeat(LONGEST));
        let long = echo(&"a".repeat(4000));
        assert_eq!(long, "a".repeat(LONGEST) + "...");
        assert_eq!(echo("a\u{1b}[2J\nb"), "a [2J b");
    }
}
