//! The sites that kctl downloads from, behind a proxy: every address is a file, and every host has all images, for two architectures. One
//! registry keeps what it is sent.

use crate::api_server::{another_authority, server_certificate};
use crate::kctl::{Kctl, repository_folder};
use crate::scenario::REGION;
use crate::simulator::Simulator;
use node::digest::sha256_hex;
use node::pki::trust_bundle;
use node::yaml::to_yaml;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The registry that keeps images, for who has the password.
pub const OWN_REGISTRY: &str = "registry.example.com";

/// `user:password`.
const PASSWORD: &str = "dXNlcjpwYXNzd29yZA==";

/// Who gives tokens for most registries.
const TOKENS: &str = "auth.example.com";

/// Where the registry wants blobs to be sent.
const UPLOADS: &str = "uploads.example.com";

const HOSTS: [&str; 11] = [
    "artifacts.k8s.io",
    "dl.k8s.io",
    "ghcr.io",
    "github.com",
    "public.ecr.aws",
    "quay.io",
    "registry-1.docker.io",
    "registry.k8s.io",
    OWN_REGISTRY,
    TOKENS,
    UPLOADS,
];

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const BLOB: &str = "application/octet-stream";

/// The sites.
pub struct Internet {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Nothing of it is reachable.
    cut: bool,
    /// The registry redirects to a host that asks for its password.
    astray: bool,
    /// `METHOD HOST/PATH` of every request.
    requests: Vec<String>,
    /// What the registry was sent, by path: type and content.
    kept: BTreeMap<String, Sent>,
}

/// Type and content.
type Sent = (String, Vec<u8>);

struct Request {
    method: String,
    host: String,
    /// With its query.
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Internet {
    /// The sites; kctl gets there, and finds their hashes in a catalog in the state store, `catalog.yaml`.
    pub fn connect(kctl: &mut Kctl, simulator: &Simulator) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let proxy = format!("http://{}", listener.local_addr().expect("an address"));
        let authority = another_authority();
        let (certificate, key) = server_certificate(&authority, &HOSTS);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS")
            .with_no_client_auth()
            .with_single_cert(certificate, key)
            .expect("a server's certificate");
        let config = Arc::new(config);
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let (config, shared) = (Arc::clone(&config), Arc::clone(&shared));
                std::thread::spawn(move || serve_connection(stream, &config, &shared));
            }
        });
        let trusted = kctl.write_file("sites.pem", &trust_bundle(&authority));
        kctl.set_variable("SSL_CERT_FILE", &trusted);
        kctl.set_variable("HTTPS_PROXY", &proxy);
        let text = json!(catalog());
        simulator.run_python(
            REGION,
            &format!(
                "boto('s3').put_object(Bucket='state', Key='clusters/catalog.yaml', Body={text})"
            ),
        );
        Self { state }
    }

    /// From now on it is not reachable.
    pub fn cut(&self) {
        self.state.lock().expect("its state").cut = true;
    }

    /// From now on the registry redirects to a host that wants its password at `/stolen`.
    pub fn lead_astray(&self) {
        self.state.lock().expect("its state").astray = true;
    }

    /// The requests since the last call: `METHOD HOST/PATH`.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().expect("its state").requests)
    }

    /// What the registry keeps of an image, by its name with a tag: the index.
    pub fn kept_index(&self, image: &str) -> Option<Vec<u8>> {
        let state = self.state.lock().expect("its state");
        let (_, content) = state.kept.get(&tag_path(image)?)?;
        Some(content.clone())
    }

    /// Somebody else gives the tag to another image.
    pub fn move_tag(&self, image: &str, other: &[u8]) {
        let path = tag_path(image).expect("a tag of the registry");
        let mut state = self.state.lock().expect("its state");
        state.kept.insert(path, (INDEX.to_owned(), other.to_vec()));
    }
}

/// Where the registry keeps what a tag leads to.
fn tag_path(image: &str) -> Option<String> {
    let rest = image.strip_prefix(OWN_REGISTRY)?;
    let (repository, tag) = rest.rsplit_once(':')?;
    Some(format!("/v2{repository}/manifests/{tag}"))
}

/// Docker's configuration with the password for the registry.
pub fn log_in(kctl: &Kctl) {
    std::fs::create_dir(kctl.home_path(".docker")).expect("a folder");
    let config = json!({"auths": {OWN_REGISTRY: {"auth": PASSWORD}}});
    kctl.write_file(".docker/config.json", &config.to_string());
}

