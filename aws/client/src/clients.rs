//! One client per service, all with the same rules: credentials, retries, timeouts, a count of every attempt, and the fence.

use crate::Imds;
use crate::attempts::{self, Attempts, RetryNotice};
use crate::fence::Fence;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::identity::IdentityCache;
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
#[cfg(feature = "signed-calls")]
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::auth::AuthSchemeId;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// An attempt that takes longer is given up and counts as "nobody knows whether it happened".
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the credentials of an instance's role may take: three reads of its metadata service.
const ROLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Where requests go when nothing names a region: S3 answers there for every bucket.
const DEFAULT_REGION: &str = "us-east-1";

/// The clients of one account in one region. Cloning is cheap; clones share the count of calls and the fence.
#[derive(Clone, Debug)]
pub struct Clients {
    config: SdkConfig,
    /// As in [`AccessOptions`].
    authorities: Option<Vec<u8>>,
    region: String,
    attempts: Attempts,
    fence: Fence,
    pub(crate) s3: aws_sdk_s3::Client,
    pub(crate) sts: aws_sdk_sts::Client,
    #[cfg(feature = "route53")]
    pub(crate) route53: aws_sdk_route53::Client,
}

/// A client of one service with the shared configuration, the count of attempts and the fence. Clients are built with this only.
#[macro_export]
macro_rules! sdk_client {
    ($service:ident, $config:expr, $attempts:expr, $fence:expr) => {
        $service::Client::from_conf(
            $service::config::Builder::from($config)
                .interceptor($attempts.clone())
                .interceptor($fence.clone())
                .build(),
        )
    };
}

/// Options for reaching AWS. What is not set comes from the environment and the AWS CLI files.
#[derive(Clone, Debug, Default)]
pub struct AccessOptions {
    /// The region; else that of the environment or profile, else us-east-1.
    pub region: Option<String>,
    pub profile: Option<String>,
    /// URL of all services, in place of the AWS endpoints.
    pub endpoint: Option<String>,
    /// Certificate authorities, PEM, that are trusted instead of those of the system.
    pub authorities: Option<Vec<u8>>,
    pub keys: Option<AccessKey>,
    /// The metadata service of the instance this runs on, if it is one: asked for credentials with an agent's patience.
    pub imds: Option<Imds>,
    /// How long one attempt of a call may take that carries no file; else 30 seconds.
    pub attempt_timeout: Option<Duration>,
}

#[derive(Clone)]
pub struct AccessKey {
    pub id: String,
    pub secret: String,
    /// Session token of temporary credentials.
    pub session: Option<String>,
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Clients {
    /// Clients for `region` with the credentials of `profile`, both left to the environment if not given.
    /// Reads files and environment; calls nothing.
    pub async fn load(region: Option<&str>, profile: Option<&str>) -> Self {
        Self::from_access(&AccessOptions {
            region: region.map(ToOwned::to_owned),
            profile: profile.map(ToOwned::to_owned),
            ..AccessOptions::default()
        })
        .await
    }

    /// Clients of an agent for the region of its instance, with the role of the instance. Calls nothing.
    pub async fn on_instance(region: Option<&str>, imds: &Imds) -> Self {
        Self::from_access(&AccessOptions {
            region: region.map(ToOwned::to_owned),
            imds: Some(imds.clone()),
            ..AccessOptions::default()
        })
        .await
    }

    /// Clients with these options. Makes no call.
    pub async fn from_access(access: &AccessOptions) -> Self {
        let http_client = crate::fence::wire::fenced_http_client(access.authorities.as_deref());
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(http_client.clone())
            .retry_config(RetryConfig::standard().with_max_attempts(attempts::MAX_ATTEMPTS))
            .timeout_config(
                TimeoutConfig::builder()
                    .operation_attempt_timeout(access.attempt_timeout.unwrap_or(ATTEMPT_TIMEOUT))
                    .build(),
            );
        if let Ok(name) = AppName::new("kctl") {
            loader = loader.app_name(name);
        }
        if let Some(region) = &access.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(profile) = &access.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(endpoint) = &access.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        if let Some(imds) = &access.imds {
            let settings = ProviderConfig::without_region().with_http_client(http_client);
            let region = access.region.clone();
            let region = region.unwrap_or_else(|| DEFAULT_REGION.to_owned());
            let chain = DefaultCredentialsChain::builder()
                .configure(settings)
                .region(Region::new(region))
                .imds_client(imds.0.clone());
            let patient = IdentityCache::lazy().load_timeout(ROLE_TIMEOUT);
            loader = loader
                .credentials_provider(chain.build().await)
                .identity_cache(patient.build());
        }
        if let Some(AccessKey {
            id,
            secret,
            session,
        }) = access.keys.clone()
        {
            let keys = Credentials::new(id, secret, session, None, "given");
            loader = loader.credentials_provider(keys);
        }
        let config = loader.load().await;
        let region = config
            .region()
            .map_or_else(|| DEFAULT_REGION.to_owned(), ToString::to_string);
        let authorities = access.authorities.clone();
        let (attempts, fence) = (Attempts::default(), Fence::default());
        Self::from_config(&config, authorities, &region, attempts, fence)
    }

    /// The same account, credentials, count of calls and fence in another region.
    #[must_use]
    pub fn in_region(&self, region: &str) -> Self {
        let (attempts, fence) = (self.attempts.clone(), self.fence.clone());
        Self::from_config(
            &self.config,
            self.authorities.clone(),
            region,
            attempts,
            fence,
        )
    }

    /// The same clients without the fence: for the code that renews the lock to which the fence belongs.
    #[must_use]
    pub fn without_fence(&self) -> Self {
        self.with_parts(&self.config, self.attempts.clone(), Fence::default())
    }

    /// The same clients with connections of their own. A connection belongs to the runtime on which it was made, and does nothing while the
    /// threads of that runtime are busy.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        let http = crate::fence::wire::fenced_http_client(self.authorities.as_deref());
        let config = self.config.to_builder().http_client(http).build();
        self.with_parts(&config, self.attempts.clone(), self.fence.clone())
    }

