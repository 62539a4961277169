//! Who asked which service for what: one JSON object a line.

use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A request in the access log.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// `dns`, `metadata`, `aws`, `mirror`, `registry`, `front` (no such site).
    pub service: &'static str,
    /// Address of the client.
    pub source: String,
    /// Whose address that is, where one instance has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// HTTP's, or the type of a DNS query.
    pub method: String,
    /// As asked for; the name of a DNS query.
    pub host: String,
    /// With the query string, without what signs it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// HTTP's, or the response code of a DNS answer; 0: the connection was closed without an answer.
    pub status: u16,
    /// Of the body, as far as it was sent; of a DNS answer, how many records.
    pub bytes: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Unix time in seconds.
    time: f64,
    #[serde(flatten)]
    entry: &'a Entry,
}

/// Appends to one file; clones share it.
#[derive(Debug, Clone)]
pub struct AccessLog(Arc<Mutex<File>>);

impl AccessLog {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("access log {}: {error}", path.display()),
            )
        })?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    /// A log that cannot be written stops no service.
    pub fn write(&self, entry: &Entry) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = now.map_or(0.0, |since| since.as_secs_f64());
        let written = serde_json::to_vec(&Line { time, entry }).map_err(io::Error::from);
        let written = written.and_then(|mut line| {
            line.push(b'\n');
            let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(&line)
        });
        if let Err(error) = written {
            tracing::error!(%error, "the access log cannot be written");
        }
    }
}
