//! Which characters steer a terminal instead of being shown. What machines, Nodes and others' files say is shown to
//! operators, and may be a thief's.

/// True of control characters, but for the end of a line and the tab, and of those that turn the direction of text or end
/// lines unseen.
pub fn steers(character: char) -> bool {
    let text = ['\n', '\t'].contains(&character);
    (character.is_control() && !text)
        || matches!(
            character,
            '\u{061c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::steers;

    #[test]
    fn text_in_any_script_is_shown_and_nothing_that_moves_it() {
        assert!(!"a\tb\nÄ مرحبا שלום 漢字 🙂".contains(steers));
        for character in ['\r', '\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}'] {
            assert!(steers(character), "{character:?}");
        }
    }
}
