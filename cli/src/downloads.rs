//! Downloads of kctl itself: catalogs, hashes published beside files, manifests; and the client for files.

use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::fetch::Refused;
use crate::registry::Refusal;
use crate::state::store_error;
use aws_client::Clients;
use aws_client::authorities::Authorities;
use aws_client::store::Store;
use futures::future::try_join_all;
use std::collections::BTreeMap;
use std::time::Duration;

/// Limit of a file, bytes.
const MOST: usize = 16 << 20;

const TIMEOUT: Duration = Duration::from_secs(30);
/// The next step where a temporary file cannot be written.
pub const NO_TEMPORARY_ROOM: &str = "free space in the folder of temporary files, or name another one in TMPDIR, and repeat the command: it goes on";

const TRY: &str = "check the network and HTTPS_PROXY, or give the hash in spec.assets.catalog";

/// Fetches the hashes published beside files, as `URL.sha256` or `URL.sha256sum`; those of S3 with these clients. Result: sha256 by URL.
pub async fn published_hashes(
    urls: &[String],
    aws: &Clients,
) -> Result<BTreeMap<String, String>, CommandError> {
    if urls.is_empty() {
        return Ok(BTreeMap::new());
    }
    let client = https_client()?;
    let all = urls.iter().map(|url| published_hash(&client, aws, url));
    Ok(try_join_all(all).await?.into_iter().collect())
}

async fn published_hash(
    client: &reqwest::Client,
    aws: &Clients,
    url: &str,
) -> Result<(String, String), CommandError> {
    let mut last = None;
    for suffix in ["sha256", "sha256sum"] {
        let beside = format!("{url}.{suffix}");
        let read = match beside.strip_prefix("s3://") {
            Some(place) => read_object(place, aws).await,
            None => fetch_text(client, &beside).await,
        };
        match read {
            Ok(text) => {
                let hash = text.split_whitespace().find(|word| is_sha256(word));
                let hash = hash.ok_or_else(|| {
                    CommandError::usage_error(
                        format!("{url}.{suffix} does not hold a SHA-256"),
                        TRY,
                    )
                })?;
                return Ok((url.to_owned(), hash.to_ascii_lowercase()));
            }
            Err(error) => last = Some(error),
        }
    }
    let hint = "name a version that exists, or one of the catalog";
    let nothing = || CommandError::usage_error(format!("no hash is published for {url}"), hint);
    Err(last.map_or_else(nothing, |error| error.with_hint(hint)))
}

/// The text of an object: `BUCKET/KEY`.
async fn read_object(place: &str, aws: &Clients) -> Result<String, CommandError> {
    let (bucket, key) = place.split_once('/').unwrap_or((place, ""));
    let store = Store::open(&format!("s3://{bucket}"), aws).map_err(store_error)?;
    let bytes = store.get_first(key, MOST).await.map_err(store_error)?;
    let bytes = bytes.ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Failed,
            format!("s3://{place} does not exist"),
            TRY,
        )
    })?;
    String::from_utf8(bytes).or_usage_error(format!("s3://{place} is not text"), TRY)
}

/// The error of a file or an image that was not fetched or copied. The next step goes by the cause.
pub fn transfer_error(error: impl Into<anyhow::Error>, what: impl Into<String>) -> CommandError {
    let error = error.into();
    let step = next_step(&error);
    CommandError::new(ErrorKind::Failed, error.context(what.into()), step)
}

fn next_step(error: &anyhow::Error) -> String {
    const AGAIN: &str = "check the network and HTTPS_PROXY, and repeat the command: it goes on";
    const NO_FILE: &str = "there is no such file, or a proxy refuses it: correct the version or the address in the spec";
    const NO_ROOM: &str = "use a folder that you can write to, with enough free space (--out; for copies TMPDIR), and repeat the command";
    if let Some(refusal) = find_cause::<Refusal>(error) {
        return refusal.next_step().unwrap_or_else(|| AGAIN.to_owned());
    }
    let refused = find_cause::<Refused>(error);
    let step = if refused.is_some_and(Refused::is_lasting) {
        NO_FILE
    } else if refused.is_some() || find_cause::<reqwest::Error>(error).is_some() {
        AGAIN
    } else if find_cause::<std::io::Error>(error).is_some() {
        NO_ROOM
    } else {
        "correct it in the spec, or repeat the command"
    };
    step.to_owned()
}

