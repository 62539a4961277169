//! Until when the Kubernetes project makes patch releases of a minor, and what is said about it near that day.

use crate::validate::versions::Version;
use time::macros::date;
use time::{Date, Duration};

/// Where the days are published.
const PAGE: &str = "https://kubernetes.io/releases/";

/// How long before the end of a minor it is announced.
const NOTICE: Duration = Duration::days(60);

/// The last day of a minor of Kubernetes 1 (<https://kubernetes.io/releases/>). A later patch of it is an exception.
pub fn end_of_life(minor: u32) -> Option<Date> {
    match minor {
        32 => Some(date!(2026 - 02 - 28)),
        33 => Some(date!(2026 - 06 - 28)),
        34 => Some(date!(2026 - 10 - 27)),
        35 => Some(date!(2027 - 02 - 28)),
        36 => Some(date!(2027 - 06 - 28)),
        37 => Some(date!(2027 - 10 - 28)),
        _ => None,
    }
}

/// That the minor of a version has ended, or ends within 60 days of `today`. `None` if it does not.
pub fn end_of_life_warning(version: &Version, today: Date) -> Option<String> {
    let end = end_of_life(version.minor)?;
    let minor = format!("Kubernetes 1.{}", version.minor);
    if end < today {
        return Some(format!(
            "{minor} ended on {end}: it gets no more patches, not even for vulnerabilities ({PAGE}); kctl upgrade shows the next version"
        ));
    }
    (end - today <= NOTICE).then(|| {
        format!(
            "{minor} ends on {end}: after that it gets no more patches ({PAGE}); kctl upgrade shows the next version"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{end_of_life, end_of_life_warning};
    use crate::validate::versions::{NEWEST_MINOR, OLDEST_MINOR, Version};
    use time::Duration;

    #[test]
    fn minors_end_in_their_order() {
        let ends: Vec<_> = (OLDEST_MINOR..=NEWEST_MINOR)
            .map(|minor| end_of_life(minor).unwrap())
            .collect();
        assert!(ends.is_sorted_by(|one, next| one < next), "{ends:?}");
        assert_eq!(end_of_life(NEWEST_MINOR + 1), None);
    }

    #[test]
    fn an_end_is_said_from_sixty_days_before_on() {
        let version = Version::parse("1.35.7").unwrap();
        let end = end_of_life(35).unwrap();
        for (days, words) in [
            (-61, None),
            (-60, Some("ends on 2027-02-28")),
            (0, Some("ends on 2027-02-28")),
            (1, Some("ended on 2027-02-28")),
            (400, Some("ended on 2027-02-28")),
        ] {
            let said = end_of_life_warning(&version, end + Duration::days(days));
            assert_eq!(said.is_some(), words.is_some(), "{days}");
            let said = said.unwrap_or_default();
            assert!(said.contains(words.unwrap_or_default()), "{days}: {said}");
        }
    }
}
