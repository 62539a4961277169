//! Excerpts of untrusted text for replies and logs: anyone can call the endpoint with texts of any content and length.

/// Characters of an excerpt.
const LONGEST: usize = 100;

/// The first [`LONGEST`] characters of a text, with control characters replaced by blanks; `...` marks a cut.
pub fn untrusted_excerpt(text: &str) -> String {
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
    use super::{LONGEST, untrusted_excerpt};

    #[test]
    fn only_the_beginning_of_a_long_text_is_told_and_nothing_that_steers() {
        assert_eq!(untrusted_excerpt("a.example.com"), "a.example.com");
        assert_eq!(
            untrusted_excerpt(&"\u{e4}".repeat(LONGEST)),
            "\u{e4}".repeat(LONGEST)
        );
        let long = untrusted_excerpt(&"a".repeat(4000));
        assert_eq!(long, "a".repeat(LONGEST) + "...");
        assert_eq!(untrusted_excerpt("a\u{1b}[2J\nb"), "a [2J b");
    }
}
