//! Colour. It only repeats what the text says: every output is complete without it.

/// What a piece of text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Something appears; success.
    Add,
    /// Something changes; a warning.
    Change,
    /// Something goes; an error.
    Delete,
    /// A heading, the name that matters.
    Strong,
    /// Less important than the rest.
    Faint,
    /// A next step.
    Hint,
}

/// Puts colour on text, or leaves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Colour, or none.
    pub fn new(on: bool) -> Self {
        Self { on }
    }

    /// The text in the tone's colour.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Add => "32",
            Tone::Change => "33",
            Tone::Delete => "31",
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Hint => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
