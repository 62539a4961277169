//! `kctl dashboard`: serves the page of `kctl report` on the loopback. Each look at the cluster is for a request, and no sooner after the
//! last one than the interval says.

use super::report::ReportedCluster;
use super::session::Session;
use crate::args;
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::interrupt::Interrupts;
use crate::ui::Paint;
use crate::ui::error as shown;
use crate::ui::report::{Page, render};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use node::digest::to_hex;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

/// Most connections at the same time. Others wait.
const CONNECTIONS: usize = 32;

/// Timeout for receiving the headers of a request.
const HEADERS: Duration = Duration::from_secs(5);

/// Pause after a failed accept: file descriptors have run out.
const PAUSE: Duration = Duration::from_secs(1);

/// Names under which the page is asked for. Another one is that of a site which leads its visitors' browsers here (DNS rebinding).
const OWN_HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];

/// Serves the page until the process is interrupted.
pub async fn run(args: &args::Dashboard, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let mut cluster = ReportedCluster::open(&name, &args.reach, session).await?;
    let port = args.port.unwrap_or(0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let listener = listener.or_usage_error(
        format!("could not listen on 127.0.0.1:{port}"),
        "name another port with --port, or none",
    )?;
    let address = listener.local_addr().or_failed(
        "the address of the dashboard is not known",
        "repeat the command",
    )?;
    let path = random_path()?;
    session
        .shell
        .print_result(&format!("http://{address}{path}"))?;
    session
        .shell
        .note("open it in a browser on this computer; Ctrl-C ends it");
    let (ask, asked) = mpsc::channel(CONNECTIONS);
    let interrupts = Interrupts::default();
    tokio::select! {
        biased;
        () = interrupts.wait_to_leave(|| ()) => {}
        () = look_when_asked(&mut cluster, args.interval, asked) => {}
        () = serve(&listener, &path, &ask) => {}
    }
    Ok(Outcome::Fine)
}

/// The path of the page: others who work on this computer can open connections to it too, and do not know that one.
fn random_path() -> Result<String, CommandError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).or_failed(
        "could not get random numbers from the system",
        "report this: it is a defect of kctl",
    )?;
    Ok(format!("/{}/", to_hex(&random)))
}

/// The page, or why there is none.
type Answer = Result<Page, String>;

/// A connection that waits for the page.
type Asking = oneshot::Sender<Answer>;

/// Gives the page of the last look to all who ask, or that of a new one if the last ended too long ago. Not a part of the connections: a
/// browser that goes away breaks no look off, so that going away leads to no more calls.
async fn look_when_asked(
    cluster: &mut ReportedCluster<'_>,
    interval: Duration,
    mut asked: mpsc::Receiver<Asking>,
) {
    let mut last: Option<(Instant, Answer)> = None;
    while let Some(asking) = asked.recv().await {
        let recent = last.take().filter(|(at, _)| at.elapsed() < interval);
        let (at, answer) = match recent {
            Some(recent) => recent,
            None => {
                let answer = read_page(cluster, interval).await;
                (Instant::now(), answer)
            }
        };
        // Who asked may have gone away.
        let _ = asking.send(answer.clone());
        last = Some((at, answer));
    }
}

/// Accepts connections for ever.
async fn serve(listener: &TcpListener, path: &str, ask: &mpsc::Sender<Asking>) {
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(()) = open.next() => {}
            accepted = listener.accept(), if open.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => open.push(serve_connection(stream, path, ask)),
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
}

async fn serve_connection(stream: TcpStream, path: &str, ask: &mpsc::Sender<Asking>) {
    let service = service_fn(|request| answer(request, path, ask));
    // A browser that goes away has what it wants.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    path: &str,
    ask: &mpsc::Sender<Asking>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let refused = refuse(request.method(), request.uri(), request.headers(), path);
    let mut response = match refused {
        Some((status, why)) => text_response(status, why.to_owned()),
        None => page_response(ask).await,
    };
    guard(response.headers_mut());
    Ok(response)
}

