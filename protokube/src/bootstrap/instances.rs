//! Looks instances up in EC2, in batches with a pause between calls. When a group grows by a hundred instances, all join at the same
//! time, and AWS limits calls per account.

use anyhow::anyhow;
use aws_client::ec2_query::{Ec2QueryClient, Instance};
use engine::Failure;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Time for collecting a batch.
const GATHER: Duration = Duration::from_millis(50);
/// Largest batch, and largest number of waiting look-ups.
const BATCH_SIZE: usize = 200;

type LookupResult = Result<Option<Instance>, Failure>;

/// Sends look-ups to the task that answers them.
#[derive(Clone)]
pub(super) struct InstanceLookup(mpsc::Sender<(String, oneshot::Sender<LookupResult>)>);

impl InstanceLookup {
    /// Starts the task, which ends with the last clone of the result.
    pub(super) fn start(ec2: Ec2QueryClient, pause: Duration) -> Self {
        let (sender, receiver) = mpsc::channel(BATCH_SIZE);
        tokio::spawn(answer_lookups(ec2, pause, receiver));
        Self(sender)
    }

    /// The instance; `None` if EC2 does not know it.
    pub(super) async fn find_instance(&self, instance: &str) -> anyhow::Result<Option<Instance>> {
        let (sender, receiver) = oneshot::channel();
        let task_ended = || anyhow!("the task that looks up instances has ended");
        let sent = self.0.send((instance.to_owned(), sender)).await;
        sent.map_err(|_| task_ended())?;
        Ok(receiver.await.map_err(|_| task_ended())??)
    }
}

async fn answer_lookups(
    ec2: Ec2QueryClient,
    pause: Duration,
    mut asked: mpsc::Receiver<(String, oneshot::Sender<LookupResult>)>,
) {
    while let Some(first) = asked.recv().await {
        tokio::time::sleep(GATHER).await;
        let mut all = vec![first];
        while all.len() < BATCH_SIZE
            && let Ok(next) = asked.try_recv()
        {
            all.push(next);
        }
        let begun = Instant::now();
        let ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
        let found = ec2.describe_instances(&[("instance-id", &ids)]).await;
        let found = found.map(|found| {
            let by_id = found.into_iter().map(|one| (one.id.clone(), one));
            by_id.collect::<BTreeMap<String, Instance>>()
        });
        for (id, sender) in all {
            let one = found.as_ref().map(|found| found.get(&id).cloned());
            // The caller may have disconnected.
            let _ = sender.send(one.map_err(Clone::clone));
        }
        tokio::time::sleep_until(begun + pause).await;
    }
}
