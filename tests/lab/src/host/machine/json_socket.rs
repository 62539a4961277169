//! QEMU's JSON protocol on a Unix socket, one command after the other: to its monitor, and to the agent in the machine.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the monitor may take to answer: QEMU shares two busy cores with all that it emulates.
const MONITOR: Duration = Duration::from_mins(1);

/// Stands before the answer to `guest-sync-delimited`, and nowhere in JSON.
const SENTINEL: u8 = 0xff;

/// A connection. QEMU serves one at a time, the others wait.
pub(super) struct JsonSocket(BufReader<UnixStream>);

impl JsonSocket {
    /// Connects to the monitor of a machine that is on.
    pub(super) fn connect_monitor(path: &Path) -> Result<Self> {
        let mut socket = Self::from_stream(connect(path)?, MONITOR)?;
        socket.ask("qmp_capabilities", &json!({}))?;
        Ok(socket)
    }

    /// Connects to the agent. Fails if it does not answer within `patience`, as before the machine's systemd has started it.
    pub(super) fn connect_agent(path: &Path, patience: Duration) -> Result<Self> {
        let mut socket = Self::from_stream(connect(path)?, patience)?;
        socket.synchronize()?;
        Ok(socket)
    }

    fn from_stream(stream: UnixStream, patience: Duration) -> Result<Self> {
        let limited = stream.set_read_timeout(Some(patience));
        let limited = limited.and_then(|()| stream.set_write_timeout(Some(patience)));
        limited.context("limiting the time of an answer")?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a command; what it returns. QEMU's refusal is an error.
    pub(super) fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        self.send(&[], command, arguments)?;
        loop {
            let mut answer = self.read_object().with_context(|| command.to_owned())?;
            if let Some(error) = answer.get("error") {
                let why = error.get("desc").and_then(Value::as_str);
                bail!("{command}: {}", why.unwrap_or("refused"));
            }
            // Anything else is the monitor's greeting, or an event.
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    /// Skips what the agent still answers to a client before this one, which did not wait for it.
    fn synchronize(&mut self) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let own = json!(now.as_secs() * 1_000_000 + u64::from(now.subsec_micros()));
        self.send(&[SENTINEL], "guest-sync-delimited", &json!({"id": own}))?;
        loop {
            let mut skipped = Vec::new();
            let read = self.0.read_until(SENTINEL, &mut skipped);
            let read = read.context("the agent does not answer")?;
            ensure!(read > 0, "the connection was closed");
            if self.read_object()?.get("return") == Some(&own) {
                return Ok(());
            }
        }
    }

    fn send(&mut self, before: &[u8], command: &str, arguments: &Value) -> Result<()> {
        let mut text = before.to_vec();
        serde_json::to_writer(
            &mut text,
            &json!({"execute": command, "arguments": arguments}),
        )?;
        text.push(b'\n');
        let sent = self.0.get_mut().write_all(&text);
        sent.with_context(|| format!("sending {command}"))
    }

    fn read_object(&mut self) -> Result<Value> {
        let mut line = Vec::new();
        let read = self.0.read_until(b'\n', &mut line).context("no answer")?;
        ensure!(read > 0, "the connection was closed");
        let text = || format!("{:?} is no JSON", String::from_utf8_lossy(&line));
        serde_json::from_slice(&line).with_context(text)
    }
}

fn connect(path: &Path) -> Result<UnixStream> {
    UnixStream::connect(path).with_context(|| format!("connecting to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A machine that reads a line for each of these answers, in which `@` is the number in the line.
    fn answer_with(answers: &'static [&'static [u8]]) -> JsonSocket {
        let (ours, theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let mut theirs = BufReader::new(theirs);
            for answer in answers {
                let mut line = Vec::new();
                theirs.read_until(b'\n', &mut line).unwrap();
                let number: Vec<u8> = line.into_iter().filter(u8::is_ascii_digit).collect();
                for part in answer.split_inclusive(|byte| *byte == b'@') {
                    let (text, marked) = part
                        .strip_suffix(b"@")
                        .map_or((part, false), |text| (text, true));
                    theirs.get_mut().write_all(text).unwrap();
                    if marked {
                        theirs.get_mut().write_all(&number).unwrap();
                    }
                }
            }
        });
        JsonSocket::from_stream(ours, Duration::from_secs(20)).unwrap()
    }

    #[test]
    fn a_command_gets_its_own_answer_between_greetings_and_events() {
        let mut socket = answer_with(&[
            b"{\"QMP\": {}}\r\n{\"return\": {}}\r\n",
            b"{\"event\": \"DEVICE_DELETED\"}\r\n{\"return\": [1]}\r\n",
            b"{\"error\": {\"class\": \"GenericError\", \"desc\": \"it is in use\"}}\r\n",
        ]);
        assert_eq!(
            socket.ask("qmp_capabilities", &json!({})).unwrap(),
            json!({})
        );
        assert_eq!(socket.ask("qom-list", &json!({})).unwrap(), json!([1]));
        let refused = socket.ask("blockdev-del", &json!({})).unwrap_err();
        assert_eq!(refused.to_string(), "blockdev-del: it is in use");
    }

    #[test]
    fn answers_to_clients_before_are_skipped() {
        let mut socket = answer_with(&[
            b"{\"return\": {\"pid\": 7}}\n\xff{\"return\": 5}\n\xff{\"return\": @}\n",
            b"{\"return\": {\"pid\": 8}}\n",
        ]);
        socket.synchronize().unwrap();
        let started = socket.ask("guest-exec", &json!({})).unwrap();
        assert_eq!(started, json!({"pid": 8}));
    }

    #[test]
    fn a_closed_connection_is_an_error() {
        let mut socket = answer_with(&[]);
        assert!(socket.ask("qom-list", &json!({})).is_err());
    }
}
