//! Waits for changes of API objects.

use futures::{Stream, StreamExt};
use kube::api::WatchEvent;
use std::pin::pin;
use std::time::Duration;

/// Duration of a watch in seconds, after which everything is listed again.
pub(crate) const WATCH_SECONDS: u32 = 60;
/// Timeout without events, after which the connection counts as dead.
const DEAD: Duration = Duration::from_secs(90);
/// Time for collecting further changes.
const GATHER: Duration = Duration::from_millis(200);

/// Waits until an object that matters appears or changes, or the watch ends. An error event ends the watch too: usually the version
/// is too old, and the caller lists again anyway.
pub(crate) async fn wait_for_change<T>(
    watch: impl Stream<Item = kube::Result<WatchEvent<T>>>,
    matters: impl Fn(&T) -> bool,
) -> kube::Result<()> {
    wait_for_change_or_end(watch, matters, |_| false).await
}

/// The same, also for an object whose end matters.
pub(crate) async fn wait_for_change_or_end<T>(
    watch: impl Stream<Item = kube::Result<WatchEvent<T>>>,
    change_matters: impl Fn(&T) -> bool,
    end_matters: impl Fn(&T) -> bool,
) -> kube::Result<()> {
    let mut watch = pin!(watch);
    while let Ok(Some(event)) = tokio::time::timeout(DEAD, watch.next()).await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) if change_matters(&object) => {
                break;
            }
            WatchEvent::Deleted(object) if end_matters(&object) => break,
            WatchEvent::Error(_) => break,
            _ => {}
        }
    }
    tokio::time::sleep(GATHER).await;
    Ok(())
}
