//! Waiting for the API to have something new.

use futures::{Stream, StreamExt};
use kube::api::WatchEvent;
use std::pin::pin;
use std::time::Duration;

/// How long the API server keeps a watch open, seconds: so often is everything looked at anew.
pub(crate) const WATCH_SECONDS: u32 = 60;
/// A watch from which nothing came for longer is given up: its connection is dead.
const DEAD: Duration = Duration::from_secs(90);
/// Changes come in crowds: others of the same one are waited for this long.
const GATHER: Duration = Duration::from_millis(200);

/// Waits for an object that matters to appear or change, or for the watch to end. An error in the watch ends it: most
/// often it says that the version is too old, and the caller lists anew anyway.
pub(crate) async fn until_changed<T>(
    watch: impl Stream<Item = kube::Result<WatchEvent<T>>>,
    matters: impl Fn(&T) -> bool,
) -> kube::Result<()> {
    let mut watch = pin!(watch);
    while let Ok(Some(event)) = tokio::time::timeout(DEAD, watch.next()).await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) if matters(&object) => break,
            WatchEvent::Error(_) => break,
            _ => {}
        }
    }
    tokio::time::sleep(GATHER).await;
    Ok(())
}
