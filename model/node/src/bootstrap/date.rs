//! How old a signature may be. STS takes up to fifteen minutes; we take five.

use super::Refusal;
use super::echo::echo;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Duration, OffsetDateTime, PrimitiveDateTime};

/// How far the date of a signature may be from our clock, either way.
const WINDOW: Duration = Duration::minutes(5);

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year][month][day]T[hour][minute][second]Z");

/// Checks `x-amz-date` (`20300101T000000Z`).
pub(super) fn check_date(date: &str, now: OffsetDateTime) -> Result<(), Refusal> {
    let signed = PrimitiveDateTime::parse(date, FORMAT).map_err(|_| Refusal::Identity {
        why: "has an x-amz-date that is no date".to_owned(),
    })?;
    if (now - signed.assume_utc()).abs() <= WINDOW {
        return Ok(());
    }
    Err(Refusal::Date {
        signed: echo(date),
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
