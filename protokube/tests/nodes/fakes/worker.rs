//! A worker that asks to join: by the words of the contract, with each of them open to change.

use super::{Cluster, GROUP, INSTANCE, NAME};
use aws_client::machine::Machine;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node::bootstrap::{
    Binding, CertificateKind, FORMAT, IDENTITY_HEADER, JOIN_PATH, JoinReply, JoinRequest,
    REPORT_PATH, RefusalReply, SignedIdentity, certificate_leaf,
};
use node::pki::{SystemKeys, create_request, request_for_key, trust_bundle};
use node::secret::Secret;
use std::time::SystemTime;
use time::{Duration, OffsetDateTime};

pub struct Worker {
    machine: Machine,
    http: reqwest::Client,
    port: u16,
    pub trusted: String,
    pub cluster: String,
    /// When it signs.
    pub now: SystemTime,
    pub group: String,
    pub node_config: String,
    /// Whose certificate it asks for.
    pub node: String,
    pub key: Secret,
}

/// What it was told.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn joined(&self) -> JoinReply {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn refused(&self) -> RefusalReply {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not refused: {self:?}"))
    }
}

impl Worker {
    pub fn new(cluster: &Cluster, machine: Machine) -> Self {
        let trusted = trust_bundle(&cluster.authority);
        let roots = reqwest::Certificate::from_pem_bundle(trusted.as_bytes()).unwrap();
        let http = reqwest::Client::builder()
            .tls_certs_only(roots)
            .resolve("kops-controller.internal.a.example.com", cluster.address)
            .no_proxy();
        Self {
            machine,
            http: http.build().unwrap(),
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

    /// What a load balancer is told, which asks without saying who it is.
    pub async fn get(&self, path: &str) -> u16 {
        let url = format!(
            "https://kops-controller.internal.a.example.com:{}{path}",
            self.port
        );
        self.http.get(url).send().await.unwrap().status().as_u16()
    }

    /// The body of its request.
    pub fn body(&self) -> Vec<u8> {
        self.body_for(&[CertificateKind::Kubelet, CertificateKind::KubeProxy])
    }

    /// The same for these certificates.
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

    /// Its identity, bound to that body.
    pub async fn identity(&self, body: &[u8]) -> SignedIdentity {
        let binding = Binding::for_request(body, &self.cluster, &self.trusted).headers();
        let signed = self.machine.sign_identity(&binding, self.now);
        SignedIdentity {
            headers: signed.await.unwrap().headers,
        }
    }

    /// Joins as it should.
    pub async fn join(&self) -> Answer {
        self.join_for(&[CertificateKind::Kubelet, CertificateKind::KubeProxy])
            .await
    }

    /// Asks for those certificates only.
    pub async fn join_for(&self, certificates: &[CertificateKind]) -> Answer {
        let body = self.body_for(certificates);
        let identity = self.identity(&body).await;
        self.send(JOIN_PATH, Some(&identity), body).await
    }

    /// Brings a report.
    pub async fn report(&self, body: Vec<u8>) -> Answer {
        let identity = self.identity(&body).await;
        self.send(REPORT_PATH, Some(&identity), body).await
    }

    /// Sends anything.
    pub async fn send(
        &self,
        path: &str,
        identity: Option<&SignedIdentity>,
        body: Vec<u8>,
    ) -> Answer {
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
        Answer {
            status: reply.status().as_u16(),
            body: reply.text().await.unwrap(),
        }
    }
}

/// A key as kubelet makes it.
pub fn new_key() -> Secret {
    let mut keys = SystemKeys::at(OffsetDateTime::now_utc());
    let leaf = certificate_leaf(CertificateKind::Kubelet, INSTANCE, Duration::DAY);
    create_request(&leaf, &mut keys).unwrap().1
}
