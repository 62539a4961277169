//! Renews a lock on a thread with a runtime of its own, so that renewals do not wait for what the process computes.

use super::LockLoss;
use super::lease::Lease;
use std::io;
use std::sync::Arc;
use std::thread;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// What became of a lock.
#[derive(Debug)]
pub enum LockEvent {
    /// It was not renewed in time: nothing more is started until it is known whether another process has it.
    Paused(LockLoss),
    /// It is held again, and nobody else had it meanwhile.
    Resumed,
    /// It is lost.
    Lost(LockLoss),
}

/// The thread that renews a lock.
#[derive(Debug)]
pub(super) struct RenewalThread {
    /// Ends the renewals when it is dropped.
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

/// While it lives, a late renewal pauses the fence instead of closing it.
struct Resumable(Arc<Lease>);

impl Drop for Resumable {
    fn drop(&mut self) {
        self.0.fence.set_resumable(false);
    }
}

impl RenewalThread {
    /// Starts it.
    pub(super) fn start(lease: &Arc<Lease>) -> io::Result<(Self, UnboundedReceiver<LockEvent>)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (told, events) = unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        lease.fence.set_resumable(true);
        let resumable = Resumable(Arc::clone(lease));
        thread::Builder::new()
            .name("lock".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = renew_until_lost(&resumable.0, &told) => {}
                        _ = stopped => {}
                    }
                });
                // Not before the fence is closed, or open.
                drop(resumable);
                let _ = end.send(());
            })?;
        Ok((Self { stop, ended }, events))
    }

    /// Ends the renewals.
    pub(super) async fn stop(self) {
        let Self { stop, ended } = self;
        drop(stop);
        let _ = ended.await;
    }
}

async fn renew_until_lost(lease: &Lease, told: &UnboundedSender<LockEvent>) {
    let store = lease.store_elsewhere();
    // Nobody may listen any more.
    let tell = |event| drop(told.send(event));
    loop {
        lease.wait_until_due().await;
        let loss = match lease.renew_once(&store).await {
            Ok(()) => continue,
            Err(loss @ LockLoss::Taken) => loss,
            Err(late @ LockLoss::Late(_)) => {
                tell(LockEvent::Paused(late));
                match lease.get_back(&store).await {
                    Ok(()) => {
                        tell(LockEvent::Resumed);
                        continue;
                    }
                    Err(loss) => loss,
                }
            }
        };
        lease.fence.close();
        tell(LockEvent::Lost(loss));
        return;
    }
}
