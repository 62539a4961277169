//! Who am I: the caller as STS sees it, and the instance as its metadata service sees it.

use crate::Clients;
use crate::failure::{Classify, local_failure};
use crate::fence::wire::fenced_http_client;
use aws_config::imds;
use aws_config::imds::client::EndpointMode;
use aws_config::imds::client::error::ImdsError;
use aws_config::provider_config::ProviderConfig;
use engine::{Class, Failure, error_chain};
use std::time::Duration;

/// How long the metadata service may take to accept a connection and to answer. The user data script waits as long. The SDK's
/// second is too short for an instance whose network or metadata proxy has just begun to start.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);

/// Attempts to reach the metadata service, with pauses of 1, 2, 4 and 8 seconds between them, as in the user data script. systemd
/// starts an agent that gave up again.
const METADATA_ATTEMPTS: u32 = 5;

/// The caller of the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Twelve digits.
    pub account: String,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// The user or the assumed role.
    pub arn: String,
}

/// Asks STS; one call.
pub async fn caller_identity(clients: &Clients) -> Result<Identity, Failure> {
    const CALL: &str = "sts:GetCallerIdentity";
    let answer = clients
        .sts
        .get_caller_identity()
        .send()
        .await
        .classify_call(CALL)?;
    let (Some(account), Some(arn)) = (answer.account, answer.arn) else {
        return Err(local_failure(
            Class::Unknown,
            CALL,
            "the answer lacks account or ARN",
        ));
    };
    let partition = arn.split(':').nth(1).unwrap_or("aws").to_owned();
    Ok(Identity {
        account,
        partition,
        arn,
    })
}

/// The instance metadata service (version 2) of the instance this runs on.
#[derive(Clone, Debug)]
pub struct Imds(pub(crate) imds::Client);

impl Imds {
    /// Waits until the service answers, and returns a client of the address where it did: every second attempt is made at that for
    /// instances without IPv4 (`fd00:ec2::254`). `AWS_EC2_METADATA_SERVICE_ENDPOINT` may name another address. No client uses a proxy.
    /// `log` receives the cause of each failed attempt but the last, which is the result.
    pub async fn find(log: &dyn Fn(&str)) -> Result<Self, Failure> {
        let mut attempt = 1;
        loop {
            let mode = (attempt % 2 == 0).then_some(EndpointMode::IpV6);
            let imds = Self::at_address(mode);
            match imds.instance_id().await {
                Err(failure) if failure.class == Class::Unknown && attempt < METADATA_ATTEMPTS => {
                    log(&failure.to_string());
                    tokio::time::sleep(Duration::from_secs(1 << (attempt - 1))).await;
                    attempt += 1;
                }
                ended => return ended.map(|_| imds),
            }
        }
    }

    /// A client of the address for instances with IPv6, or of the usual one.
    fn at_address(mode: Option<EndpointMode>) -> Self {
        let settings = ProviderConfig::without_region().with_http_client(fenced_http_client(None));
        let mut client = imds::Client::builder();
        if let Some(mode) = mode {
            client = client.endpoint_mode(mode);
        }
        let client = client
            .configure(&settings)
            .connect_timeout(METADATA_TIMEOUT)
            .read_timeout(METADATA_TIMEOUT)
            // A read may ask for a token first.
            .operation_attempt_timeout(METADATA_TIMEOUT * 3)
            .operation_timeout(METADATA_TIMEOUT * 6);
        Self(client.build())
    }

    /// `/latest/PATH` as text (`meta-data/instance-id`, `user-data`); `None` if there is no such thing.
    pub async fn get(&self, path: &str) -> Result<Option<String>, Failure> {
        match self.0.get(format!("/latest/{path}")).await {
            Ok(value) => Ok(Some(value.into())),
            Err(ImdsError::ErrorResponse(answer)) if answer.response().status().as_u16() == 404 => {
                Ok(None)
            }
            Err(error) => Err(metadata_failure(path, &error)),
        }
    }

    /// The region the instance runs in.
    pub async fn region(&self) -> Result<Option<String>, Failure> {
        self.get("meta-data/placement/region").await
    }

    /// Its id, `i-...`.
    pub async fn instance_id(&self) -> Result<Option<String>, Failure> {
        self.get("meta-data/instance-id").await
    }
}

/// A failure with the whole chain of causes: the outermost of them says only that there is no token.
fn metadata_failure(path: &str, error: &ImdsError) -> Failure {
    let message = error_chain(error);
    let answered = match error {
        ImdsError::ErrorResponse(answer) => answer.response().status().as_u16(),
        _ => 0,
    };
    // 403: the instance's metadata options switch the service off (EC2 user guide, "Configure the instance metadata options").
    let (class, next) = if answered == 403 || message.contains("forbidden") {
        (
            Class::Denied,
            "switch the metadata service on with aws ec2 modify-instance-metadata-options --http-endpoint enabled",
        )
    } else {
        (
            Class::Unknown,
            "check that this is an EC2 instance, and that no firewall or proxy is in front of the metadata service",
        )
    };
    local_failure(class, "imds:Get", format!("{path}: {message}; {next}"))
}
