//! Objects of the state store with a number of their format, checked before anything else is read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Format of these objects, such as the records and markers of etcd. Readers accept this one and the one before and do not change the
/// number. New fields need no new format. A release that does not know a state of a record cannot read the record, and leaves the member
/// as it is.
pub const FORMAT: u32 = 1;

/// Fields of a newer release, written back unchanged.
pub type UnknownFields = Map<String, Value>;

/// Why an object could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not valid JSON of this type.
    #[error("{what} cannot be read")]
    Unreadable {
        /// Name of the object.
        what: String,
        /// Error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// A release that is too new or too old wrote the object.
    #[error(
        "{what} has format {found}, but this release reads only {FORMAT} and the one before: run the release that wrote it"
    )]
    Format {
        /// Name of the object.
        what: String,
        /// Format of the object.
        found: u32,
    },
}

/// Parses JSON with a field `format`, which is checked first.
pub fn parse_formatted<T: serde::de::DeserializeOwned>(
    what: &str,
    bytes: &[u8],
) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Formatted {
        format: u32,
    }
    let unreadable = |source| Error::Unreadable {
        what: what.to_owned(),
        source,
    };
    let Formatted { format } = serde_json::from_slice(bytes).map_err(unreadable)?;
    if format > FORMAT || format + 1 < FORMAT {
        return Err(Error::Format {
            what: what.to_owned(),
            found: format,
        });
    }
    serde_json::from_slice(bytes).map_err(unreadable)
}

/// Writes indented JSON. It cannot fail for these types, because their keys are texts.
pub fn to_pretty_json<T: Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    format!("{value:#}\n")
}
