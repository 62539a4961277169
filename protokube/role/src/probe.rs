//! Health checks of local components: plain HTTP on the loopback address, without proxy.

use anyhow::Context;
use std::time::Duration;

/// Timeout of a check.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Client for health checks.
#[derive(Clone, Debug)]
pub struct Probe(reqwest::Client);

/// Response of a health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    pub status: u16,
    pub text: String,
}

impl Probe {
    /// A client for all checks.
    pub fn new() -> anyhow::Result<Self> {
        // Plain HTTP needs no certificate authorities, which the instance may not have.
        let client = reqwest::Client::builder()
            .tls_certs_only([])
            .no_proxy()
            .timeout(TIMEOUT);
        Ok(Self(client.build().context(
            "could not create an HTTP client for health checks",
        )?))
    }

    pub async fn fetch_url(&self, url: &str) -> anyhow::Result<ProbeAnswer> {
        let requested = async {
            let answer = self.0.get(url).send().await?;
            Ok::<_, reqwest::Error>(ProbeAnswer {
                status: answer.status().as_u16(),
                text: answer.text().await?,
            })
        };
        requested
            .await
            .with_context(|| format!("{url} does not answer"))
    }

    /// `None` if the URL returns status 200, otherwise a description of the problem.
    pub async fn find_problem(&self, url: &str) -> Option<String> {
        match self.fetch_url(url).await {
            Ok(answer) if answer.status == 200 => None,
            Ok(answer) => {
                let text = answer.text.lines().find(|line| line.contains("failed"));
                let text = text.or(answer.text.lines().next()).unwrap_or_default();
                Some(format!("{url} returned {}: {}", answer.status, text.trim()))
            }
            Err(error) => Some(format!("{error:#}")),
        }
    }
}
