//! How text is written in YAML so that every reader, of YAML 1.1 and 1.2, takes it for that text.

use std::fmt::Write as _;

/// A way to write text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    Plain,
    /// In quotes.
    Quoted,
    /// Line by line below a `|`.
    Literal,
}

/// The most readable way that is safe.
pub(crate) fn style(text: &str) -> Style {
    if is_literal(text) {
        Style::Literal
    } else if is_plain(text) {
        Style::Plain
    } else {
        Style::Quoted
    }
}

/// Characters that stand for themselves outside quotes.
fn is_printable(c: char) -> bool {
    // Line and paragraph separators break lines in YAML 1.1; a byte order mark may vanish.
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

fn is_literal(text: &str) -> bool {
    // Text that begins with a space or an empty line would need its indentation told.
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && text
            .chars()
            .all(|c| is_printable(c) || matches!(c, '\n' | '\t'))
}

/// The line that opens a literal: what becomes of the newlines at its end.
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

/// Null, booleans of YAML 1.1, merge and default keys, numbers that are none.
fn is_word_of_yaml(text: &str) -> bool {
    const WORDS: [&str; 17] = [
        "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "-.inf", "+.inf",
        ".nan", "nan", "<<", "=",
    ];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Numbers of any base, dates, and base-60 numbers, and what comes close to them.
fn looks_like_a_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let based = ["0x", "0o", "0b", "0X", "0O", "0B"]
        .iter()
        .any(|base| unsigned.starts_with(base));
    let starts = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    starts && (based || is_date(unsigned) || is_decimal(unsigned))
}

/// Digits with one dot at most, colons between groups of them, an exponent behind them.
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

/// `2017-01-01`, alone or with a time behind it.
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

/// Text in quotes, as kOps' writer has them: double ones where plain text would be taken for
/// something other than text and where characters must be escaped, single ones elsewhere.
pub(crate) fn quoted(text: &str) -> String {
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