/// Headers of every answer: it is not kept, not taken for something else, not shown in another page, and not given to another site.
fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (ALLOW, "GET, HEAD"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Why a request is not answered with the page, which has this path.
fn refuse(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    path: &str,
) -> Option<(StatusCode, &'static str)> {
    if !is_asked_by_own_name(uri, headers) {
        return Some((
            StatusCode::MISDIRECTED_REQUEST,
            "this page is served for 127.0.0.1 and localhost only",
        ));
    }
    if uri.path() != path {
        return Some((
            StatusCode::NOT_FOUND,
            "there is one page: at the address that kctl dashboard printed",
        ));
    }
    if ![Method::GET, Method::HEAD].contains(method) {
        return Some((
            StatusCode::METHOD_NOT_ALLOWED,
            "the page can only be read: GET",
        ));
    }
    None
}

/// True if the request names this computer, whatever the port: a tunnel may have another.
fn is_asked_by_own_name(uri: &Uri, headers: &HeaderMap) -> bool {
    let is_own = |host: &Authority| OWN_HOSTS.contains(&host.host());
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let host = host
        .to_str()
        .ok()
        .and_then(|host| host.parse::<Authority>().ok());
    host.as_ref().is_some_and(is_own) && uri.authority().is_none_or(is_own)
}

async fn page_response(ask: &mpsc::Sender<Asking>) -> Response<Full<Bytes>> {
    let (asking, answer) = oneshot::channel();
    // Fails only once nobody looks any more; then there is no answer either.
    let _ = ask.send(asking).await;
    match answer.await {
        Ok(Ok(page)) => html_response(page),
        Ok(Err(why)) => text_response(StatusCode::SERVICE_UNAVAILABLE, why),
        Err(_) => text_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "kctl dashboard has ended".to_owned(),
        ),
    }
}

async fn read_page(cluster: &mut ReportedCluster<'_>, interval: Duration) -> Answer {
    match cluster.reread().await {
        Ok(report) => Ok(render(&report, Some(interval))),
        Err(error) => Err(Paint::default().sanitize(&shown::render(&error, Paint::default()))),
    }
}

fn html_response(page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(page.html));
    let headers = response.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(CONTENT_TYPE, html);
    // The page has the same policy but for frames, which a file cannot forbid.
    let policy = format!("{}; frame-ancestors 'none'", page.policy);
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn text_response(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the page.
    const PATH: &str = "/00ff/";

    /// The status with which a request is refused.
    fn refused(method: &Method, target: &str, hosts: &[&str]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, HeaderValue::from_str(host).unwrap());
        }
        let refused = refuse(method, &target.parse().unwrap(), &headers, PATH);
        refused.map(|(status, _)| status.as_u16())
    }

    #[test]
    fn the_page_is_given_only_to_who_asks_this_computer_for_it() {
        for host in ["127.0.0.1:8081", "localhost:8081", "127.0.0.1"] {
            assert_eq!(refused(&Method::GET, PATH, &[host]), None, "{host}");
        }
        for host in [
            "",
            "evil.example.com",
            "evil.example.com:8081",
            "127.0.0.1.evil.example.com:8081",
            "localhost.evil.example.com",
            "127.0.0.1@evil.example.com",
            "evil.example.com#127.0.0.1",
            "10.0.0.1:8081",
            "0.0.0.0:8081",
        ] {
            assert_eq!(refused(&Method::GET, PATH, &[host]), Some(421), "{host}");
        }
        let own = "127.0.0.1:8081";
        assert_eq!(refused(&Method::GET, PATH, &[]), Some(421));
        assert_eq!(refused(&Method::GET, PATH, &[own, own]), Some(421));
        let absolute = "http://evil.example.com/00ff/";
        assert_eq!(refused(&Method::GET, absolute, &[own]), Some(421));
    }

    #[test]
    fn there_is_one_page_and_nothing_but_reading() {
        let own = ["localhost:1"];
        assert_eq!(refused(&Method::HEAD, PATH, &own), None);
        assert_eq!(refused(&Method::GET, "/00ff/?a=1", &own), None);
        for other in ["/", "/00ff", "/00fe/", "/00ff/x", "/etc/passwd"] {
            assert_eq!(refused(&Method::GET, other, &own), Some(404), "{other}");
        }
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            assert_eq!(refused(&method, PATH, &own), Some(405), "{method}");
        }
    }
}
