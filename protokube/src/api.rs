//! Access to this instance's API server, with client certificates that are issued in memory and never stored: as protokube's own
//! user, whom the addon `protokube.rbac.kctl.dev` grants what the roles call; and as an administrator, for minutes, to apply addons,
//! and while that addon is not applied yet.

use crate::identity::Clock;
use anyhow::Context;
use aws_client::store::Store;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client, Config};
use node::config::NodeConfig;
use node::pki::{KUBERNETES_CA, Keyset, Leaf, SystemKeys, Usage, issue_certificate, trust_bundle};
use node::protokube::{ADDON_RECORD, GROUP, USER};
use protokube_role::keysets::read_keyset_object;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use x509_parser::pem::Pem;

/// Validity of the certificate of protokube's own user.
const VALIDITY: time::Duration = time::Duration::days(30);

/// Time after which a role restarts with a new client.
pub(crate) const CLIENT_LIFE: Duration = Duration::from_hours(7 * 24);

/// Validity of an administrator's certificate.
const ADMIN_VALIDITY: time::Duration = time::Duration::minutes(10);

/// Time after which a role that runs as an administrator restarts, and asks again for its own rights. Also the time for which the
/// answer is kept for whoever asks for a client at each call.
const CHECK_AGAIN: Duration = Duration::from_secs(30);

/// Group of administrators, whom no rule limits.
pub(crate) const ADMINISTRATORS: &str = "system:masters";

/// Timeout of the question for protokube's own rights.
const ANSWER: Duration = Duration::from_secs(10);

/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(10);

/// URL of this instance's API server, `https://127.0.0.1:PORT`.
pub(crate) fn api_server_url(config: &NodeConfig) -> String {
    let pods = config.control_plane.as_ref();
    let pod = pods.and_then(|control_plane| control_plane.static_pods.get("kube-apiserver"));
    let ports = pod.into_iter().flat_map(|pod| &pod.spec.containers);
    let port = ports
        .flat_map(|container| &container.ports)
        .map(|port| port.host_port)
        .next();
    format!("https://127.0.0.1:{}", port.unwrap_or(node::ports::API))
}

/// A client, and what it may do.
#[derive(Clone)]
pub struct ApiClient {
    pub client: Client,
    /// True if it belongs to protokube's own user; false for an administrator, because the user has no rights yet.
    pub granted: bool,
}

impl ApiClient {
    /// Time after which a role asks for another client.
    pub(crate) fn life(&self) -> Duration {
        if self.granted {
            CLIENT_LIFE
        } else {
            CHECK_AGAIN
        }
    }
}

/// Where roles get their clients from. Cloning is cheap.
#[derive(Clone)]
pub struct ApiAccess(Source);

#[derive(Clone)]
enum Source {
    /// Clients that exist, and how an administrator's is made.
    Given(ApiClient, Arc<dyn Fn() -> Client + Send + Sync>),
    Issued(Arc<Issuer>),
}

/// Issues certificates for clients of one API server.
struct Issuer {
    store: Store,
    url: String,
    clock: Clock,
    last: Mutex<Option<Issued>>,
}

/// The clients that were issued last.
struct Issued {
    /// The client of protokube's own user.
    own: Client,
    issued: Instant,
    /// What roles get.
    given: ApiClient,
    /// When the API server was asked for the user's rights.
    asked: Instant,
}

impl From<Client> for ApiAccess {
    fn from(client: Client) -> Self {
        let own = ApiClient {
            client: client.clone(),
            granted: true,
        };
        Self::given(own, move || client.clone())
    }
}

impl std::fmt::Debug for ApiAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiAccess").finish_non_exhaustive()
    }
}

impl ApiAccess {
    /// Access with these clients.
    pub fn given(own: ApiClient, admin: impl Fn() -> Client + Send + Sync + 'static) -> Self {
        Self(Source::Given(own, Arc::new(admin)))
    }

    /// Access to the API server at `url`, with certificates of the authority in the store.
    pub fn issuing(store: &Store, url: String, clock: Clock) -> Self {
        Self(Source::Issued(Arc::new(Issuer {
            store: store.clone(),
            url,
            clock,
            last: Mutex::default(),
        })))
    }

