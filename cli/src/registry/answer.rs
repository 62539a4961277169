//! Answers of registries: what another attempt may change, and what a refusal says.

use super::{Access, ImageName};
use crate::fetch::{TRIES, pause_after};
use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use std::time::Duration;

/// The longest pause that is waited out. A registry that asks for more has a limit of hours, such as of anonymous pulls.
const LONGEST: Duration = Duration::from_mins(1);

/// How much of a refusal is read, bytes.
const MOST: usize = 64 << 10;

/// What a registry says of a refusal (distribution specification 1.1, "Error Codes").
#[derive(Deserialize)]
struct RefusalBody {
    errors: Vec<RefusalError>,
}

#[derive(Deserialize)]
struct RefusalError {
    code: String,
    #[serde(default)]
    message: String,
}

/// Sends until another attempt would change nothing: registries throttle, and connections break.
pub(super) async fn repeat<F>(send: impl Fn() -> F) -> anyhow::Result<Response>
where
    F: Future<Output = anyhow::Result<Response>>,
{
    let mut tries = 1;
    loop {
        let sent = send().await;
        let asked = sent.as_ref().ok().and_then(asked_pause);
        let is_last = tries >= TRIES || asked.is_some_and(|asked| asked > LONGEST);
        if is_last || !may_pass(&sent) {
            return sent;
        }
        tokio::time::sleep(asked.unwrap_or_else(|| pause_after(tries))).await;
        tries += 1;
    }
}

fn may_pass(sent: &anyhow::Result<Response>) -> bool {
    match sent {
        Ok(answer) => {
            let again = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
            answer.status().is_server_error() || again.contains(&answer.status())
        }
        // An error with context is of a request that was repeated itself, or of none.
        Err(error) => {
            let outermost = error.chain().next();
            let sending = outermost.and_then(|error| error.downcast_ref::<reqwest::Error>());
            sending.is_some_and(|error| !error.is_builder() && !error.is_redirect())
        }
    }
}

/// In seconds: the form that registries use.
fn asked_pause(answer: &Response) -> Option<Duration> {
    let asked = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(asked.trim().parse().ok()?))
}

/// Fails of an answer that is no success, with what the registry says of it.
pub(super) async fn check_status(
    mut answer: Response,
    image: &ImageName,
    access: Access,
) -> anyhow::Result<Response> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let mut bytes = Vec::new();
    while let Ok(Some(piece)) = answer.chunk().await {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MOST {
            break;
        }
    }
    let mut refusal = image.refusal(access, status);
    refusal.why = reasons(&bytes);
    Err(refusal.into())
}

/// Codes and messages of a refusal; nothing where it is in another form.
fn reasons(refusal: &[u8]) -> String {
    let Ok(refusal) = serde_json::from_slice::<RefusalBody>(refusal) else {
        return String::new();
    };
    let errors = refusal.errors.iter();
    let words = errors.map(|RefusalError { code, message }| match message.as_str() {
        "" => format!(": {code}"),
        message => format!(": {code}: {message}"),
    });
    let words: String = words.collect();
    words.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Error;
    use std::cell::Cell;

    /// How often it was sent, and the status of the last answer, where the first answer is of this status.
    async fn sent(first: u16, pause: &str) -> (u32, u16) {
        let count = Cell::new(0);
        let send = || {
            count.set(count.get() + 1);
            let status = if count.get() == 1 { first } else { 200 };
            let answer = http::Response::builder().status(status);
            let answer = answer.header("retry-after", pause).body("");
            async move { Ok::<_, Error>(Response::from(answer.unwrap())) }
        };
        let answer = repeat(send).await.unwrap();
        (count.get(), answer.status().as_u16())
    }

    #[tokio::test]
    async fn what_may_pass_is_sent_again_after_the_pause_that_the_registry_asks_for() {
        for status in [408, 429, 500, 503] {
            assert_eq!(sent(status, "0").await, (2, 200));
        }
        for status in [200, 401, 403, 404] {
            assert_eq!(sent(status, "0").await, (1, status));
        }
        // Of hours.
        assert_eq!(sent(429, "21600").await, (1, 429));
    }

    #[tokio::test]
    async fn a_refusal_says_why() {
        let body = r#"{"errors": [{"code": "DENIED", "message": "not\nyours", "detail": {}}, {"code": "X"}]}"#;
        for (body, why) in [(body, ": DENIED: not yours: X"), ("<html>", "")] {
            let answer = http::Response::builder().status(403).body(body);
            let image = ImageName::parse("r.example.com/a:1").unwrap();
            let failed = check_status(Response::from(answer.unwrap()), &image, Access::Pull).await;
            assert_eq!(
                failed.unwrap_err().to_string(),
                format!("the answer of r.example.com is 403 Forbidden{why}")
            );
        }
    }
}
