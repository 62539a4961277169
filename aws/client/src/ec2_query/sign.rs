//! Signature version 4 over one POST.

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use std::collections::BTreeMap;
use std::error::Error;
use std::time::SystemTime;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCall {
    pub url: String,
    /// Its headers by lower-case name, `authorization` among them.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

pub(super) struct UnsignedCall<'a> {
    pub service: &'a str,
    pub region: &'a str,
    pub url: String,
    pub body: &'a str,
    pub headers: &'a [(String, String)],
}

/// The call with its headers, `authorization` among them.
pub(super) fn sign_call(
    call: &UnsignedCall<'_>,
    credentials: Credentials,
    now: SystemTime,
) -> Result<SignedCall, Box<dyn Error + Send + Sync>> {
    let identity = credentials.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(call.region)
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
    let (instructions, _) = sign(request, &parameters)?.into_parts();
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
