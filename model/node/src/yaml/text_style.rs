//! Chooses how a text is written in YAML, so that every parser of YAML 1.1 and 1.2 reads it back as the same text.

use std::fmt::Write as _;

/// A style of YAML scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    /// Without quotes.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// As a literal block below `|`.
    Literal,
}

/// The most readable style that is safe.
pub(crate) fn choose_style(text: &str) -> TextStyle {
    if is_literal(text) {
        TextStyle::Literal
    } else if is_plain(text) {
        TextStyle::Plain
    } else {
        TextStyle::Quoted
    }
}

/// True for characters that need no escape.
fn is_printable(c: char) -> bool {
    // Line and paragraph separators break lines in YAML 1.1; a byte order mark may vanish.
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

fn is_literal(text: &str) -> bool {
    // A text that begins with a space or an empty line would need an indentation indicator.
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && text
            .chars()
            .all(|c| is_printable(c) || matches!(c, '\n' | '\t'))
}

/// The header of a literal block, which determines how trailing newlines are kept.
pub(crate) fn literal_header(text: &str) -> &'static str {
    match (text.ends_with("\n\n"), text.ends_with('\n')) {
        (true, _) => "|+",
        (false, true) => "|",
        (false, false) => "|-",
    }
}

fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let Some(first) = first else { return false };
    let opens = match first {
        '-' | '?' | ':' => second.is_some_and(|c| c != ' '),
        ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
        | '@' | '`' => false,
        _ => true,
    };
    opens
        && text.chars().all(is_printable)
        && text.trim() == text
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !is_word_of_yaml(text)
        && !looks_like_a_number(text)
}

/// True for null, booleans of YAML 1.1, merge and default keys, and special numbers.
fn is_word_of_yaml(text: &str) -> bool {
    const WORDS: [&str; 17] = [
        "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "-.inf", "+.inf",
        ".nan", "nan", "<<", "=",
    ];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// True for numbers in any base, dates, base-60 numbers, and texts that resemble them.
fn looks_like_a_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let based = ["0x", "0o", "0b", "0X", "0O", "0B"]
        .iter()
        .any(|base| unsigned.starts_with(base));
    let starts = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    starts && (based || is_date(unsigned) || is_decimal(unsigned))
}

/// True for digits with at most one dot, colons between groups, and an exponent.
fn is_decimal(text: &str) -> bool {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (
            number,
            exponent.strip_prefix(['-', '+']).unwrap_or(exponent),
        ),
        None => (text, "0"),
    };
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
    number.split([':', '.']).all(digits)
        && number.matches('.').count() <= 1
        && number.chars().any(|c| c.is_ascii_digit())
        && digits(exponent)
}

/// True for `2017-01-01`, with or without a time.
fn is_date(text: &str) -> bool {
    let date = text.split(['T', 't', ' ']).next().unwrap_or_default();
    let mut parts = date
        .split('-')
        .map(|part| (part.len(), part.bytes().all(|byte| byte.is_ascii_digit())));
    let short = |part| matches!(part, Some((1 | 2, true)));
    parts.next() == Some((4, true))
        && short(parts.next())
        && short(parts.next())
        && parts.next().is_none()
}

/// Quotes a text as kOps' writer does: double quotes if the plain text would be read as another type or needs escapes, otherwise
/// single quotes.
pub(crate) fn quote_text(text: &str) -> String {
    let other = text.is_empty() || is_word_of_yaml(text) || looks_like_a_number(text);
    if !other && text.chars().all(is_printable) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            c => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}
