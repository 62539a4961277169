//! HTTP on a Unix socket in a scratch folder: its etcd has a network of its own. etcd takes the host of a URL `unix://localhost:2380` as the
//! path of the socket, below its working folder. Older releases demand a host and a port, and no path (etcd: issue 12450,
//! `client/pkg/types/urls.go`; `server/embed/etcd.go`, `resolveURL`).

use anyhow::Context;
use host::Host;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// An answer that is not the one that was asked for.
#[derive(Debug, thiserror::Error)]
#[error("etcd answers {what} with {status}: {body}")]
pub(crate) struct Refused {
    what: String,
    status: String,
    body: String,
}

impl Refused {
    /// True for what etcd cannot do at this moment, as when its raft loop does not come to an end in time (`ErrGRPCTimeout`).
    pub(crate) fn is_unavailable(&self) -> bool {
        self.status.contains(" 503 ")
    }
}

/// The answer to a request, such as `GET /metrics`. A body is JSON. HTTP/1.0 has no chunks, and ends with the connection.
pub(crate) fn request(
    host: &Host,
    socket: &str,
    (what, body): (&str, Option<&str>),
    timeout: Duration,
) -> anyhow::Result<Vec<u8>> {
    let ask = || -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(host.path_below_root(socket))?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let mut head = format!("{what} HTTP/1.0\r\nHost: localhost\r\n");
        if let Some(body) = body {
            let bytes = body.len();
            head.push_str("Content-Type: application/json\r\n");
            head.push_str(&format!("Content-Length: {bytes}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{}", body.unwrap_or_default()).as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().with_context(|| format!("etcd does not answer at {socket}"))?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.map_or(answer.len(), |end| end + 4));
    let head = String::from_utf8_lossy(head);
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        let refused = Refused {
            what: what.to_owned(),
            status: status.to_owned(),
            body: String::from_utf8_lossy(body).trim().to_owned(),
        };
        return Err(refused).with_context(|| format!("etcd at {socket}"));
    }
    Ok(body.to_vec())
}
