//! One health check: a connection, or a request whose answer is 200 to 399.

use super::HealthSubject;
use reqwest::redirect::Policy;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use tokio::net::TcpSocket;

/// Passes, or says why not.
pub async fn probe_target(subject: &HealthSubject) -> Result<(), String> {
    let scheme = match subject.check.protocol.as_str() {
        "TCP" => {
            return connect_to_target(subject)
                .await
                .map_err(|error| error.to_string());
        }
        "HTTP" => "http",
        "HTTPS" => "https",
        other => return Err(format!("no such check: {other}")),
    };
    let path = subject.check.path.as_deref().unwrap_or("/");
    // As AWS does: certificates of targets are not verified.
    let client = reqwest::Client::builder()
        .danger_accept_invalid_certs(true)
        .local_address(IpAddr::V4(subject.from))
        .redirect(Policy::none())
        .no_proxy()
        .user_agent("ELB-HealthChecker/2.0")
        .build()
        .map_err(|error| error_chain(&error))?;
    let answer = client
        .get(format!("{scheme}://{}{path}", subject.to))
        .send()
        .await;
    let status = answer.map_err(|error| error_chain(&error))?.status();
    let fine = status.is_success() || status.is_redirection();
    if fine {
        Ok(())
    } else {
        Err(format!("status {status}"))
    }
}

async fn connect_to_target(subject: &HealthSubject) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::V4(SocketAddrV4::new(subject.from, 0)))?;
    let stream = socket.connect(subject.to.into()).await?;
    // A reset, not a lingering port: checks are many.
    stream.set_zero_linger()
}

fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
