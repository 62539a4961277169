//! What protokube says of its work: stage lines, one JSON object each, on standard error, which its unit sends to the
//! journal.

use model::report::{StageLine, Status};
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Where lines go. Cloning is cheap.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

/// A stage line, with the instance that it is about if it is another than this machine.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    line: StageLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
}

impl Log {
    /// Standard error. A line that cannot be written has nowhere else to go.
    pub fn stderr() -> Self {
        Self::to(|line| {
            let _ = writeln!(std::io::stderr(), "{line}");
        })
    }

    /// To whoever takes lines.
    pub fn to(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// One line. `detail` must hold nothing secret.
    pub fn say(&self, stage: &str, status: Status, instance: Option<&str>, detail: &str) {
        let line = StageLine {
            time: OffsetDateTime::now_utc()
                .format(&Rfc3339)
                .unwrap_or_default(),
            source: "protokube".to_owned(),
            stage: stage.to_owned(),
            status,
            seconds: 0.0,
            detail: detail.to_owned(),
        };
        let line = serde_json::to_string(&Line { line, instance });
        (self.0)(&line.unwrap_or_default());
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}
