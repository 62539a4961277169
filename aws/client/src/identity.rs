//! Who am I: the caller as STS sees it, and the instance as its metadata service sees it.

use crate::Clients;
use crate::failure::{Classify, local_failure};
use aws_config::imds;
use engine::{Class, Failure};

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
pub struct Imds(imds::Client);

impl Imds {
    /// A client of it; `AWS_EC2_METADATA_SERVICE_ENDPOINT` may name another address.
    pub fn new() -> Self {
        Self(imds::Client::builder().build())
    }

    /// `/latest/PATH` as text (`meta-data/instance-id`, `user-data`); `None` if there is no such thing.
    pub async fn get(&self, path: &str) -> Result<Option<String>, Failure> {
        const CALL: &str = "imds:Get";
        match self.0.get(format!("/latest/{path}")).await {
            Ok(value) => Ok(Some(value.into())),
            Err(imds::client::error::ImdsError::ErrorResponse(answer))
                if answer.response().status().as_u16() == 404 =>
            {
                Ok(None)
            }
            Err(error) => Err(local_failure(
                Class::Unknown,
                CALL,
                format!("{path}: {error}"),
            )),
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

impl Default for Imds {
    fn default() -> Self {
        Self::new()
    }
}