/// The file at an address.
pub fn published_file(url: &str) -> String {
    format!("the file {url}")
}

/// The index of an image, by its repository.
pub fn published_index(repository: &str) -> Vec<u8> {
    let (_, content) = image_parts(repository).pop().expect("an index");
    content
}

/// kctl's catalog with the hashes of these files.
fn catalog() -> String {
    let path = repository_folder().join("model/spec/data/assets.yaml");
    let text = std::fs::read_to_string(path).expect("the catalog");
    let mut sections: Value = serde_saphyr::from_str(&text).expect("YAML");
    for section in sections.as_object_mut().expect("sections").values_mut() {
        let base = section["base"].as_str().expect("a base").to_owned();
        for file in section["files"].as_array_mut().expect("files") {
            let url = format!("{base}{}", file["path"].as_str().expect("a path"));
            file["sha256"] = json!(sha256_hex(published_file(&url)));
        }
    }
    to_yaml(&sections).expect("YAML")
}

/// Manifests and blobs of an image, its index last.
fn image_parts(repository: &str) -> Vec<Sent> {
    let describe = |kind: &str, content: &str| json!({"mediaType": kind, "digest": digest(content.as_bytes()), "size": content.len()});
    let mut parts = Vec::new();
    let mut manifests = Vec::new();
    for arch in ["amd64", "arm64"] {
        let config = json!({"architecture": arch, "os": "linux"}).to_string();
        let layer = format!("the layer of {repository} for {arch}");
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": describe("application/vnd.oci.image.config.v1+json", &config),
            "layers": [describe("application/vnd.oci.image.layer.v1.tar", &layer)],
        });
        let manifest = manifest.to_string();
        let mut described = describe(MANIFEST, &manifest);
        described["platform"] = json!({"architecture": arch, "os": "linux"});
        manifests.push(described);
        for (kind, content) in [(BLOB, config), (BLOB, layer), (MANIFEST, manifest)] {
            parts.push((kind.to_owned(), content.into_bytes()));
        }
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    parts.push((INDEX.to_owned(), index.to_string().into_bytes()));
    parts
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(content))
}

/// First line and headers.
fn read_head(from: &mut impl BufRead) -> Result<(String, BTreeMap<String, String>)> {
    let mut first = String::new();
    from.read_line(&mut first)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok((first, headers));
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

/// Answers one request through the proxy.
fn serve_connection(
    tcp: TcpStream,
    config: &Arc<ServerConfig>,
    state: &Mutex<State>,
) -> Result<()> {
    let mut tcp = BufReader::new(tcp);
    let (line, _) = read_head(&mut tcp)?;
    // The client sends nothing more before it is answered.
    let mut tcp = tcp.into_inner();
    let host = line.split([' ', ':']).nth(1).unwrap_or_default();
    if state.lock().expect("its state").cut {
        return tcp.write_all(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n");
    }
    tcp.write_all(b"HTTP/1.1 200 X\r\n\r\n")?;
    let connection = ServerConnection::new(Arc::clone(config)).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, tcp));
    let (line, headers) = read_head(&mut stream)?;
    let mut words = line.split(' ').map(str::to_owned);
    let length = headers.get("content-length");
    let length = length.map_or(0, |length| length.parse().expect("a length"));
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        host: host.to_owned(),
        path: words.next().unwrap_or_default(),
        headers,
        body: vec![0; length],
    };
    std::io::Read::read_exact(&mut stream, &mut request.body)?;
    let answer = answer_request(&request, &mut state.lock().expect("its state"));
    let mut head = format!(
        "HTTP/1.1 {} X\r\nConnection: close\r\nContent-Length: {}\r\n",
        answer.status,
        answer.body.len()
    );
    for (name, value) in answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let stream = stream.get_mut();
    stream.write_all((head + "\r\n").as_bytes())?;
    if request.method != "HEAD" {
        stream.write_all(&answer.body)?;
    }
    stream.conn.send_close_notify();
    stream.flush()
}

