//! Scalars of the spec that are kept as written.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A Kubernetes quantity as written: `100m`, `170Mi`, `3.14`.
pub type Quantity = String;

/// A Go duration as written: `1m0s`, `15m`.
pub type Duration = String;

/// A number, or text such as a percentage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// A number.
    Int(i64),
    /// Anything else, as written.
    String(String),
}

// By hand: serde's untagged would not say what it wanted.
impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = IntOrString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or text")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<IntOrString, E> {
                Ok(IntOrString::Int(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<IntOrString, E> {
                // JSON's and YAML's readers hand over every number that is not negative like this.
                Ok(i64::try_from(value)
                    .map_or_else(|_| IntOrString::String(value.to_string()), IntOrString::Int))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<IntOrString, E> {
                Ok(IntOrString::String(value.to_string()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<IntOrString, E> {
                Ok(IntOrString::String(text.to_owned()))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::IntOrString;

    #[test]
    fn a_number_stays_one_whoever_reads_it() {
        for (text, wanted) in [
            ("444", IntOrString::Int(444)),
            ("-1", IntOrString::Int(-1)),
            ("\"444\"", IntOrString::String("444".to_owned())),
            (
                "18446744073709551615",
                IntOrString::String("18446744073709551615".to_owned()),
            ),
        ] {
            let yaml: IntOrString = serde_saphyr::from_str(text).unwrap();
            let json: IntOrString = serde_json::from_str(text).unwrap();
            assert_eq!((yaml, json), (wanted.clone(), wanted), "{text}");
        }
    }
}