fn find_cause<T: std::error::Error + 'static>(error: &anyhow::Error) -> Option<&T> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// Asks for a file from this byte on.
pub async fn ask_for_file(
    client: &reqwest::Client,
    url: &str,
    from: u64,
) -> anyhow::Result<reqwest::Response> {
    Authorities::of_system().check_address(url)?;
    let sent = with_range(client.get(url), from).send().await;
    Ok(sent.map_err(reqwest::Error::without_url)?)
}

/// The request for the rest of a file.
pub fn with_range(request: reqwest::RequestBuilder, from: u64) -> reqwest::RequestBuilder {
    match from {
        0 => request,
        from => request.header(reqwest::header::RANGE, format!("bytes={from}-")),
    }
}

/// Fetches a file and checks its SHA-256.
pub async fn fetch_verified(url: &str, sha256: &str) -> Result<String, CommandError> {
    let text = fetch_text(&https_client()?, url).await?;
    let found = node::digest::sha256_hex(&text);
    if found.eq_ignore_ascii_case(sha256) {
        return Ok(text);
    }
    Err(CommandError::usage_error(
        format!("{url} has the SHA-256 {found}, not {sha256}"),
        "correct spec.assets.catalogSHA256, if the file is the right one",
    ))
}

async fn fetch_text(client: &reqwest::Client, url: &str) -> Result<String, CommandError> {
    fetch_with_hint(client, url, TRY).await
}

async fn fetch_with_hint(
    client: &reqwest::Client,
    url: &str,
    hint: &str,
) -> Result<String, CommandError> {
    let failed = || format!("could not fetch {url}");
    let refused = Authorities::of_system().check_address(url);
    refused.or_failed(failed(), hint)?;
    let answer = async {
        let mut answer = client.get(url).send().await?.error_for_status()?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MOST {
                break;
            }
        }
        Ok(bytes)
    };
    let answer: reqwest::Result<Vec<u8>> = answer.await;
    let bytes = answer.map_err(reqwest::Error::without_url);
    let bytes = bytes.or_failed(failed(), hint)?;
    if bytes.len() > MOST {
        let message = format!("{url} has more than {MOST} bytes");
        return Err(CommandError::usage_error(message, "name the right file"));
    }
    String::from_utf8(bytes).or_usage_error(format!("{url} is not text"), "name the right file")
}

/// Fetches a list of addons or a manifest that `spec.addons` names.
pub async fn fetch_manifest(url: &str) -> Result<String, CommandError> {
    const HINT: &str = "check the address in spec.addons, the network and HTTPS_PROXY; or keep the file in the state store";
    fetch_with_hint(&https_client()?, url, HINT).await
}

fn https_client() -> Result<reqwest::Client, CommandError> {
    build_client(|builder| builder.timeout(TIMEOUT))
}

/// A client for files of any size: it waits for bytes only so long.
pub fn file_client() -> Result<reqwest::Client, CommandError> {
    build_client(|builder| builder.connect_timeout(TIMEOUT).read_timeout(TIMEOUT))
}

/// A client for sending files of any size. A limit of reading would end it while it sends.
pub fn upload_client() -> Result<reqwest::Client, CommandError> {
    build_client(|builder| builder.connect_timeout(TIMEOUT))
}

fn build_client(
    with_limits: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, CommandError> {
    let agent = concat!("kctl/", env!("CARGO_PKG_VERSION"));
    let trusted = Authorities::of_system().certificates();
    let trusted: reqwest::Result<Vec<_>> = trusted.map(reqwest::Certificate::from_der).collect();
    let failed = "could not make an https client";
    let client = reqwest::Client::builder()
        .tls_certs_only(trusted.or_failed(failed, TRY)?)
        .user_agent(agent)
        .https_only(true);
    with_limits(client).build().or_failed(failed, TRY)
}

fn is_sha256(word: &str) -> bool {
    word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::{Refused, next_step};
    use anyhow::{Context, Error, anyhow};
    use reqwest::StatusCode;

    #[test]
    fn the_next_step_goes_by_the_cause() {
        let refused = |status| Error::new(Refused(status)).context("could not fetch it");
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let local = Err::<(), _>(denied).context("could not write it");
        for (error, words) in [
            (refused(StatusCode::NOT_FOUND), "no such file"),
            (refused(StatusCode::SERVICE_UNAVAILABLE), "HTTPS_PROXY"),
            (refused(StatusCode::TOO_MANY_REQUESTS), "HTTPS_PROXY"),
            (local.unwrap_err(), "that you can write to"),
            (anyhow!("another digest"), "correct it in the spec"),
        ] {
            assert!(next_step(&error).contains(words), "{error:#}");
        }
    }
}
