//! A fake metadata service (IMDSv2) that returns credentials of a role.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Id of the described instance.
pub const INSTANCE: &str = "i-0abc";

/// Starts the service and returns its address.
pub fn metadata_service() -> String {
    slow_metadata_service(Duration::ZERO, 0)
}

/// A service that gives this target lifecycle state, which may change.
pub fn scaling_metadata_service(state: Arc<Mutex<String>>) -> String {
    serve(Duration::ZERO, 0, Some(state))
}

/// A service that takes so long for each answer, and ends the first so many connections without one.
pub fn slow_metadata_service(delay: Duration, broken: usize) -> String {
    serve(delay, broken, None)
}

fn serve(delay: Duration, broken: usize, state: Option<Arc<Mutex<String>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            if number >= broken {
                let state = state.clone();
                std::thread::spawn(move || {
                    std::thread::sleep(delay);
                    let state = state.map(|state| state.lock().unwrap().clone());
                    answer_request(stream, state.as_deref());
                });
            }
        }
    });
    address
}

const ROLE: &str = r#"{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":"ASIAEXAMPLE","SecretAccessKey":"secret",
    "Token":"session","LastUpdated":"2026-01-01T00:00:00Z","Expiration":"2099-01-01T00:00:00Z"}"#;

fn answer_request(mut stream: TcpStream, state: Option<&str>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let token = headers
        .iter()
        .any(|header| header.eq_ignore_ascii_case("x-aws-ec2-metadata-token: t"));
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path.strip_prefix("/latest/").unwrap_or_default() {
        "api/token" if request.starts_with("PUT ") => ("200 OK", "t"),
        _ if !token => ("401 Unauthorized", ""),
        "meta-data/instance-id" => ("200 OK", INSTANCE),
        "meta-data/placement/region" => ("200 OK", "eu-west-1"),
        "meta-data/placement/availability-zone" => ("200 OK", "eu-west-1b"),
        "meta-data/local-ipv4" => ("200 OK", "172.20.1.7"),
        "meta-data/iam/security-credentials/" => ("200 OK", "nodes.a.example.com"),
        "meta-data/iam/security-credentials/nodes.a.example.com" => ("200 OK", ROLE),
        "meta-data/autoscaling/target-lifecycle-state" if state.is_some() => {
            ("200 OK", state.unwrap_or_default())
        }
        _ => ("404 Not Found", ""),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nx-aws-ec2-metadata-token-ttl-seconds: 60\r\nconnection: close\r\n"
    );
    let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
}
