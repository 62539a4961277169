//! What a registry wants to see (RFC 9110, `WWW-Authenticate`; distribution's token specification).

use super::answer::repeat;
use super::{Access, ImageName, send_with};
use anyhow::{Context, Error, bail};
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    /// The same by its name in OAuth.
    access_token: Option<String>,
}

/// The value of the header that a challenge asks for. `password`: user and password in base64, if there is one.
pub(super) async fn request_token(
    client: &Client,
    challenge: &str,
    image: &ImageName,
    access: Access,
    password: Option<&str>,
) -> anyhow::Result<String> {
    const NO_PASSWORD: &str = "docker's configuration has no password for it";
    let refused = |status: StatusCode| Error::new(image.refusal(access, status));
    let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
    if scheme.eq_ignore_ascii_case("basic") {
        let missing = || refused(StatusCode::UNAUTHORIZED).context(NO_PASSWORD);
        return Ok(format!("Basic {}", password.ok_or_else(missing)?));
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        bail!("it asks for {scheme:?}, which kctl does not know");
    }
    let realm = parameter(parameters, "realm").context("it says no address for tokens")?;
    let url = Url::parse(&realm).with_context(|| format!("{realm:?} is no address for tokens"));
    let mut url = url?;
    url.query_pairs_mut()
        .append_pair("scope", &image.scope(access));
    if let Some(service) = parameter(parameters, "service") {
        url.query_pairs_mut().append_pair("service", &service);
    }
    let basic = password.map(|password| format!("Basic {password}"));
    let answer = repeat(|| send_with(client.get(url.clone()), basic.as_deref())).await?;
    let status = answer.status();
    if !status.is_success() {
        let why = if password.is_none() {
            NO_PASSWORD
        } else {
            "the password in docker's configuration is refused"
        };
        return Err(refused(status).context(format!("{realm} answers {status}: {why}")));
    }
    let answer: Answer = answer.json().await.map_err(reqwest::Error::without_url)?;
    let token = answer.token.or(answer.access_token);
    Ok(format!("Bearer {}", token.context("it gave no token")?))
}

/// A parameter of a challenge: `realm="https://auth.example.com/token",service="x"`.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    loop {
        let (key, value) = rest.split_once('=')?;
        let (value, behind) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_once(',').unwrap_or((value, "")),
        };
        if key.trim_matches([' ', ',']).eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn parameters_of_a_challenge_are_read_whether_quoted_or_not() {
        let text = r#"realm="https://auth.example.com/token?a=b,c",service=x, scope="repository:a:pull,push""#;
        for (name, value) in [
            ("realm", Some("https://auth.example.com/token?a=b,c")),
            ("Service", Some("x")),
            ("scope", Some("repository:a:pull,push")),
            ("error", None),
        ] {
            assert_eq!(parameter(text, name).as_deref(), value);
        }
        assert_eq!(parameter("", "realm"), None);
        assert_eq!(parameter("realm=\"cut", "realm"), None);
    }
}