fn answer_request(request: &Request, state: &mut State) -> Answer {
    let (host, path) = (request.host.as_str(), request.path.as_str());
    let shown = format!("{} {host}{path}", request.method);
    state.requests.push(shown);
    let authorization = request.headers.get("authorization").map(String::as_str);
    match host {
        OWN_REGISTRY if state.astray => Answer {
            headers: vec![("Location", format!("https://{TOKENS}/astray"))],
            ..Answer::status(307)
        },
        TOKENS if path == "/astray" => {
            Answer::challenge(format!("Bearer realm=\"https://{TOKENS}/stolen\""))
        }
        TOKENS => Answer::of(BLOB, json!({"token": "a-token"}).to_string().into_bytes()),
        OWN_REGISTRY if authorization != Some(format!("Basic {PASSWORD}").as_str()) => {
            Answer::challenge("Basic realm=\"registry\"".to_owned())
        }
        // Nobody but the registry gets its password.
        UPLOADS if authorization.is_some() => Answer::status(400),
        OWN_REGISTRY | UPLOADS => answer_own_registry(request, state),
        _ if !path.starts_with("/v2/") => {
            let file = published_file(&format!("https://{host}{path}"));
            Answer::of(BLOB, file.into_bytes())
        }
        "registry.k8s.io" => answer_registry(path),
        _ if authorization == Some("Bearer a-token") => answer_registry(path),
        _ => Answer::challenge(format!(
            "Bearer realm=\"https://{TOKENS}/token\",service=\"{host}\""
        )),
    }
}

/// `/v2/REPOSITORY/manifests/TAG`, `/v2/REPOSITORY/manifests/DIGEST`, `/v2/REPOSITORY/blobs/DIGEST`.
fn answer_registry(path: &str) -> Answer {
    let path = path.strip_prefix("/v2/").unwrap_or(path);
    let split = path.rsplit_once("/manifests/");
    let Some((repository, reference)) = split.or_else(|| path.rsplit_once("/blobs/")) else {
        return Answer::status(404);
    };
    let mut parts = image_parts(repository);
    let found = match reference.starts_with("sha256:") {
        true => parts
            .into_iter()
            .find(|(_, content)| digest(content) == reference),
        false => parts.pop(),
    };
    found.map_or(Answer::status(404), |(kind, content)| {
        Answer::of(&kind, content)
    })
}

/// Keeps what it is sent: content under its digest only, and manifests only with everything that they name.
fn answer_own_registry(request: &Request, state: &mut State) -> Answer {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let body = request.body.clone();
    let own = digest(&body);
    match request.method.as_str() {
        "POST" => Answer {
            status: 202,
            headers: vec![("Location", format!("https://{UPLOADS}{path}1?state=x"))],
            body: Vec::new(),
        },
        "PUT" if path.contains("/blobs/uploads/") => {
            let (repository, _) = path.split_once("/blobs/").expect("a repository");
            if query != format!("state=x&digest={}", own.replace(':', "%3A")) {
                return Answer::status(400);
            }
            let path = format!("{repository}/blobs/{own}");
            state.kept.insert(path, (BLOB.to_owned(), body));
            Answer::status(201)
        }
        "PUT" => {
            let (repository, _) = path.split_once("/manifests/").expect("a repository");
            let kind = request.headers.get("content-type").cloned();
            let sent: Value = serde_json::from_slice(&body).expect("JSON");
            let named = |list: &str| sent[list].as_array().cloned().unwrap_or_default();
            let has = |folder: &str, described: &Value| {
                let digest = described["digest"].as_str().unwrap_or_default();
                let path = format!("{repository}/{folder}/{digest}");
                state.kept.contains_key(&path)
            };
            let complete = named("manifests").iter().all(|one| has("manifests", one))
                && named("layers").iter().all(|one| has("blobs", one))
                && sent.get("config").is_none_or(|one| has("blobs", one));
            if !complete {
                return Answer::status(404);
            }
            for path in [path.to_owned(), format!("{repository}/manifests/{own}")] {
                let sent = (kind.clone().unwrap_or_default(), body.clone());
                state.kept.insert(path, sent);
            }
            Answer::status(201)
        }
        _ => match state.kept.get(path) {
            Some((kind, content)) => Answer::of(kind, content.clone()),
            None => Answer::status(404),
        },
    }
}

impl Answer {
    fn of(kind: &str, body: Vec<u8>) -> Self {
        let headers = vec![
            ("Content-Type", kind.to_owned()),
            ("Docker-Content-Digest", digest(&body)),
        ];
        Self {
            status: 200,
            headers,
            body,
        }
    }

    /// A status and no more.
    fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    fn challenge(text: String) -> Self {
        Self {
            headers: vec![("WWW-Authenticate", text)],
            ..Self::status(401)
        }
    }
}
