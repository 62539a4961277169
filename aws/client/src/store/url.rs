//! The address of a state store.

use super::StoreError;
use std::path::PathBuf;

/// Where a store lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// `s3://BUCKET[/PREFIX]`.
    S3 {
        bucket: String,
        /// Keys begin with it and a slash; empty: none. No slash at either end.
        prefix: String,
    },
    /// `file://DIR`, an absolute path.
    File {
        /// The directory; made by the first write.
        dir: PathBuf,
    },
}

impl Location {
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        if let Some(rest) = url.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            let prefix = prefix.trim_matches('/').to_owned();
            let good = !bucket.is_empty() && !prefix.split('/').skip(1).any(str::is_empty);
            return if good {
                Ok(Self::S3 {
                    bucket: bucket.to_owned(),
                    prefix,
                })
            } else {
                Err(address_error(
                    url,
                    "expected s3://BUCKET or s3://BUCKET/PREFIX",
                ))
            };
        }
        match url.strip_prefix("file://") {
            Some(path) if path.starts_with('/') && path.trim_matches('/').is_empty() => {
                Err(address_error(url, "the root directory is no place for it"))
            }
            Some(path) if path.starts_with('/') => Ok(Self::File {
                dir: PathBuf::from(path),
            }),
            Some(_) => Err(address_error(
                url,
                "expected an absolute path after file://",
            )),
            None => Err(address_error(
                url,
                "expected s3://BUCKET or file:///DIRECTORY",
            )),
        }
    }
}

/// True if both addresses are of one place, however they are written.
pub fn is_same_place(one: &str, other: &str) -> bool {
    match (Location::parse(one), Location::parse(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn address_error(url: &str, reason: &str) -> StoreError {
    StoreError::Address {
        url: url.to_owned(),
        reason: reason.to_owned(),
    }
}
