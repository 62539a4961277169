//! Durations: Go's syntax, which the spec uses (`1h30m`, `90s`, `500ms`), and text for people (`3m20s`).

/// Seconds of a Go duration such as `1h30m`, `-1.5s` or `0`; `None` if the text is not a duration.
pub fn parse_seconds(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let mut total = None;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest.get(..end)?.parse().ok()?;
        rest = rest.get(end..)?;
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let factor = match rest.get(..end)? {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        rest = rest.get(end..)?;
        total = Some(total.unwrap_or(0.0) + number * factor);
    }
    total.map(|total: f64| sign * total)
}

/// Seconds of a duration that is a whole number of seconds and not negative; `None` for any other text.
pub fn parse_whole_seconds(text: &str) -> Option<i32> {
    let seconds =
        parse_seconds(text).filter(|seconds| *seconds >= 0.0 && seconds.fract() == 0.0)?;
    format!("{seconds}").parse().ok()
}

/// Milliseconds of a positive duration, rounded; `None` for any other text.
pub fn parse_milliseconds(text: &str) -> Option<u64> {
    let milliseconds = (parse_seconds(text)? * 1000.0).round();
    let above_zero = milliseconds > 0.0;
    format!("{milliseconds}")
        .parse()
        .ok()
        .filter(|_| above_zero)
}

/// A time span in its two largest units: `45s`, `3m20s`, `5h02m`, `12d3h`. A negative one is `0s`.
pub fn duration_text(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, value) in [
            ("1m0s", 60.0),
            ("1h30m", 5400.0),
            ("0", 0.0),
            ("1.5s", 1.5),
            ("-2s", -2.0),
            ("250ms", 0.25),
        ] {
            assert_eq!(parse_seconds(text), Some(value), "{text}");
        }
        for text in ["", "5", "1d", "s", "1m1", "ten"] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn time_spans_have_two_units() {
        for (seconds, text) in [
            (-5, "0s"),
            (59, "59s"),
            (200, "3m20s"),
            (18_120, "5h02m"),
            (1_047_600, "12d3h"),
        ] {
            assert_eq!(duration_text(seconds), text);
        }
    }

    #[test]
    fn whole_units_are_whole() {
        assert_eq!(parse_whole_seconds("720h"), Some(2_592_000));
        assert_eq!(parse_whole_seconds("1h30m5s"), Some(5405));
        for text in ["", "5", "-5s", "1.5s", "100ms", "h", "999999h"] {
            assert_eq!(parse_whole_seconds(text), None, "{text}");
        }
        assert_eq!(parse_milliseconds("1m2s"), Some(62_000));
        for text in ["0s", "-1s", "1"] {
            assert_eq!(parse_milliseconds(text), None, "{text}");
        }
    }
}
