//! A fake worker that joins according to the protocol; tests change single parts of its requests.

use super::{GROUP, INSTANCE, NAME, TestCluster};
use aws_client::ec2_query::Ec2QueryClient;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node::bootstrap::{
    Binding, CertificateKind, FORMAT, IDENTITY_HEADER, JOIN_PATH, JoinReply, JoinRequest,
    REPORT_PATH, RefusalReply, SignedIdentity, certificate_leaf,
};
use node::pki::{SystemKeys, create_request, request_for_key, trust_bundle};
use node::secret::Secret;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::SystemTime;
use time::{Duration, OffsetDateTime};

pub struct FakeWorker {
    instance: Ec2QueryClient,
    http: reqwest::Client,
    port: u16,
    pub trusted: String,
    pub cluster: String,
    /// Time of its signatures.
    pub now: SystemTime,
    pub group: String,
    pub node_config: String,
    /// Instance id in its certificate requests.
    pub node: String,
    pub key: Secret,
}

/// Reply of the endpoint.
#[derive(Debug)]
pub struct EndpointReply {
    pub status: u16,
    pub body: String,
}

impl EndpointReply {
    pub fn join_reply(&self) -> JoinReply {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn refusal_reply(&self) -> RefusalReply {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not refused: {self:?}"))
    }
}

fn http_client(trusted: &str, endpoint: SocketAddr) -> reqwest::ClientBuilder {
    let roots = reqwest::Certificate::from_pem_bundle(trusted.as_bytes()).unwrap();
    reqwest::Client::builder()
        .tls_certs_only(roots)
        .resolve("kops-controller.internal.a.example.com", endpoint)
        .no_proxy()
}

impl FakeWorker {
    pub fn new(cluster: &TestCluster, instance: Ec2QueryClient) -> Self {
        let trusted = trust_bundle(&cluster.authority);
        Self {
            instance,
            http: http_client(&trusted, cluster.address).build().unwrap(),
            port: cluster.address.port(),
            trusted,
            cluster: NAME.to_owned(),
            now: SystemTime::now(),
            group: GROUP.to_owned(),
            node_config: cluster.node_config.sha256.clone(),
            node: INSTANCE.to_owned(),
            key: new_key(),
        }
    }

    /// Connects from that address from now on: the endpoint limits the connections of each address.
    pub fn connect_from(&mut self, address: IpAddr) {
        let endpoint = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let http = http_client(&self.trusted, endpoint).local_address(address);
        self.http = http.build().unwrap();
    }

    /// Status of an unauthenticated GET, as from a load balancer.
    pub async fn get_status(&self, path: &str) -> u16 {
        let url = format!(
            "https://kops-controller.internal.a.example.com:{}{path}",
            self.port
        );
        self.http.get(url).send().await.unwrap().status().as_u16()
    }

    /// Body of the default join request.
    pub fn join_body(&self) -> Vec<u8> {
        self.body_for(&[CertificateKind::Kubelet, CertificateKind::KubeProxy])
    }

    /// Body of a join request for these certificates.
    fn body_for(&self, certificates: &[CertificateKind]) -> Vec<u8> {
        let request = |certificate: &CertificateKind| {
            let leaf = certificate_leaf(*certificate, &self.node, Duration::DAY);
            (*certificate, request_for_key(&leaf, &self.key).unwrap())
        };
        let requests = certificates.iter().map(request).collect();
        let join = JoinRequest {
            format: FORMAT,
            group: self.group.clone(),
            node_config: self.node_config.clone(),
            requests,
        };
        serde_json::to_vec(&join).unwrap()
    }

    /// The signed identity for this body.
    pub async fn signed_identity(&self, body: &[u8]) -> SignedIdentity {
        let binding = Binding::for_request(body, &self.cluster, &self.trusted).headers();
        let signed = self.instance.sign_identity(&binding, self.now);
        SignedIdentity {
            headers: signed.await.unwrap().headers,
        }
    }

    /// Sends the default join request.
    pub async fn join(&self) -> EndpointReply {
        self.join_for(&[CertificateKind::Kubelet, CertificateKind::KubeProxy])
            .await
    }

    /// Sends a join request for these certificates.
    pub async fn join_for(&self, certificates: &[CertificateKind]) -> EndpointReply {
        let body = self.body_for(certificates);
        let identity = self.signed_identity(&body).await;
        self.send_request(JOIN_PATH, Some(&identity), body).await
    }

    /// Sends a boot report.
    pub async fn send_report(&self, body: Vec<u8>) -> EndpointReply {
        let identity = self.signed_identity(&body).await;
        self.send_request(REPORT_PATH, Some(&identity), body).await
    }

    /// Sends a request with any identity and body.
    pub async fn send_request(
        &self,
        path: &str,
        identity: Option<&SignedIdentity>,
        body: Vec<u8>,
    ) -> EndpointReply {
        let url = format!(
            "https://kops-controller.internal.a.example.com:{}{path}",
            self.port
        );
        let mut request = self.http.post(url).body(body);
        if let Some(identity) = identity {
            let json = serde_json::to_vec(identity).unwrap();
            request = request.header(IDENTITY_HEADER, STANDARD.encode(json));
        }
        let reply = request.send().await.unwrap();
        EndpointReply {
            status: reply.status().as_u16(),
            body: reply.text().await.unwrap(),
        }
    }
}

/// A private key of the type that kubelet uses.
pub fn new_key() -> Secret {
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    let leaf = certificate_leaf(CertificateKind::Kubelet, INSTANCE, Duration::DAY);
    create_request(&leaf, &mut keys).unwrap().1
}
