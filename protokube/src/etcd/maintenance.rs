//! Changes that the local etcd makes when it is asked through its JSON gateway: another leader, a smaller database.

use super::EtcdGateway;
use anyhow::{Context, bail};
use node::etcd::RunningMember;
use serde::Deserialize;
use std::future::Future;
use std::time::Duration;

/// Timeout of a change of leader: etcd itself gives up after an election timeout.
const MOVE_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a defragmentation, which copies the whole database.
pub const DEFRAGMENT_TIMEOUT: Duration = Duration::from_mins(5);

/// Maintenance of the local member, as a trait that tests replace.
pub trait EtcdMaintenance: Send + Sync + 'static {
    /// What the member says about itself and its cluster.
    fn describe_member(&self) -> impl Future<Output = anyhow::Result<RunningMember>> + Send;

    /// Makes the member with this id (hex) the leader, and returns when it leads. Only the leader can do that.
    fn move_leader(&self, id: &str) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Defragments the database of the member.
    fn defragment(&self) -> impl Future<Output = anyhow::Result<()>> + Send;
}

impl EtcdMaintenance for EtcdGateway {
    async fn describe_member(&self) -> anyhow::Result<RunningMember> {
        Self::describe_member(self).await
    }

    async fn move_leader(&self, id: &str) -> anyhow::Result<()> {
        let body = transfer_request(id)?;
        self.request_change("transfer-leadership", body, MOVE_TIMEOUT)
            .await
    }

    async fn defragment(&self) -> anyhow::Result<()> {
        self.request_change("defragment", "{}".to_owned(), DEFRAGMENT_TIMEOUT)
            .await
    }
}

impl EtcdGateway {
    /// Calls a method that changes something. The answer has nothing but a header; an error has etcd's message.
    async fn request_change(
        &self,
        method: &str,
        body: String,
        timeout: Duration,
    ) -> anyhow::Result<()> {
        let url = format!(
            "https://{}:{}/v3/maintenance/{method}",
            self.name, self.port
        );
        let client = self.build_client()?;
        let answered = async {
            let request = client.post(&url).body(body).timeout(timeout);
            let answer = request.send().await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        };
        let (status, bytes) = answered
            .await
            .with_context(|| format!("etcd does not answer at {url}"))?;
        if !status.is_success() {
            bail!("{url} returned {status}: {}", error_message(&bytes));
        }
        Ok(())
    }
}

/// A request of protocol buffers as JSON: a 64-bit number is a text.
fn transfer_request(id: &str) -> anyhow::Result<String> {
    let number = u64::from_str_radix(id, 16);
    let number = number.with_context(|| format!("{id:?} is not the id of a member"))?;
    Ok(format!(r#"{{"targetID":"{number}"}}"#))
}

/// The message in an error of the gateway: `{"code":9,"message":"etcdserver: not leader"}`.
fn error_message(bytes: &[u8]) -> String {
    #[derive(Deserialize)]
    struct ErrorReply {
        message: String,
    }
    match serde_json::from_slice::<ErrorReply>(bytes) {
        Ok(reply) => reply.message,
        Err(_) => String::from_utf8_lossy(bytes).trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hex_to_people_and_decimal_text_to_the_gateway() {
        assert_eq!(
            transfer_request("8e9e05c52164694d").unwrap(),
            r#"{"targetID":"10276657743932975437"}"#
        );
        assert!(transfer_request("etcd-b").is_err());
    }

    #[test]
    fn the_message_of_an_error_is_etcds() {
        let reply = br#"{"code":9,"message":"etcdserver: not leader"}"#;
        assert_eq!(error_message(reply), "etcdserver: not leader");
        assert_eq!(error_message(b"404 page not found\n"), "404 page not found");
    }
}
