//! A fake Auto Scaling: it takes completions of lifecycle actions, and first says that there is none to complete.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Bodies of the requests so far.
pub type Requests = Arc<Mutex<Vec<String>>>;

const NONE: &str = "<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code><Message>No active Lifecycle Action found with instance ID i-0abc</Message></Error></ErrorResponse>";

/// Starts the service. The first `early` requests come too early.
pub fn start_autoscaling(early: usize) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let seen = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer_request(stream, &seen, early);
        }
    });
    (address, requests)
}

fn answer_request(mut stream: TcpStream, seen: &Requests, early: usize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length: ") {
            length = text.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut seen = seen.lock().unwrap();
    seen.push(String::from_utf8(body).unwrap());
    let (status, body) = if seen.len() <= early {
        ("400 Bad Request", NONE)
    } else {
        ("200 OK", "<CompleteLifecycleActionResponse/>")
    };
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
    let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
}
