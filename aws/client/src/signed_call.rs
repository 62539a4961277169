//! One POST with a signature of version 4, for calls of services whose SDK client would cost more than they are worth.

use crate::Clients;
use crate::authorities::Authorities;
use crate::failure::local_failure;
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SigningSettings, sign as sign_request,
};
use aws_sigv4::sign::v4;
use engine::{Class, Failure, error_chain};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, SystemTime};

/// Timeout of one call.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCall {
    pub url: String,
    /// Its headers by lower-case name, `authorization` among them.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

pub(crate) struct UnsignedCall<'a> {
    pub service: &'a str,
    pub url: String,
    pub body: &'a str,
    pub headers: &'a [(String, String)],
}

/// The call signed with the credentials and for the region of these clients.
pub(crate) async fn sign_call(
    clients: &Clients,
    call: &UnsignedCall<'_>,
    now: SystemTime,
) -> Result<SignedCall, String> {
    let provider = clients.credentials().ok_or("there are no credentials")?;
    let credentials = provider.provide_credentials().await;
    let credentials = credentials
        .map_err(|error| format!("there are no credentials: {}", error_chain(&error)))?;
    sign(call, clients.region(), credentials, now).map_err(|error| error_chain(&*error))
}

/// Sends a signed call; status and text of the answer.
pub(crate) async fn send_call(
    http: &reqwest::Client,
    call: &str,
    signed: &SignedCall,
) -> Result<(u16, String), Failure> {
    let refused = Authorities::of_system().check_address(&signed.url);
    refused.map_err(|error| local_failure(Class::Invalid, call, error.to_string()))?;
    let mut request = http.post(&signed.url).body(signed.body.clone());
    for (name, value) in &signed.headers {
        request = request.header(name, value);
    }
    let sent = async {
        let reply = request.send().await?;
        Ok::<_, reqwest::Error>((reply.status().as_u16(), reply.text().await?))
    };
    sent.await
        .map_err(|error| local_failure(Class::Unknown, call, error_chain(&error)))
}

/// A client that trusts the authorities of the system. `call`: what fails without it.
pub(crate) fn build_http_client(call: &str) -> Result<reqwest::Client, Failure> {
    let trusted = Authorities::of_system().certificates();
    let trusted: reqwest::Result<Vec<_>> = trusted.map(reqwest::Certificate::from_der).collect();
    let client = trusted.and_then(|trusted| {
        let client = reqwest::Client::builder().timeout(TIMEOUT);
        client.tls_certs_only(trusted).build()
    });
    client.map_err(|error| local_failure(Class::Invalid, call, error_chain(&error)))
}

/// The call with its headers, `authorization` among them.
fn sign(
    call: &UnsignedCall<'_>,
    region: &str,
    credentials: Credentials,
    now: SystemTime,
) -> Result<SignedCall, Box<dyn Error + Send + Sync>> {
    let identity = credentials.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(call.service)
        .time(now)
        .settings(SigningSettings::default())
        .build()?
        .into();
    let url = reqwest::Url::parse(&call.url)?;
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return Err(format!("{url} has no host").into()),
    };
    let own = [
        ("host", host.as_str()),
        (
            "content-type",
            "application/x-www-form-urlencoded; charset=utf-8",
        ),
    ];
    let given = call.headers.iter();
    let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut headers: BTreeMap<String, String> = own
        .into_iter()
        .chain(given)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let signable = headers.iter();
    let signable = signable.map(|(name, value)| (name.as_str(), value.as_str()));
    let request = SignableRequest::new(
        "POST",
        &call.url,
        signable,
        SignableBody::Bytes(call.body.as_bytes()),
    )?;
    let (instructions, _) = sign_request(request, &parameters)?.into_parts();
    let (made, _) = instructions.into_parts();
    for header in made {
        headers.insert(header.name().to_owned(), header.value().to_owned());
    }
    Ok(SignedCall {
        url: call.url.clone(),
        headers,
        body: call.body.to_owned(),
    })
}
