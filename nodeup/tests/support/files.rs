//! An HTTP server with one file that can misbehave.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The answer to one request. Interruptions come after the given number of body bytes.
#[derive(Clone, Debug)]
pub enum Behaviour {
    Honest,
    /// The connection is closed early.
    Cut(usize),
    /// The connection is closed early, and the response has no length.
    CutUnsaid(usize),
    /// The connection stays open, but no more bytes arrive.
    Silent(usize),
    IgnoresRange,
    IgnoresRangeAndCuts(usize),
    /// Sends the range from zero as if it had been requested.
    OtherRange,
    Other(Vec<u8>),
    Claims(u64),
    Status(&'static str),
}

#[derive(Default)]
struct ServerState {
    behaviours: VecDeque<Behaviour>,
    requests: usize,
    sent: usize,
}

pub struct FileServer {
    address: SocketAddr,
    state: Arc<Mutex<ServerState>>,
}

impl FileServer {
    /// Serves this content at any path. The first requests are answered with `behaviours`, later ones honestly.
    pub fn start(content: &[u8], behaviours: Vec<Behaviour>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(ServerState {
            behaviours: behaviours.into(),
            ..ServerState::default()
        }));
        let (content, shared) = (content.to_vec(), state.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (content, shared) = (content.clone(), shared.clone());
                std::thread::spawn(move || answer_request(stream, &content, &shared));
            }
        });
        Self { address, state }
    }

    /// Sets the behaviour for the next requests.
    pub fn set_next_behaviour(&self, behaviour: Behaviour, times: usize) {
        let behaviours = std::iter::repeat_n(behaviour, times);
        self.state.lock().unwrap().behaviours.extend(behaviours);
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub fn is_honest_now(&self) -> bool {
        self.state.lock().unwrap().behaviours.is_empty()
    }

    pub fn request_count(&self) -> usize {
        self.state.lock().unwrap().requests
    }

    /// Total number of body bytes sent.
    pub fn bytes_sent(&self) -> usize {
        self.state.lock().unwrap().sent
    }
}

fn answer_request(mut stream: TcpStream, content: &[u8], state: &Mutex<ServerState>) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let head: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    if head.is_empty() {
        return;
    }
    let asked = head.iter().find_map(|line| {
        let lower = line.to_ascii_lowercase();
        let from = lower.strip_prefix("range: bytes=")?.strip_suffix('-')?;
        from.parse::<usize>().ok()
    });
    let behaviour = {
        let mut state = state.lock().unwrap();
        state.requests += 1;
        state.behaviours.pop_front().unwrap_or(Behaviour::Honest)
    };
    let ignores = matches!(
        behaviour,
        Behaviour::IgnoresRange | Behaviour::IgnoresRangeAndCuts(_)
    );
    let content = match &behaviour {
        Behaviour::Other(other) => other,
        _ => content,
    };
    let total = content.len();
    let (status, range, body) = match (asked, &behaviour) {
        (_, Behaviour::Status(status)) => (*status, None, &content[..0]),
        (Some(_), Behaviour::OtherRange) => ("206 Partial Content", Some(0), content),
        (Some(from), _) if !ignores && from >= total => {
            ("416 Range Not Satisfiable", None, &content[..0])
        }
        (Some(from), _) if !ignores => ("206 Partial Content", Some(from), &content[from..]),
        _ => ("200 OK", None, content),
    };
    let sent = match behaviour {
        Behaviour::Cut(at)
        | Behaviour::CutUnsaid(at)
        | Behaviour::Silent(at)
        | Behaviour::IgnoresRangeAndCuts(at) => &body[..at.min(body.len())],
        _ => body,
    };
    let mut text = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
    if let Some(from) = range {
        let last = total.saturating_sub(1);
        text += &format!("content-range: bytes {from}-{last}/{total}\r\n");
    }
    match behaviour {
        Behaviour::CutUnsaid(_) => (),
        Behaviour::Claims(length) => text += &format!("content-length: {length}\r\n"),
        _ => text += &format!("content-length: {}\r\n", body.len()),
    }
    text += "\r\n";
    state.lock().unwrap().sent += sent.len();
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.write_all(sent);
    if matches!(behaviour, Behaviour::Silent(_)) {
        // Sends until the client disconnects.
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    }
}
