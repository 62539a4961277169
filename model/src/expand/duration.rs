//! Go durations, as the spec writes them.

/// Seconds of a duration such as `720h` or `1h30m0s`; `None` if it is none, is below zero or has
/// parts of seconds.
pub(super) fn seconds(text: &str) -> Option<i32> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut total: i32 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i32 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let unit = match rest.as_bytes().first()? {
            b'h' => 3600,
            b'm' => 60,
            b's' => 1,
            _ => return None,
        };
        rest = rest.get(1..)?;
        total = total.checked_add(number.checked_mul(unit)?)?;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn hours_minutes_and_seconds_add_up() {
        assert_eq!(seconds("720h"), Some(2_592_000));
        assert_eq!(seconds("1h30m5s"), Some(5405));
        assert_eq!(seconds("0"), Some(0));
        assert_eq!(seconds("0s"), Some(0));
        for text in ["", "5", "-5s", "1.5h", "100ms", "h", "999999h"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
