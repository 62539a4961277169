//! Checks the age of a signature. STS accepts up to fifteen minutes; kctl accepts five.

use super::Refusal;
use super::untrusted_text::untrusted_excerpt;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Duration, OffsetDateTime, PrimitiveDateTime};

/// Largest difference between a signature's date and the current time, in both directions.
const WINDOW: Duration = Duration::minutes(5);

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year][month][day]T[hour][minute][second]Z");

/// Checks a header `x-amz-date` (`20300101T000000Z`).
pub(super) fn check_date(date: &str, now: OffsetDateTime) -> Result<(), Refusal> {
    let signed = PrimitiveDateTime::parse(date, FORMAT).map_err(|_| Refusal::Identity {
        why: "has an x-amz-date that is not a date".to_owned(),
    })?;
    if (now - signed.assume_utc()).abs() <= WINDOW {
        return Ok(());
    }
    Err(Refusal::Date {
        signed: untrusted_excerpt(date),
        now: now.format(FORMAT).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn five_minutes_pass_either_way_and_no_more() {
        let now = datetime!(2030-01-01 12:00 UTC);
        for good in ["20300101T115500Z", "20300101T120000Z", "20300101T120500Z"] {
            assert_eq!(check_date(good, now), Ok(()));
        }
        for bad in ["20300101T115459Z", "20300101T120501Z", "20290101T120000Z"] {
            assert!(matches!(check_date(bad, now), Err(Refusal::Date { .. })));
        }
        for no_date in ["", "2030-01-01T12:00:00Z", "20301301T000000Z"] {
            let refusal = check_date(no_date, now);
            assert!(matches!(refusal, Err(Refusal::Identity { .. })));
        }
    }
}
