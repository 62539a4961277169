//! Health checks of this machine's own components: plain HTTP on the loopback address, never by way of a proxy.

use anyhow::Context;
use std::time::Duration;

/// A check that takes longer failed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks for health.
#[derive(Clone, Debug)]
pub struct Probe(reqwest::Client);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body.
    pub text: String,
}

impl Probe {
    /// One for all checks.
    pub fn new() -> anyhow::Result<Self> {
        let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
        Ok(Self(client.build().context("could not make a client")?))
    }

    /// What is answered there.
    pub async fn ask(&self, url: &str) -> anyhow::Result<Answer> {
        let asked = async {
            let answer = self.0.get(url).send().await?;
            Ok::<_, reqwest::Error>(Answer {
                status: answer.status().as_u16(),
                text: answer.text().await?,
            })
        };
        asked.await.with_context(|| format!("{url} does not answer"))
    }

    /// Nothing if it is healthy there, else why not.
    pub async fn unhealthy(&self, url: &str) -> Option<String> {
        match self.ask(url).await {
            Ok(answer) if answer.status == 200 => None,
            Ok(answer) => {
                let text = answer.text.lines().find(|line| line.contains("failed"));
                let text = text.or(answer.text.lines().next()).unwrap_or_default();
                Some(format!("{url} answers {}: {}", answer.status, text.trim()))
            }
            Err(error) => Some(format!("{error:#}")),
        }
    }
}
