//! Runs a role on its own thread and runtime, so that other work of the process cannot delay it.

use anyhow::Context;
use std::future::Future;
use tokio::sync::oneshot;

/// Runs a role on a new thread until it ends or the returned future is dropped.
pub async fn run_on_own_thread<F>(
    name: &str,
    role: impl FnOnce() -> F + Send + 'static,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let (mut sender, receiver) = oneshot::channel();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let ended = match runtime {
            Ok(runtime) => runtime.block_on(async {
                tokio::select! {
                    ended = role() => ended,
                    () = sender.closed() => Ok(()),
                }
            }),
            Err(error) => Err(error).context("could not start a runtime"),
        };
        // An error means that the future was dropped.
        let _ = sender.send(ended);
    };
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread
        .spawn(work)
        .with_context(|| format!("could not start a thread for {name}"))?;
    receiver
        .await
        .with_context(|| format!("the thread of {name} panicked"))?
}
