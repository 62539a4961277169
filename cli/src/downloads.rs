//! What kctl itself fetches over https: catalogs of downloads, and hashes published beside files.

use crate::error::{CommandError, Context};
use futures::future::try_join_all;
use std::collections::BTreeMap;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
const TRY: &str = "check the network and HTTPS_PROXY, or give the hash in spec.assets.catalog";

/// The hashes published beside files, as `URL.sha256` or `URL.sha256sum`.
pub async fn published_hashes(urls: &[String]) -> Result<BTreeMap<String, String>, CommandError> {
    if urls.is_empty() {
        return Ok(BTreeMap::new());
    }
    let client = client()?;
    let all = urls.iter().map(|url| published_hash(&client, url));
    Ok(try_join_all(all).await?.into_iter().collect())
}

async fn published_hash(
    client: &reqwest::Client,
    url: &str,
) -> Result<(String, String), CommandError> {
    let mut last = None;
    for suffix in ["sha256", "sha256sum"] {
        match text(client, &format!("{url}.{suffix}")).await {
            Ok(text) => {
                let hash = text.split_whitespace().find(|word| is_sha256(word));
                let hash = hash.ok_or_else(|| {
                    CommandError::usage(format!("{url}.{suffix} does not hold a SHA-256"), TRY)
                })?;
                return Ok((url.to_owned(), hash.to_ascii_lowercase()));
            }
            Err(error) => last = Some(error),
        }
    }
    let hint = "name a version that exists, or one of the catalog";
    let nothing = || CommandError::usage(format!("no hash is published for {url}"), hint);
    Err(last.map_or_else(nothing, |error| error.hint(hint)))
}

/// A file that has this SHA-256.
pub async fn verified(url: &str, sha256: &str) -> Result<String, CommandError> {
    let text = text(&client()?, url).await?;
    let found = node::config::sha256_hex(&text);
    if found.eq_ignore_ascii_case(sha256) {
        return Ok(text);
    }
    Err(CommandError::usage(
        format!("{url} has the SHA-256 {found}, not {sha256}"),
        "correct spec.assets.catalogSHA256, if the file is the right one",
    ))
}

async fn text(client: &reqwest::Client, url: &str) -> Result<String, CommandError> {
    let answer = async {
        client
            .get(url)
            .send()
            .await?
            .error_for_status()?
            .text()
            .await
    };
    answer
        .await
        .map_err(reqwest::Error::without_url)
        .failed(format!("could not fetch {url}"), TRY)
}

fn client() -> Result<reqwest::Client, CommandError> {
    let agent = concat!("kctl/", env!("CARGO_PKG_VERSION"));
    let client = reqwest::Client::builder()
        .user_agent(agent)
        .timeout(TIMEOUT)
        .https_only(true)
        .build();
    client.failed("could not make an https client", TRY)
}

fn is_sha256(word: &str) -> bool {
    word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}
