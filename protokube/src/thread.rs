//! A role on a thread and a runtime of its own: what else this process does, and waits for, does not hold it up.

use anyhow::Context;
use std::future::Future;
use tokio::sync::oneshot;

/// Runs it there until it ends or nobody waits for it any more.
pub async fn on_own_thread<F>(
    name: &str,
    role: impl FnOnce() -> F + Send + 'static,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let (mut tell, told) = oneshot::channel();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let ended = match runtime {
            Ok(runtime) => runtime.block_on(async {
                tokio::select! {
                    ended = role() => ended,
                    () = tell.closed() => Ok(()),
                }
            }),
            Err(error) => Err(error).context("could not start a runtime"),
        };
        // Nobody to tell: the role was ended.
        let _ = tell.send(ended);
    };
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread
        .spawn(work)
        .with_context(|| format!("could not start a thread for {name}"))?;
    told.await
        .with_context(|| format!("the thread of {name} ended in a way that none may"))?
}
