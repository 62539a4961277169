//! Colour. Every output is complete without it.

use node::terminal::is_terminal_control;

/// The meaning of a piece of text, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// An addition; success.
    Add,
    /// A change; a warning.
    Change,
    /// A deletion; an error.
    Delete,
    /// A heading or an important name.
    Strong,
    /// Less important than the rest.
    Faint,
    Hint,
}

/// Colours text, or leaves it unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// `on`: whether to colour.
    pub fn new(on: bool) -> Self {
        Self { on }
    }

    /// The text in the tone's colour.
    pub fn with_tone(self, tone: Tone, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        format!("{}{text}{END}", tone.start_sequence())
    }

    /// Replaces terminal control characters by blanks, except for this module's own colours. The text may come from instances.
    pub fn sanitize(self, text: &str) -> String {
        let mut safe = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(is_terminal_control) {
            let (before, from) = rest.split_at(at);
            safe.push_str(before);
            let ours = self.on.then(|| own_sequence(from)).flatten();
            let length = match ours {
                Some(code) => {
                    safe.push_str(code);
                    code.len()
                }
                None => {
                    safe.push(' ');
                    from.chars().next().map_or(0, char::len_utf8)
                }
            };
            rest = from.get(length..).unwrap_or_default();
        }
        safe.push_str(rest);
        safe
    }
}

const END: &str = "\x1b[0m";

/// The own colour sequence at the start of a text, if there is one.
fn own_sequence(text: &str) -> Option<&'static str> {
    let tones = Tone::ALL.map(Tone::start_sequence);
    let mut known = tones.into_iter().chain([END]);
    known.find(|code| text.starts_with(code))
}

impl Tone {
    const ALL: [Self; 6] = [
        Self::Add,
        Self::Change,
        Self::Delete,
        Self::Strong,
        Self::Faint,
        Self::Hint,
    ];

    /// The sequence that starts the colour.
    fn start_sequence(self) -> &'static str {
        match self {
            Self::Add => "\x1b[32m",
            Self::Change => "\x1b[33m",
            Self::Delete => "\x1b[31m",
            Self::Strong => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Hint => "\x1b[36m",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Paint, Tone};

    /// A title, a jump to the line above, the clipboard, hidden text, a turned line, a C1 sequence.
    const STEERING: [&str; 6] = [
        "\x1b]0;title\x07",
        "\x1b[1A\x1b[2K",
        "\x1b]52;c;bWFsaWNl\x1b\\",
        "\x1b[8m",
        "\u{202e}",
        "\u{9b}2J",
    ];

    #[test]
    fn nothing_that_a_machine_says_steers_the_terminal_painted_or_not() {
        for on in [false, true] {
            let paint = Paint::new(on);
            for said in STEERING {
                let shown =
                    paint.sanitize(&paint.with_tone(Tone::Delete, &format!("disk {said}is full")));
                let without = shown.replace("\x1b[31m", "").replace("\x1b[0m", "");
                assert!(
                    !without.contains(node::terminal::is_terminal_control),
                    "{shown:?}"
                );
                assert!(without.contains("disk ") && without.contains("is full"));
            }
        }
    }

    #[test]
    fn our_own_colours_and_lines_stay() {
        let paint = Paint::new(true);
        let text = format!("{}\n\tÄ", paint.with_tone(Tone::Hint, "next:"));
        assert_eq!(paint.sanitize(&text), text);
        assert_eq!(
            Paint::new(false).sanitize(&text),
            text.replace('\u{1b}', " ")
        );
    }
}
