//! Moments: times of the command line, and those of a store's clock as text, in RFC 3339.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A time of the command line.
pub fn parse(text: &str) -> Result<OffsetDateTime, String> {
    let parsed = OffsetDateTime::parse(text, &Rfc3339);
    parsed.map_err(|error| {
        format!(
            "{text:?} is no time of RFC 3339 ({error}): write for example 2026-11-26T15:04:05Z, or with an offset, 2026-11-26T16:04:05+01:00"
        )
    })
}

/// Unix seconds as text, in UTC.
pub fn text(seconds: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(seconds).ok();
    let text = time.and_then(|time| time.format(&Rfc3339).ok());
    text.unwrap_or_else(|| format!("second {seconds} since 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_date_a_time_and_an_offset() {
        for (good, utc) in [
            ("2026-11-26T15:04:05Z", "2026-11-26T15:04:05Z"),
            ("2026-11-26T16:04:05+01:00", "2026-11-26T15:04:05Z"),
            ("2026-11-26T15:04:05.9Z", "2026-11-26T15:04:05Z"),
        ] {
            let parsed = parse(good).unwrap();
            assert_eq!(text(parsed.unix_timestamp()), utc, "{good}");
        }
        for wrong in [
            "",
            "now",
            "15:04",
            "2026-11-26",
            "2026-11-26T15:04:05",
            "2026-13-26T15:04:05Z",
            "1795705445",
        ] {
            let said = parse(wrong).unwrap_err();
            assert!(said.contains("2026-11-26T15:04:05Z"), "{said}");
        }
    }
}
