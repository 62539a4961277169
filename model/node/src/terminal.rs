//! Characters that control a terminal instead of being shown. Texts from instances and files may come from an attacker and are
//! shown on operators' terminals.

/// True for control characters except newline and tab, and for characters that change the direction of text or break lines
/// invisibly.
pub fn is_terminal_control(character: char) -> bool {
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
    use super::is_terminal_control;

    #[test]
    fn text_in_any_script_is_shown_and_nothing_that_moves_it() {
        assert!(!"a\tb\nÄ مرحبا שלום 漢字 🙂".contains(is_terminal_control));
        for character in ['\r', '\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}'] {
            assert!(is_terminal_control(character), "{character:?}");
        }
    }
}
