//! Runs a real etcd and kube-apiserver in a temporary folder. `KCTL_KUBERNETES` names the folder with the programs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::{Client, Config};
use node::pki::{
    KeyAlgorithm, Keyset, Leaf, SystemKeys, Usage, issue_certificate, mint_keyset, trust_bundle,
};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

/// The running programs, which end with the test, and their folder.
pub struct ControlPlane {
    children: Vec<Child>,
    pub authority: Keyset,
    pub url: String,
    pub folder: TempDir,
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        if std::thread::panicking() {
            for program in ["etcd", "api"] {
                let log = self.folder.path().join(program).join("log");
                let log = fs::read_to_string(log).unwrap_or_default();
                let from = log.lines().count().saturating_sub(30);
                eprintln!(
                    "{program}:\n{}",
                    log.lines().skip(from).collect::<Vec<_>>().join("\n")
                );
            }
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn run(program: &str, folder: &Path, arguments: &[String]) -> Child {
    let programs = std::env::var_os("KCTL_KUBERNETES").expect("KCTL_KUBERNETES names no folder");
    let log = fs::File::create(folder.join("log")).unwrap();
    Command::new(Path::new(&programs).join(program))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl ControlPlane {
    pub fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let (etcd, peers, api) = (free_port(), free_port(), free_port());
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
        let authority = mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("ca.crt"), trust_bundle(&authority)).unwrap();
        let server = issue_pem_pair(&authority, "kubernetes-master", None, Usage::Server);
        fs::write(path("server.crt"), &server.0).unwrap();
        fs::write(path("server.key"), &server.1).unwrap();
        let etcd_url = format!("http://127.0.0.1:{etcd}");
        let peer_url = format!("http://127.0.0.1:{peers}");
        let (etcd_folder, api_folder) = (path("etcd"), path("api"));
        fs::create_dir(&etcd_folder).unwrap();
        fs::create_dir(&api_folder).unwrap();
        let etcd = [
            "--data-dir=data".to_owned(),
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            "--unsafe-no-fsync".to_owned(),
        ];
        let file = |flag: &str, name: &str| format!("--{flag}={}", path(name).display());
        let server = [
            format!("--etcd-servers={etcd_url}"),
            format!("--secure-port={api}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            file("client-ca-file", "ca.crt"),
            file("tls-cert-file", "server.crt"),
            file("tls-private-key-file", "server.key"),
            // kube-apiserver accepts PKCS#8 keys for signing only.
            file("service-account-key-file", "server.crt"),
            file("service-account-signing-key-file", "server.key"),
            "--service-account-issuer=https://kubernetes.default".to_owned(),
            // As in the sample spec.
            "--api-audiences=kubernetes.svc.default".to_owned(),
            "--service-cluster-ip-range=100.64.0.0/16".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--anonymous-auth=false".to_owned(),
            "--allow-privileged=true".to_owned(),
        ];
        Self {
            children: vec![
                run("etcd", &etcd_folder, &etcd),
                run("kube-apiserver", &api_folder, &server),
            ],
            authority,
            url: format!("https://127.0.0.1:{api}"),
            folder,
        }
    }

    #[allow(dead_code, reason = "for the tests that need it")]
    pub fn client_with_token(&self, token: &str) -> Client {
        let mut config = self.admin_config();
        config.auth_info.token = Some(token.to_owned().into());
        Client::try_from(config).unwrap()
    }

    fn admin_config(&self) -> Config {
        let bundle = trust_bundle(&self.authority);
        let (_, root) = x509_parser::pem::parse_x509_pem(bundle.as_bytes()).unwrap();
        let mut config = Config::new(self.url.parse().unwrap());
        config.root_cert = Some(vec![root.contents]);
        config
    }

    pub fn client_for_user(&self, user: &str, group: &str) -> Client {
        let (certificate, key) = issue_pem_pair(&self.authority, user, Some(group), Usage::Client);
        let mut config = self.admin_config();
        config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
        config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
        Client::try_from(config).unwrap()
    }
}

/// Certificate and key, PEM.
fn issue_pem_pair(
    authority: &Keyset,
    name: &str,
    group: Option<&str>,
    usage: Usage,
) -> (String, String) {
    let leaf = Leaf {
        common_name: name.to_owned(),
        organization: group.map(str::to_owned),
        usage,
        names: vec!["127.0.0.1".to_owned()],
        validity: Duration::DAY,
    };
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    let issued = issue_certificate(authority, &leaf, &mut keys).unwrap();
    (issued.certificate, issued.key.reveal().to_owned())
}
