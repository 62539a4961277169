//! Looking instances up: those that are asked for at about the same time, in one call, and one call in each pause. When a group
//! grows by a hundred machines they all ask at once, and EC2 counts calls for the whole account.

use anyhow::anyhow;
use aws_client::machine::{Instance, Machine};
use engine::Failure;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// How long others are waited for.
const GATHER: Duration = Duration::from_millis(50);
/// Instances that one call names, and look-ups that may wait.
const CALL: usize = 200;

type Answer = Result<Option<Instance>, Failure>;

/// Where look-ups are brought.
#[derive(Clone)]
pub(super) struct Instances(mpsc::Sender<(String, oneshot::Sender<Answer>)>);

impl Instances {
    /// Answered by a task that ends with the last clone of this.
    pub(super) fn of(machine: Machine, pause: Duration) -> Self {
        let (sender, receiver) = mpsc::channel(CALL);
        tokio::spawn(answer(machine, pause, receiver));
        Self(sender)
    }

    /// The instance, if EC2 knows it.
    pub(super) async fn find(&self, instance: &str) -> anyhow::Result<Option<Instance>> {
        let (sender, receiver) = oneshot::channel();
        let gone = || anyhow!("instances are looked up no more");
        let sent = self.0.send((instance.to_owned(), sender)).await;
        sent.map_err(|_| gone())?;
        Ok(receiver.await.map_err(|_| gone())??)
    }
}

async fn answer(
    machine: Machine,
    pause: Duration,
    mut asked: mpsc::Receiver<(String, oneshot::Sender<Answer>)>,
) {
    while let Some(first) = asked.recv().await {
        tokio::time::sleep(GATHER).await;
        let mut all = vec![first];
        while all.len() < CALL
            && let Ok(next) = asked.try_recv()
        {
            all.push(next);
        }
        let begun = Instant::now();
        let ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
        let found = machine.instances(&[("instance-id", &ids)]).await;
        let found = found.map(|found| {
            let by_id = found.into_iter().map(|one| (one.id.clone(), one));
            by_id.collect::<BTreeMap<String, Instance>>()
        });
        for (id, sender) in all {
            let one = found.as_ref().map(|found| found.get(&id).cloned());
            // Who asked may have gone away.
            let _ = sender.send(one.map_err(Clone::clone));
        }
        tokio::time::sleep_until(begun + pause).await;
    }
}
