//! `protokube etcd-backup serve`: serves one snapshot to other control planes, and ends by itself.

use super::local::LocalSnapshots;
use super::peer::PeerAccess;
use crate::run_blocking;
use anyhow::{Context, bail};
use etcd_rules::backup::{
    check_snapshot_name, cluster_state_key, data_key, manifest_key, meta_key,
};
use etcd_store::require_manifest;
use futures::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, RANGE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

/// Timeout of a TLS handshake and of receiving headers.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Bytes that are read from the disk at once.
const PIECE: usize = 256 << 10;

/// When the command ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeLimits {
    /// After so many control planes have said that they have the whole snapshot.
    pub downloads: usize,
    /// After this time, with an error.
    pub timeout: Duration,
}

type Body = BoxBody<Bytes, std::io::Error>;

/// What the connections share.
struct Served {
    access: PeerAccess,
    /// Path of a request, and the file with its answer.
    files: Vec<(String, PathBuf)>,
    /// Path that is posted to once a snapshot has been received and checked.
    received: String,
    /// Members that have received it.
    done: mpsc::Sender<String>,
}

/// Serves the snapshot of this name to members of the same etcd cluster. Returns what was done.
pub async fn serve_snapshot_on(
    listener: TcpListener,
    access: &PeerAccess,
    local: &LocalSnapshots,
    (name, limits): (&str, &ServeLimits),
    say: fn(&str),
) -> anyhow::Result<String> {
    check_snapshot_name(name).map_err(anyhow::Error::msg)?;
    require_manifest(&local.store, name).await?;
    let keys = [data_key, cluster_state_key, manifest_key, meta_key].map(|key| key(name));
    let files = keys.map(|key| (format!("/{key}"), local.path_of(&key)));
    let (done, mut received) = mpsc::channel(limits.downloads.max(1));
    let served = Arc::new(Served {
        access: access.clone(),
        files: files.to_vec(),
        received: format!("/{name}/received"),
        done,
    });
    let acceptor = access.build_acceptor()?;
    let ends = Instant::now() + limits.timeout;
    say(&format!(
        "serving {name} on {} until {} control planes have it",
        listener.local_addr()?,
        limits.downloads
    ));
    let mut members: Vec<String> = Vec::new();
    while members.len() < limits.downloads {
        let event = timeout_at(ends, async {
            tokio::select! {
                accepted = listener.accept() => Event::Connection(accepted),
                Some(member) = received.recv() => Event::Received(member),
            }
        });
        let Ok(event) = event.await else {
            bail!(
                "{} of {} control planes have received {name} after {:?}",
                members.len(),
                limits.downloads,
                limits.timeout
            );
        };
        match event {
            Event::Connection(accepted) => {
                let (stream, _) = accepted.context("could not accept a connection")?;
                let connection =
                    serve_connection(Arc::clone(&served), acceptor.clone(), stream, say);
                tokio::spawn(connection);
            }
            Event::Received(member) if members.contains(&member) => {}
            Event::Received(member) => {
                say(&format!(
                    "the control plane of member {member} has received {name}"
                ));
                members.push(member);
            }
        }
    }
    Ok(format!("{} have received {name}", members.join(", ")))
}

/// What happens next.
enum Event {
    Connection(std::io::Result<(TcpStream, std::net::SocketAddr)>),
    /// A member has the whole snapshot.
    Received(String),
}

/// Answers one connection. A client whose certificate is refused is named; one that goes away asks again.
async fn serve_connection(
    served: Arc<Served>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    say: fn(&str),
) {
    let address = stream.peer_addr();
    let accepted = timeout(HANDSHAKE, acceptor.accept(stream)).await;
    let known = match accepted {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let first = certificates
                .and_then(|all| all.first())
                .context("it shows no certificate");
            let member = first.and_then(|first| served.access.name_member(first));
            member.map(|member| (stream, member))
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => return,
    };
    let (stream, member) = match known {
        Ok(known) => known,
        Err(error) => {
            let who = address
                .map(|address| address.to_string())
                .unwrap_or_default();
            return say(&format!("refused a connection of {who}: {error:#}"));
        }
    };
    let service = service_fn(|request| answer(&served, &member, request));
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    served: &Served,
    member: &str,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path();
    if request.method() == Method::POST && path == served.received {
        let told = served.done.send(member.to_owned()).await;
        return Ok(empty_answer(
            told.map_or(StatusCode::GONE, |()| StatusCode::NO_CONTENT),
        ));
    }
    let file = served.files.iter().find(|(known, _)| known == path);
    let Some((_, file)) = file.filter(|_| request.method() == Method::GET) else {
        return Ok(empty_answer(StatusCode::NOT_FOUND));
    };
    let from = request
        .headers()
        .get(RANGE)
        .and_then(|range| range.to_str().ok());
    let from = from.map_or(Some(0), parse_range);
    let Some(from) = from else {
        return Ok(empty_answer(StatusCode::RANGE_NOT_SATISFIABLE));
    };
    let answered = file_answer(file, from);
    Ok(answered.unwrap_or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => empty_answer(StatusCode::NOT_FOUND),
        _ => empty_answer(StatusCode::INTERNAL_SERVER_ERROR),
    }))
}

/// The first byte of a range without an end: `bytes=4096-`. No other form is asked for.
fn parse_range(range: &str) -> Option<u64> {
    range
        .strip_prefix("bytes=")?
        .strip_suffix('-')?
        .parse()
        .ok()
}

/// The file from a byte on, read piece by piece.
fn file_answer(path: &Path, from: u64) -> std::io::Result<Response<Body>> {
    let mut file = host::open_file(path)?;
    let bytes = file.metadata()?.len();
    if from > bytes {
        return Ok(empty_answer(StatusCode::RANGE_NOT_SATISFIABLE));
    }
    file.seek(SeekFrom::Start(from))?;
    let pieces = stream::try_unfold(file, |mut file| async move {
        let read = run_blocking(move || {
            let mut piece = vec![0; PIECE];
            let count = file.read(&mut piece)?;
            piece.truncate(count);
            Ok((piece, file))
        });
        let (piece, file) = read.await.map_err(std::io::Error::other)?;
        let frame = (!piece.is_empty()).then(|| Frame::data(Bytes::from(piece)));
        Ok(frame.map(|frame| (frame, file)))
    });
    let mut answer = Response::new(BodyExt::boxed(StreamBody::new(pieces)));
    *answer.status_mut() = if from == 0 {
        StatusCode::OK
    } else {
        StatusCode::PARTIAL_CONTENT
    };
    answer
        .headers_mut()
        .insert(CONTENT_LENGTH, (bytes - from).into());
    Ok(answer)
}

fn empty_answer(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Full::default().map_err(|never| match never {}).boxed());
    *answer.status_mut() = status;
    answer
}
