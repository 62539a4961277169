//! A server of one file, with moods.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How one request is answered. Cuts are after so many bytes of the answer's body.
#[derive(Clone, Debug)]
pub enum Mood {
    Honest,
    /// The connection ends early.
    Cut(usize),
    /// It ends early, and no length was said.
    CutUnsaid(usize),
    /// It stays open and nothing comes any more.
    Silent(usize),
    IgnoresRange,
    IgnoresRangeAndCuts(usize),
    /// Sends the range from zero as if it had been asked for that.
    OtherRange,
    /// Sends another file.
    Other(Vec<u8>),
    /// Says that it is so long.
    Claims(u64),
    Status(&'static str),
}

#[derive(Default)]
struct State {
    moods: VecDeque<Mood>,
    requests: usize,
    sent: usize,
}

pub struct Files {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Files {
    /// Serves that content under any path; the first requests meet these moods, the rest an honest one.
    pub fn serving(content: &[u8], moods: Vec<Mood>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            moods: moods.into(),
            ..State::default()
        }));
        let (content, shared) = (content.to_vec(), state.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (content, shared) = (content.clone(), shared.clone());
                std::thread::spawn(move || answer(stream, &content, &shared));
            }
        });
        Self { address, state }
    }

    /// The next requests meet this mood.
    pub fn answer_with(&self, mood: Mood, times: usize) {
        let moods = std::iter::repeat_n(mood, times);
        self.state.lock().unwrap().moods.extend(moods);
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub fn is_honest_now(&self) -> bool {
        self.state.lock().unwrap().moods.is_empty()
    }

    pub fn requests(&self) -> usize {
        self.state.lock().unwrap().requests
    }

    /// Bytes of bodies.
    pub fn sent(&self) -> usize {
        self.state.lock().unwrap().sent
    }
}

fn answer(mut stream: TcpStream, content: &[u8], state: &Mutex<State>) {
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
    let mood = {
        let mut state = state.lock().unwrap();
        state.requests += 1;
        state.moods.pop_front().unwrap_or(Mood::Honest)
    };
    let ignores = matches!(mood, Mood::IgnoresRange | Mood::IgnoresRangeAndCuts(_));
    let content = match &mood {
        Mood::Other(other) => other,
        _ => content,
    };
    let total = content.len();
    let (status, range, body) = match (asked, &mood) {
        (_, Mood::Status(status)) => (*status, None, &content[..0]),
        (Some(_), Mood::OtherRange) => ("206 Partial Content", Some(0), content),
        (Some(from), _) if !ignores && from >= total => {
            ("416 Range Not Satisfiable", None, &content[..0])
        }
        (Some(from), _) if !ignores => ("206 Partial Content", Some(from), &content[from..]),
        _ => ("200 OK", None, content),
    };
    let sent = match mood {
        Mood::Cut(at) | Mood::CutUnsaid(at) | Mood::Silent(at) | Mood::IgnoresRangeAndCuts(at) => {
            &body[..at.min(body.len())]
        }
        _ => body,
    };
    let mut text = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
    if let Some(from) = range {
        let last = total.saturating_sub(1);
        text += &format!("content-range: bytes {from}-{last}/{total}\r\n");
    }
    match mood {
        Mood::CutUnsaid(_) => (),
        Mood::Claims(length) => text += &format!("content-length: {length}\r\n"),
        _ => text += &format!("content-length: {}\r\n", body.len()),
    }
    text += "\r\n";
    state.lock().unwrap().sent += sent.len();
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.write_all(sent);
    if matches!(mood, Mood::Silent(_)) {
        // Until the other side has had enough.
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    }
}
