//! One client per service, all with the same rules: credentials, retries, timeouts, a count of every attempt, and the fence.

use crate::attempts::{self, Again, Attempts};
use crate::fence::Fence;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
#[cfg(feature = "machine")]
use aws_credential_types::provider::SharedCredentialsProvider;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// An attempt that takes longer is given up and counts as "nobody knows whether it happened".
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Where requests go when nothing names a region: S3 answers there for every bucket.
const DEFAULT_REGION: &str = "us-east-1";

/// The clients of one account in one region. Cloning is cheap; clones share the count of calls and the fence.
#[derive(Clone, Debug)]
pub struct Clients {
    config: SdkConfig,
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

/// How to reach AWS, as far as it is not left to the environment and the files of the AWS CLI.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The region; else that of the environment or profile, else us-east-1.
    pub region: Option<String>,
    /// The profile.
    pub profile: Option<String>,
    /// Where all services answer, in the place of AWS' own addresses.
    pub endpoint: Option<String>,
    /// Who signs.
    pub keys: Option<Keys>,
    /// How long one attempt of a call may take that carries no file; else 30 seconds.
    pub attempt_timeout: Option<Duration>,
}

/// An access key.
#[derive(Clone)]
pub struct Keys {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: String,
    /// The token of a session, if it is one's.
    pub session: Option<String>,
}

impl fmt::Debug for Keys {
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
        Self::reach(&Access {
            region: region.map(ToOwned::to_owned),
            profile: profile.map(ToOwned::to_owned),
            ..Access::default()
        })
        .await
    }

    /// Clients that reach AWS like this. Calls nothing.
    pub async fn reach(access: &Access) -> Self {
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(crate::fence::wire::client())
            .retry_config(RetryConfig::standard().with_max_attempts(attempts::MOST))
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
        if let Some(Keys {
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
        Self::build(&config, &region, Attempts::default(), Fence::default())
    }

    /// The same account, credentials, count of calls and fence in another region.
    #[must_use]
    pub fn in_region(&self, region: &str) -> Self {
        Self::build(
            &self.config,
            region,
            self.attempts.clone(),
            self.fence.clone(),
        )
    }

    /// The same, but that no fence stops it: for what keeps the lock that the fence belongs to.
    #[must_use]
    pub fn unfenced(&self) -> Self {
        Self::build(
            &self.config,
            &self.region,
            self.attempts.clone(),
            Fence::default(),
        )
    }

    /// What says until when writes may begin. All clones, in whichever region, have the same.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The same, but that `listener` is told of calls that fail again and again, of each once.
    #[must_use]
    pub fn telling(&self, listener: impl Fn(&Again) + Send + Sync + 'static) -> Self {
        let attempts = self.attempts.telling(listener);
        Self::build(&self.config, &self.region, attempts, self.fence.clone())
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
        let of = self.config.timeout_config();
        of.and_then(TimeoutConfig::operation_attempt_timeout)
            .unwrap_or(ATTEMPT_TIMEOUT)
    }

    /// Who signs.
    #[cfg(feature = "machine")]
    pub(crate) fn credentials(&self) -> Option<SharedCredentialsProvider> {
        self.config.credentials_provider()
    }

    fn build(config: &SdkConfig, region: &str, attempts: Attempts, fence: Fence) -> Self {
        let config = config
            .to_builder()
            .region(Region::new(region.to_owned()))
            .build();
        Self {
            s3: s3(&config, &attempts, &fence),
            sts: sdk_client!(aws_sdk_sts, &config, attempts, fence),
            #[cfg(feature = "route53")]
            route53: sdk_client!(aws_sdk_route53, &config, attempts, fence),
            region: region.to_owned(),
            config,
            attempts,
            fence,
        }
    }
}

/// S3. Behind an endpoint of the user's a bucket is a path: its name as a host name would not resolve.
fn s3(config: &SdkConfig, attempts: &Attempts, fence: &Fence) -> aws_sdk_s3::Client {
    let custom =
        config.endpoint_url().is_some() || std::env::var_os("AWS_ENDPOINT_URL_S3").is_some();
    let config = aws_sdk_s3::config::Builder::from(config)
        .force_path_style(custom)
        .interceptor(attempts.clone())
        .interceptor(fence.clone());
    aws_sdk_s3::Client::from_conf(config.build())
}
