//! How old an object is by the bucket's own clock: the date of the answer less the date of the last change, so that
//! nobody's clock but S3's counts.

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeDeserializationInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::DateTime;
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::date_time::Format;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Both dates are whole seconds, cut off: their difference may be this much more than it was.
const CUT_OFF: Duration = Duration::from_secs(1);

/// The `Date` header of the last response.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerDate(Arc<Mutex<Option<DateTime>>>);

impl AnswerDate {
    /// `None` if there was no response, or it has no valid `Date` header.
    pub(super) fn answered_at(&self) -> Option<DateTime> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Intercept for AnswerDate {
    fn name(&self) -> &'static str {
        "date of the answer"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let date = date.and_then(|date| DateTime::from_str(date, Format::HttpDate).ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date;
        Ok(())
    }
}

/// The minimum age of an object at the time of the response.
pub(super) fn object_age(
    answered: Option<DateTime>,
    modified: Option<DateTime>,
) -> Option<Duration> {
    let seconds = answered?.secs().saturating_sub(modified?.secs());
    // An object of the future was written now.
    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Some(seconds.saturating_sub(CUT_OFF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_never_more_than_it_can_be() {
        let at = |time: f64| DateTime::from_secs_f64(time);
        let cut = |time: f64| Some(DateTime::from_secs(at(time).secs()));
        for tenth in 0..50 {
            let (modified, after) = (100.9, f64::from(tenth) / 10.0);
            let age = object_age(cut(modified + after), cut(modified)).unwrap();
            assert!(age.as_secs_f64() <= after, "{age:?} of {after}");
            assert!(age.as_secs_f64() + 2.0 > after, "{age:?} of {after}");
        }
        assert_eq!(object_age(cut(5.0), cut(9.0)), Some(Duration::ZERO));
        assert_eq!(object_age(None, cut(9.0)), None);
    }
}
