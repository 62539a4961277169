//! An event of etcd's watch, and its line in a part: JSON, with bytes in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Bytes of a line besides its key and value, at most: names, and numbers of 20 digits.
const LINE_FRAME: usize = 160;

/// A change of a key, as etcd's watch sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedEvent {
    /// etcd's revision of the change. All changes of one transaction have the same.
    pub revision: u64,
    /// The key, which is not empty.
    pub key: Vec<u8>,
    /// Its value; `None`: the key was deleted.
    pub value: Option<Vec<u8>>,
    /// Id of its lease, which is not 0; `None`: it has none, or was deleted.
    pub lease: Option<u64>,
    /// Revision at which the key was created; 0 if it was deleted.
    pub created: u64,
    /// How often it was written since it was created, from 1 on; 0 if it was deleted.
    pub version: u64,
}

/// The line of an event. A field that this release does not know may change what an event means, so it is refused.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventLine {
    rev: u64,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// Hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
    created: u64,
    version: u64,
}

impl WatchedEvent {
    /// Checks that etcd can have sent it. The error says what is wrong, without key and value, which may be secret.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_possible = match &self.value {
            _ if self.key.is_empty() => false,
            Some(_) => {
                self.version > 0
                    && (1..=self.revision).contains(&self.created)
                    && self.lease != Some(0)
            }
            None => (self.created, self.version, self.lease) == (0, 0, None),
        };
        if is_possible {
            return Ok(());
        }
        let what = match &self.value {
            Some(_) => "a change",
            None => "a deletion",
        };
        let lease = self.lease.map(|lease| format!("{lease:x}"));
        Err(format!(
            "etcd sends no such event: {what} at revision {} of a key of {} bytes, created at {}, version {}, lease {}",
            self.revision,
            self.key.len(),
            self.created,
            self.version,
            lease.as_deref().unwrap_or("none")
        ))
    }

    /// Bytes of its line at most.
    pub(super) fn most_bytes(&self) -> usize {
        let value = self.value.as_ref().map_or(0, Vec::len);
        let encoded = [self.key.len(), value].map(|bytes| bytes.div_ceil(3).saturating_mul(4));
        encoded.into_iter().fold(LINE_FRAME, usize::saturating_add)
    }

    /// Its line, without an end of line.
    pub(super) fn to_line(&self) -> String {
        let line = EventLine {
            rev: self.revision,
            key: STANDARD.encode(&self.key),
            value: self.value.as_ref().map(|value| STANDARD.encode(value)),
            lease: self.lease.map(|lease| format!("{lease:x}")),
            created: self.created,
            version: self.version,
        };
        // It cannot fail for texts and numbers, and a part with an empty line is refused.
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Parses a line, without its end. The error says what is wrong, and repeats nothing of a value.
    pub(super) fn parse_line(line: &[u8]) -> Result<Self, String> {
        let line: EventLine =
            serde_json::from_slice(line).map_err(|_| "it is no event".to_owned())?;
        let decode = |text: &String| {
            let decoded = STANDARD.decode(text);
            decoded.map_err(|_| "its key or value is not base64".to_owned())
        };
        let event = Self {
            revision: line.rev,
            key: decode(&line.key)?,
            value: line.value.as_ref().map(decode).transpose()?,
            lease: line.lease.as_deref().map(parse_lease).transpose()?,
            created: line.created,
            version: line.version,
        };
        event.check()?;
        Ok(event)
    }
}

/// The id of a lease, in exactly the form in which it is written.
fn parse_lease(text: &str) -> Result<u64, String> {
    let lease = u64::from_str_radix(text, 16).ok();
    let lease = lease.filter(|lease| format!("{lease:x}") == text);
    lease.ok_or_else(|| "its lease is no hexadecimal number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{event, stream};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_event_is_read_as_it_was_written_and_its_line_is_no_longer_than_reckoned(events in stream(u64::MAX - 40)) {
            for event in events {
                let line = event.to_line();
                prop_assert!(line.len() < event.most_bytes(), "{line}");
                prop_assert!(!line.contains('\n'));
                prop_assert_eq!(WatchedEvent::parse_line(line.as_bytes()), Ok(event));
            }
        }
    }

    #[test]
    fn a_line_is_as_documented() {
        let put = WatchedEvent {
            lease: Some(0x7587_1a2b),
            created: 7,
            version: 2,
            ..event(9, "/a", Some("b"))
        };
        let lines = [put, event(10, "/a", None)].map(|event| event.to_line());
        assert_eq!(
            lines,
            [
                r#"{"rev":9,"key":"L2E=","value":"Yg==","lease":"75871a2b","created":7,"version":2}"#,
                r#"{"rev":10,"key":"L2E=","created":0,"version":0}"#,
            ]
        );
    }

    #[test]
    fn what_etcd_cannot_have_sent_is_refused_and_no_value_is_repeated() {
        for line in [
            "",
            "{}",
            r#"{"rev":9,"key":"","value":"Yg==","created":7,"version":2}"#,
            r#"{"rev":9,"key":"L2E=","value":"Yg","created":7,"version":2}"#,
            r#"{"rev":9,"key":"L2E=","value":7,"created":7,"version":2}"#,
            r#"{"rev":9,"key":"L2E=","value":"Yg==","created":10,"version":2}"#,
            r#"{"rev":9,"key":"L2E=","value":"Yg==","created":0,"version":2}"#,
            r#"{"rev":9,"key":"L2E=","value":"Yg==","created":7,"version":0}"#,
            r#"{"rev":9,"key":"L2E=","value":"Yg==","lease":"0","created":7,"version":2}"#,
            r#"{"rev":9,"key":"L2E=","value":"Yg==","lease":"+1","created":7,"version":2}"#,
            r#"{"rev":9,"key":"L2E=","value":"Yg==","created":7,"version":2,"later":1}"#,
            r#"{"rev":9,"key":"L2E=","created":7,"version":0}"#,
            r#"{"rev":9,"key":"L2E=","lease":"1","created":0,"version":0}"#,
        ] {
            let why = WatchedEvent::parse_line(line.as_bytes()).unwrap_err();
            assert!(!why.contains("Yg"), "{why}");
        }
    }
}
