//! A small client of EC2, STS, Auto Scaling and SQS for nodeup and protokube: a few calls, signed here. The EC2 client of the
//! SDK would make up most of the size and build time of these programs.

mod answer;
mod autoscaling;
mod ec2;
mod sqs;
mod sts;

pub use crate::signed_call::SignedCall;
pub use autoscaling::ScalingMember;
pub use ec2::{Attachment, Instance, NetworkInterface, Volume};
pub use sqs::{Queue, QueueMessage};
pub use sts::CallerIdentity;

use crate::failure::local_failure;
use crate::signed_call::{self, UnsignedCall, build_http_client};
use crate::{Clients, Imds};
use engine::{Class, Failure};
use std::time::SystemTime;

/// Client of these services in the region of the instance it runs on. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Ec2QueryClient {
    clients: Clients,
    http: reqwest::Client,
    /// `amazonaws.com`.
    domain: String,
    /// URL of all services, in place of the AWS endpoints.
    endpoint_override: Option<String>,
}

impl Ec2QueryClient {
    /// The instance this runs on, with the credentials and region of those clients. Asks its metadata service for the
    /// domain of AWS' services.
    pub async fn new(clients: &Clients, imds: &Imds) -> Result<Self, Failure> {
        const CALL: &str = "imds:Get";
        let domain = imds.get("meta-data/services/domain").await?;
        Ok(Self {
            clients: clients.clone(),
            http: build_http_client(CALL)?,
            domain: domain.unwrap_or_else(|| "amazonaws.com".to_owned()),
            endpoint_override: None,
        })
    }

    /// A client that sends all calls to one URL. Makes no request.
    pub fn at_endpoint(clients: &Clients, url: &str) -> Result<Self, Failure> {
        Ok(Self {
            clients: clients.clone(),
            http: build_http_client("")?,
            domain: String::new(),
            endpoint_override: Some(url.to_owned()),
        })
    }

    pub fn region(&self) -> &str {
        self.clients.region()
    }

    /// The URL of a service (`ec2`, `sqs`, ...) in the instance's region; the AWS CLI's variables may name another.
    pub fn endpoint(&self, service: &str) -> String {
        let variables = [
            format!("AWS_ENDPOINT_URL_{}", service.to_uppercase()),
            "AWS_ENDPOINT_URL".to_owned(),
        ];
        let set = variables
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|url| !url.is_empty()));
        let usual = || format!("https://{service}.{}.{}", self.region(), self.domain);
        let url = self.endpoint_override.clone().or(set).unwrap_or_else(usual);
        format!("{}/", url.trim_end_matches('/'))
    }

    /// One call in the query protocol: the answer's XML.
    async fn query(
        &self,
        service: &str,
        action: &str,
        version: &str,
        parameters: &[(String, String)],
    ) -> Result<String, Failure> {
        let call = format!("{service}:{action}");
        let fixed = [("Action", action), ("Version", version)];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let all: Vec<&(String, String)> = fixed.iter().chain(parameters).collect();
        let body = encode_form(&all);
        let signed_call = self
            .sign(service, &body, &[], SystemTime::now())
            .await
            .map_err(|error| local_failure(Class::Denied, &call, error))?;
        answer::response_text(&call, self.send(&call, &signed_call).await?)
    }

    /// Sends a signed call; status and text of the answer.
    async fn send(&self, call: &str, signed: &SignedCall) -> Result<(u16, String), Failure> {
        signed_call::send_call(&self.http, call, signed).await
    }

    /// A POST to a service of this region, signed with the instance's credentials; `headers` are signed with it.
    async fn sign(
        &self,
        service: &str,
        body: &str,
        headers: &[(String, String)],
        now: SystemTime,
    ) -> Result<SignedCall, String> {
        let call = UnsignedCall {
            service,
            url: self.endpoint(service),
            body,
            headers,
        };
        signed_call::sign_call(&self.clients, &call, now).await
    }
}

/// `a=b&c=d`, encoded as AWS wants forms.
fn encode_form(parameters: &[&(String, String)]) -> String {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        text.append_pair(name, value);
    }
    text.finish()
}