    /// The deadline for starting writes. All clones share it, in every region.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The same clients, which report each repeatedly failing call to `listener` once.
    #[must_use]
    pub fn with_retry_listener(
        &self,
        listener: impl Fn(&RetryNotice) + Send + Sync + 'static,
    ) -> Self {
        let attempts = self.attempts.with_listener(listener);
        self.with_parts(&self.config, attempts, self.fence.clone())
    }

    /// The configuration that all clients share, for a client of another service ([`sdk_client`](crate::sdk_client)).
    pub fn config(&self) -> &SdkConfig {
        &self.config
    }

    /// The count of attempts that all clients share.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// The region requests go to.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Attempts so far by `service.operation`, repeated ones included.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        self.attempts.counts()
    }

    /// How long one attempt of a call may take that carries no file.
    pub(crate) fn attempt_timeout(&self) -> Duration {
        let timeouts = self.config.timeout_config();
        timeouts
            .and_then(TimeoutConfig::operation_attempt_timeout)
            .unwrap_or(ATTEMPT_TIMEOUT)
    }

    #[cfg(feature = "signed-calls")]
    pub(crate) fn credentials(&self) -> Option<SharedCredentialsProvider> {
        self.config.credentials_provider()
    }

    fn with_parts(&self, config: &SdkConfig, attempts: Attempts, fence: Fence) -> Self {
        Self::from_config(
            config,
            self.authorities.clone(),
            &self.region,
            attempts,
            fence,
        )
    }

    fn from_config(
        config: &SdkConfig,
        authorities: Option<Vec<u8>>,
        region: &str,
        attempts: Attempts,
        fence: Fence,
    ) -> Self {
        let config = config
            .to_builder()
            .region(Region::new(region.to_owned()))
            .build();
        Self {
            s3: build_s3_client(&config, &attempts, &fence),
            sts: sdk_client!(aws_sdk_sts, &config, attempts, fence),
            #[cfg(feature = "route53")]
            route53: sdk_client!(aws_sdk_route53, &config, attempts, fence),
            region: region.to_owned(),
            config,
            authorities,
            attempts,
            fence,
        }
    }
}

/// The S3 client. With a custom endpoint it uses path-style URLs: the bucket's host name would not resolve.
fn build_s3_client(config: &SdkConfig, attempts: &Attempts, fence: &Fence) -> aws_sdk_s3::Client {
    let custom =
        config.endpoint_url().is_some() || std::env::var_os("AWS_ENDPOINT_URL_S3").is_some();
    let config = aws_sdk_s3::config::Builder::from(config)
        .force_path_style(custom)
        .interceptor(attempts.clone())
        .interceptor(fence.clone());
    aws_sdk_s3::Client::from_conf(config.build())
}

/// The scheme of the SDK for requests without a signature.
const UNSIGNED: AuthSchemeId = AuthSchemeId::new("noAuth");

/// The same client, which signs nothing.
pub(crate) fn unsigned(s3: &aws_sdk_s3::Client) -> aws_sdk_s3::Client {
    let config = s3.config().to_builder().allow_no_auth();
    let config = config.auth_scheme_preference([UNSIGNED]);
    aws_sdk_s3::Client::from_conf(config.build())
}