    /// A client for what roles call: of protokube's own user, or of an administrator as long as the user has no rights. Asks the API
    /// server, at most twice a minute.
    pub async fn client(&self) -> anyhow::Result<ApiClient> {
        let issuer = match &self.0 {
            Source::Given(own, _) => return Ok(own.clone()),
            Source::Issued(issuer) => issuer,
        };
        let mut last = issuer.last.lock().await;
        if let Some(known) = &*last
            && known.asked.elapsed() < CHECK_AGAIN
        {
            return Ok(known.given.clone());
        }
        let found = issuer.find_client(last.as_ref()).await?;
        Ok(last.insert(found).given.clone())
    }

    /// A client of an administrator, valid for ten minutes: addons contain access rules, and whoever may write any access rule is an
    /// administrator by that.
    pub async fn admin_client(&self) -> anyhow::Result<Client> {
        match &self.0 {
            Source::Given(_, admin) => Ok(admin()),
            Source::Issued(issuer) => issuer.issue_admin().await,
        }
    }
}

impl Issuer {
    async fn find_client(&self, last: Option<&Issued>) -> anyhow::Result<Issued> {
        let known = last.filter(|last| last.issued.elapsed() < CLIENT_LIFE);
        let (own, issued) = match known {
            Some(known) => (known.own.clone(), known.issued),
            None => (self.issue_own().await?, Instant::now()),
        };
        let granted = tokio::time::timeout(ANSWER, has_rights(&own)).await;
        let granted = granted.context("the API server timed out")??;
        let client = if granted {
            own.clone()
        } else {
            self.issue_admin().await?
        };
        Ok(Issued {
            own,
            issued,
            given: ApiClient { client, granted },
            asked: Instant::now(),
        })
    }

    async fn issue_own(&self) -> anyhow::Result<Client> {
        let authority = read_keyset_object(&self.store, KUBERNETES_CA).await?;
        self.issue_client(&authority, GROUP, VALIDITY)
    }

    async fn issue_admin(&self) -> anyhow::Result<Client> {
        let authority = read_keyset_object(&self.store, KUBERNETES_CA).await?;
        self.issue_client(&authority, ADMINISTRATORS, ADMIN_VALIDITY)
    }

    /// A client of the user `protokube` in this group, with a newly issued certificate.
    fn issue_client(
        &self,
        authority: &Keyset,
        group: &str,
        validity: time::Duration,
    ) -> anyhow::Result<Client> {
        let leaf = Leaf {
            common_name: USER.to_owned(),
            organization: Some(group.to_owned()),
            usage: Usage::Client,
            names: Vec::new(),
            validity,
        };
        let mut keys = SystemKeys::issuing_at((self.clock)());
        let issued = issue_certificate(authority, &leaf, &mut keys)?;
        let url = &self.url;
        let address = url
            .parse()
            .with_context(|| format!("{url} is not a valid URL of an API server"))?;
        let mut config = Config::new(address);
        config.root_cert = Some(parse_certificates(&trust_bundle(authority))?);
        config.connect_timeout = Some(CONNECT);
        // Roles repeat what failed. The client would do so for minutes, also an eviction that a budget refuses (429).
        config.default_retry = false;
        config.auth_info.client_certificate_data = Some(STANDARD.encode(&issued.certificate));
        config.auth_info.client_key_data = Some(STANDARD.encode(issued.key.reveal()).into());
        Client::try_from(config).context("could not create a client of the API server")
    }
}

/// True if the addon's rules apply to a client: one question for each of its bindings. Every user may ask about himself
/// (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access>).
async fn has_rights(client: &Client) -> anyhow::Result<bool> {
    let questions = [
        ("list", "", "nodes", "", ""),
        ("get", "", "configmaps", "kube-system", ADDON_RECORD),
        (
            "get",
            "discovery.k8s.io",
            "endpointslices",
            "default",
            "kubernetes",
        ),
    ];
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    for (verb, group, resource, namespace, name) in questions {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: some(verb),
                    group: some(group),
                    resource: some(resource),
                    namespace: some(namespace),
                    name: some(name),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await;
        // Not even that, before the API server has made its own roles.
        if matches!(&answer, Err(kube::Error::Api(status)) if status.code == 403) {
            return Ok(false);
        }
        let answer = answer.context("could not ask the API server for protokube's own rights")?;
        if !answer.status.is_some_and(|status| status.allowed) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Parses a PEM bundle into DER certificates.
fn parse_certificates(bundle: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let read = Pem::iter_from_buffer(bundle.as_bytes()).map(|pem| Ok(pem?.contents));
    read.collect::<anyhow::Result<_>>()
        .context("the certificates of kubernetes-ca are not valid PEM")
}
