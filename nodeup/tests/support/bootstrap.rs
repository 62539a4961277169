//! A fake bootstrap endpoint with the cluster's authority and scripted answers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use node::bootstrap::{
    Binding, CertificateKind, IDENTITY_HEADER, JOIN_PATH, JoinReply, JoinRequest, REPORT_PATH,
    RefusalReply, SignedIdentity,
};
use node::pki::{
    KeyAlgorithm, Keyset, Leaf, SigningRequest, SystemKeys, Usage, issue_certificate, mint_keyset,
    request_for_key, sign_request, trust_bundle,
};
use node::report::BootReport;
use node::secret::Secret;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use time::{Duration, OffsetDateTime};

const CLUSTER: &str = "a.example.com";

/// The registry passwords for instances whose NodeConfig says that there are some.
pub const PASSWORDS: &str = r#"{"auths": {"registry.example.com": {"auth": "c3dvcmRmaXNo"}}}"#;

/// The answer to one join request.
#[derive(Clone, Debug)]
pub enum ScriptedAnswer {
    Refusal(&'static str, &'static str, bool),
    /// A proxy answers, in a format that is not protokube's.
    Proxy(&'static str),
}

pub struct FakeEndpoint {
    pub address: SocketAddr,
    pub authority: Keyset,
    inner: Arc<EndpointState>,
}

struct EndpointState {
    authority: Keyset,
    node_config: String,
    script: Mutex<VecDeque<ScriptedAnswer>>,
    joins: Mutex<Vec<JoinRequest>>,
    reports: Mutex<Vec<BootReport>>,
}

impl FakeEndpoint {
    /// Serves this NodeConfig. The certificate has the bootstrap name unless another name is given.
    pub fn start(
        authority: Keyset,
        node_config: &str,
        script: Vec<ScriptedAnswer>,
        name: Option<&str>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(EndpointState {
            authority: authority.clone(),
            node_config: node_config.to_owned(),
            script: Mutex::new(script.into()),
            joins: Mutex::default(),
            reports: Mutex::default(),
        });
        let name = name.unwrap_or("kops-controller.internal.a.example.com");
        let config = tls_config(&authority, name);
        let shared = inner.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, config) = (shared.clone(), config.clone());
                std::thread::spawn(move || shared.serve_connection(stream, config));
            }
        });
        Self {
            address,
            authority,
            inner,
        }
    }

    /// Issues a client certificate that expires in this many hours, which is a tenth of its lifetime.
    pub fn certificate_of_hours(&self, name: &str, key: &str, hours: i64) -> String {
        let leaf = Leaf {
            common_name: name.to_owned(),
            organization: None,
            usage: Usage::Client,
            names: Vec::new(),
            validity: Duration::hours(5 * hours),
        };
        let request = request_for_key(&leaf, &Secret::new(key)).unwrap();
        let issued = OffsetDateTime::now_utc() - Duration::hours(4 * hours);
        let request = SigningRequest::from_pem(request.as_bytes()).unwrap();
        sign_request(&self.authority, &request, &leaf, issued).unwrap()
    }

    pub fn join_requests(&self) -> Vec<JoinRequest> {
        self.inner.joins.lock().unwrap().clone()
    }

    pub fn boot_reports(&self) -> Vec<BootReport> {
        self.inner.reports.lock().unwrap().clone()
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

/// A new authority of the cluster.
pub fn mint_authority() -> Keyset {
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap()
}

/// TLS of a server with a certificate for this name.
pub fn tls_config(authority: &Keyset, name: &str) -> Arc<ServerConfig> {
    let leaf = Leaf {
        common_name: "kops-controller".into(),
        organization: None,
        usage: Usage::Server,
        names: vec![name.into()],
        validity: Duration::days(1),
    };
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    let issued = issue_certificate(authority, &leaf, &mut keys).unwrap();
    let chain = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.reveal().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    Arc::new(config)
}

impl EndpointState {
    fn serve_connection(&self, stream: TcpStream, config: Arc<ServerConfig>) {
        let connection = ServerConnection::new(config).unwrap();
        let mut stream = BufReader::new(StreamOwned::new(connection, stream));
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            // A client that rejects the certificate disconnects.
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let header = |name: &str| {
            let mut lines = head.iter().filter_map(|line| line.split_once(": "));
            lines.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.to_owned()))
        };
        let length = header("content-length").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let (status, text) = match self.check_signed_call(header(IDENTITY_HEADER).as_deref(), &body)
        {
            Err(wrong) => ("403 Forbidden", wrong),
            Ok(()) => self.answer_request(&head[0], &body),
        };
        let stream = stream.get_mut();
        let head = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(text.as_bytes());
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }

    /// Checks the identity as protokube does before it calls STS.
    fn check_signed_call(&self, header: Option<&str>, body: &[u8]) -> Result<(), String> {
        let wrong = |what: &str| {
            let error = RefusalReply {
                error: what.to_owned(),
                retry: false,
            };
            serde_json::to_string(&error).unwrap()
        };
        let header = header.ok_or_else(|| wrong("no identity"))?;
        let identity: SignedIdentity =
            serde_json::from_slice(&STANDARD.decode(header).unwrap()).unwrap();
        let signed = identity.headers["authorization"].clone();
        let binding = Binding::for_request(body, CLUSTER, &trust_bundle(&self.authority));
        for (name, value) in binding.headers() {
            if identity.headers.get(&name) != Some(&value) {
                return Err(wrong(&format!("{name} is another")));
            }
            if !signed.contains(&name) {
                return Err(wrong(&format!("{name} is not signed")));
            }
        }
        if identity.headers["host"] != "sts.eu-west-1.amazonaws.com" {
            return Err(wrong("for another host"));
        }
        Ok(())
    }

    fn answer_request(&self, request: &str, body: &[u8]) -> (&'static str, String) {
        let path = request.split(' ').nth(1).unwrap();
        if path == REPORT_PATH {
            let report = serde_json::from_slice(body).unwrap();
            self.reports.lock().unwrap().push(report);
            return ("200 OK", "{}".to_owned());
        }
        assert_eq!(path, JOIN_PATH);
        let join: JoinRequest = serde_json::from_slice(body).unwrap();
        self.joins.lock().unwrap().push(join.clone());
        match self.script.lock().unwrap().pop_front() {
            Some(ScriptedAnswer::Refusal(status, error, retry)) => {
                let refused = RefusalReply {
                    error: error.to_owned(),
                    retry,
                };
                (status, serde_json::to_string(&refused).unwrap())
            }
            Some(ScriptedAnswer::Proxy(status)) => (status, "<html>".to_owned()),
            None => {
                let joined = JoinReply {
                    format: 1,
                    node_config: self.node_config.clone(),
                    certificates: self.issue_certificates(&join.requests),
                    docker_config: self
                        .node_config
                        .contains("dockerConfig: true")
                        .then(|| Secret::new(PASSWORDS)),
                };
                ("200 OK", serde_json::to_string(&joined).unwrap())
            }
        }
    }

    fn issue_certificates(
        &self,
        requests: &BTreeMap<CertificateKind, String>,
    ) -> BTreeMap<CertificateKind, String> {
        let now = OffsetDateTime::now_utc();
        let sign = |(kind, request): (&CertificateKind, &String)| {
            let (name, organization) = match kind {
                CertificateKind::Kubelet => {
                    let name = format!("system:node:{}", super::imds::INSTANCE);
                    (name, Some("system:nodes".to_owned()))
                }
                CertificateKind::KubeProxy => ("system:kube-proxy".to_owned(), None),
            };
            let leaf = Leaf {
                common_name: name,
                organization,
                usage: Usage::Client,
                names: Vec::new(),
                validity: Duration::days(455),
            };
            let request = SigningRequest::from_pem(request.as_bytes()).unwrap();
            (
                *kind,
                sign_request(&self.authority, &request, &leaf, now).unwrap(),
            )
        };
        requests.iter().map(sign).collect()
    }
}
