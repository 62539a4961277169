//! Durations as Go writes them, and kOps' users with it: `18h`, `1h30m`, `90s`, `500ms`.

use std::time::Duration;

/// A duration of the command line.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration: write for example 10m, 90s or 1h30m");
    let (mut total, mut rest) = (Duration::ZERO, text);
    if text.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let letters = unit.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, after) = unit.split_at(letters);
        let one = match unit {
            "h" => Duration::from_hours(1),
            "m" => Duration::from_mins(1),
            "s" => Duration::from_secs(1),
            "ms" => Duration::from_millis(1),
            // Go takes a bare zero too.
            "" if text == "0" => Duration::ZERO,
            _ => return Err(wrong()),
        };
        let factor = u32::try_from(number).map_err(|_| wrong())?;
        total = one
            .checked_mul(factor)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(wrong)?;
        rest = after;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos() {
        let seconds = |text: &str| parse(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("18h"), Ok(64_800.0));
        assert_eq!(seconds("1h30m"), Ok(5_400.0));
        assert_eq!(seconds("1m500ms"), Ok(60.5));
        assert_eq!(seconds("0"), Ok(0.0));
        for wrong in [
            "",
            "18",
            "h",
            "1d",
            "-1h",
            "1h ",
            "1.5h",
            "99999999999999999h",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
