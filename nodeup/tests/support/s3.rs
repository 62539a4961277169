//! A fake S3 over a folder, as far as nodeup uses it. The first requests are denied.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Serves the bucket `store` from this folder and returns the address. The first `denied` requests are denied.
pub fn start_s3(folder: &Path, denied: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (folder, denied) = (folder.to_owned(), Arc::new(AtomicUsize::new(denied)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (folder, denied) = (folder.clone(), denied.clone());
            std::thread::spawn(move || answer_request(stream, &folder, &denied));
        }
    });
    address
}

fn answer_request(mut stream: TcpStream, folder: &Path, denied: &AtomicUsize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_ascii_lowercase()),
        }
    }
    let mut length = head
        .iter()
        .filter_map(|line| line.strip_prefix("content-length: "));
    let length = length.next().map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = head[0].split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let path = path.split('?').next().unwrap();
    let file = folder.join(path.strip_prefix("/store/").unwrap());
    let one_less = |left: usize| left.checked_sub(1);
    let deny = denied
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
        .is_ok();
    let (status, content) = if deny {
        ("403 Forbidden", error_response("AccessDenied"))
    } else {
        object_response(method, &file, &body)
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\netag: \"1\"\r\ncontent-length: {}\r\n\r\n",
        content.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&content);
}

fn object_response(method: &str, file: &PathBuf, body: &[u8]) -> (&'static str, Vec<u8>) {
    match method {
        "put" => {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, body).unwrap();
            ("200 OK", Vec::new())
        }
        _ => match fs::read(file) {
            Ok(content) => ("200 OK", content),
            Err(_) => ("404 Not Found", error_response("NoSuchKey")),
        },
    }
}

fn error_response(code: &str) -> Vec<u8> {
    format!("<Error><Code>{code}</Code><Message>no</Message></Error>").into_bytes()
}
